import type { EventReader, RecordedEvent } from '../../src/ledger/event-store.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { eventRuns } from '../../src/ledger/event-runs.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { longStream } from '../audit/long-stream.js';

type Store = Pick<EventReader, 'read' | 'head'>;

const acme = 'acme';
const storeOf = (events: number, size: number, onRead: () => void = () => undefined): Store => ({
  head: () => Promise.resolve(BigInt(events)),
  async *read(stream: string, from = 0): AsyncGenerator<RecordedEvent> {
    if (stream !== organizationStream(acme)) return;
    for (const event of longStream(events, size)) {
      if (event.revision < from) continue;
      onRead();
      yield await Promise.resolve(event);
    }
  },
});

async function runs(store: Store, options?: Parameters<typeof eventRuns>[2]) {
  const found: { revisions: readonly number[]; isEnd: boolean }[] = [];
  for await (const { events, isEnd } of eventRuns(store, organizationStream(acme), options)) {
    found.push({ revisions: events.map(({ revision }) => revision), isEnd });
  }
  return found;
}

test('short events come five hundred at a time, each of them once', async () => {
  const found = await runs(storeOf(1_200, 10));
  expect(found.map(({ revisions, isEnd }) => [revisions.length, isEnd])).toEqual([
    [500, false],
    [500, false],
    [201, true],
  ]);
  expect(found.flatMap(({ revisions }) => revisions)).toEqual(Array.from({ length: 1_201 }, (_, revision) => revision));
});

test('long events come about a mebibyte at a time, and one that is longer comes alone', async () => {
  const found = await runs(storeOf(7, 400_000));
  expect(found.map(({ revisions }) => revisions)).toEqual([[0, 1, 2, 3], [4, 5, 6], [7]]);
  const alone = await runs(storeOf(3, 2_000_000), { from: 1 });
  expect(alone).toEqual([
    { revisions: [1], isEnd: false },
    { revisions: [2], isEnd: false },
    { revisions: [3], isEnd: false },
    { revisions: [], isEnd: true },
  ]);
});

test('a part of a stream ends where it is told to, and one without events has an empty run', async () => {
  expect(await runs(storeOf(10, 10), { from: 3, upTo: 5, most: 2 })).toEqual([
    { revisions: [3, 4], isEnd: false },
    { revisions: [5], isEnd: true },
  ]);
  expect(await runs(storeOf(2, 10), { from: 3 })).toEqual([{ revisions: [], isEnd: true }]);
});

type Turn = () => Promise<void> | undefined;

const whose = { family: acme, organizationId: acme };
const ofAcme = { organizationId: acme, now: 0 };
const activity = { kind: 'activity', activityId: 'a', decisions: 1, isWaiting: false } as const;
const asks: Record<string, (tasks: ReturnType<typeof queryTasks>, turn: Turn) => Promise<unknown>> = {
  states: (tasks, turn) => {
    const question = { asks: 'state', at: { by: 'newest' }, lists: [], after: 0 } as const;
    return tasks.states(whose, { ...ofAcme, question }, turn);
  },
  reasons: (tasks, turn) =>
    tasks.reasons(whose, { organizationId: acme, activityId: 'a', decisions: 1, isConcerned: true }, turn),
  proofs: (tasks, turn) => tasks.proof(whose, { ...ofAcme, about: activity }, turn),
  'what-ifs': (tasks, turn) => tasks.whatIf(whose, { ...ofAcme, draft: { withoutUsers: ['Nobody'] } }, turn),
};

test.each(Object.keys(asks))(
  'however long events are, the main thread holds few of them for the thread of %s',
  async (name) => {
    let [read, most] = [0, 0];
    const store = storeOf(20, 600_000, () => (most = Math.max(most, ++read)));
    const tasks = queryTasks({ store });
    try {
      await asks[name]!(tasks, () => void (read = 0));
    } finally {
      await tasks.close();
    }
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(3);
  },
);
