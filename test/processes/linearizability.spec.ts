import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { StoreUnavailable, WrongRevision } from '../../src/ledger/event-store.js';
import type { NewEvent, RecordedEvent } from '../../src/ledger/event-store.js';
import { SeededRandomness } from '../../src/testing/index.js';
import { all, pause } from '../contracts/event-store.contract.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import type { AppendFault } from '../ledger/stores/double/double.js';
import { isLong } from '../long.js';

/** What a writer was told of one append; times are milliseconds of the process's clock. */
interface Append {
  readonly stream: string;
  readonly ids: readonly string[];
  readonly expected: number;
  readonly invokedAt: number;
  readonly endedAt: number;
  readonly outcome: 'ok' | 'fail' | 'unknown';
  /** Of its last event, when it is ok. */
  readonly revision?: number;
  readonly position?: bigint;
}

/** What a whole history must say of the streams that it leaves behind; the violations, none when it is right. */
function violations(history: readonly Append[], streams: ReadonlyMap<string, readonly RecordedEvent[]>): string[] {
  const found: string[] = [];
  for (const [stream, events] of streams) {
    events.forEach(({ revision }, index) => {
      if (revision !== index) found.push(`${stream} has revision ${revision} at place ${index}`);
    });
    const appends = history.filter((append) => append.stream === stream);
    const places = new Map<string, number[]>();
    for (const { id, revision } of events) places.set(id, [...(places.get(id) ?? []), revision]);
    const invoked = new Set(appends.flatMap(({ ids }) => ids));
    for (const id of places.keys()) if (!invoked.has(id)) found.push(`${id} of ${stream} was appended by nobody`);
    for (const { ids, outcome, expected, revision, position } of appends) {
      const at = ids.map((id) => places.get(id) ?? []);
      const told = `${outcome} append of ${ids.length} after ${expected} to ${stream}`;
      const whole = at.every((each, index) => each.length === 1 && each[0] === expected + 1 + index);
      const absent = at.every((each) => each.length === 0);
      if (outcome === 'ok' && !whole) found.push(`${told} is at ${JSON.stringify(at)}`);
      if (outcome === 'ok' && revision !== expected + ids.length) found.push(`${told} was told revision ${revision}`);
      if (outcome === 'ok' && whole && events[revision!]?.position !== position)
        found.push(`${told} was told a position`);
      if (outcome === 'fail' && !absent) found.push(`${told} is at ${JSON.stringify(at)}`);
      if (outcome === 'unknown' && !whole && !absent) found.push(`${told} is at ${JSON.stringify(at)}`);
    }
    // Real time: what had ended well before another append began stands before it.
    const done = appends.filter(({ outcome }) => outcome === 'ok');
    for (const early of done) {
      for (const late of done) {
        if (early.endedAt < late.invokedAt && early.revision! >= late.revision!) {
          found.push(`revision ${late.revision} of ${stream} was asked for after ${early.revision} was answered`);
        }
      }
    }
  }
  return found;
}

/** Numbers and ids that follow from a seed; two strands of one seed do not disturb each other. */
class Dice {
  readonly #randomness: SeededRandomness;

  constructor(seed: string) {
    this.#randomness = new SeededRandomness(seed);
  }

  below(limit: number): number {
    return Buffer.from(this.#randomness.bytes(4)).readUInt32BE() % limit;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  id(): string {
    const hex = Buffer.from(this.#randomness.bytes(16)).toString('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }
}

/** Before and after the commit, loud and silent. */
const faults: readonly AppendFault[] = [
  'cut-before',
  'cut-after',
  'unavailable-before',
  'unavailable-after',
  'reset-before',
  'reset-after',
  'timeout-after',
  'not-ready-before',
  'silence-before',
  'silence-after',
  { delayMs: 30 },
  // Longer than a try lasts: the write arrives when its writer has already tried again.
  { delayMs: 160 },
];

const modes = ['batch', 'classic'] as const;
const streams = ['organization-a', 'organization-b'];
const writersPerStore = 4;
const mostEvents = 3;
/** `LONG=1` plays longer histories, and more of them. */
const appendsPerWriter = isLong ? 40 : 6;
const seeds = isLong ? Array.from({ length: 10 }, (_, number) => `long ${number}`) : ['bruges'];
/** Generous bound, in milliseconds, for a history: on a busy machine most tries are not answered in time. */
const patienceMs = isLong ? 300_000 : 100_000;

/** Asks again until the store answers: what it says in the end is in the history, how long it took is not. */
async function insist<T>(ask: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() - begun > patienceMs) throw error;
    }
  }
}

/** What a history must have of everything that can come of an append, or it shows nothing. */
const isTelling = (history: readonly Append[]): boolean =>
  (['ok', 'fail', 'unknown'] as const).every((wanted) => history.some(({ outcome }) => outcome === wanted));

/** Writers that read, append at what they have read, and go on with whatever came of it. */
async function write(
  store: EventStoreDbEventStore,
  dice: Dice,
  history: Append[],
  seen: Map<string, RecordedEvent[]>,
): Promise<void> {
  const begun = performance.now();
  for (let count = 0; count < appendsPerWriter || !isTelling(history); count++) {
    if (performance.now() - begun > patienceMs) return;
    const stream = dice.pick(streams);
    const size = 1 + dice.below(mostEvents);
    const events = Array.from({ length: size }, (): NewEvent => ({
      id: dice.id(),
      type: 'Written',
      data: {},
      metadata: {},
    }));
    const read = await insist(() => all(store.read(stream)));
    const before = seen.get(stream) ?? [];
    // What one reader of this store has seen no later reader may miss.
    if (read.length > before.length) seen.set(stream, read);
    const expected = read.length - 1;
    const ids = events.map(({ id }) => id);
    const invokedAt = performance.now();
    const told = { stream, ids, expected, invokedAt };
    try {
      const appended = await store.append(stream, events, expected < 0 ? 'no-stream' : expected);
      history.push({ ...told, endedAt: performance.now(), outcome: 'ok', ...appended });
    } catch (error) {
      const outcome = error instanceof WrongRevision ? 'fail' : 'unknown';
      history.push({ ...told, endedAt: performance.now(), outcome });
    }
  }
}

/** Plays one history and reads what it leaves behind. */
async function play(seed: string, stores: number) {
  const first = await EventStoreDouble.start();
  const opened: EventStoreDbEventStore[] = [];
  const settings = { appendTimeoutMs: 100, giveUpAfterMs: 350, retryAfterMs: 5 };
  try {
    for (let index = 0; index < stores; index++) {
      const appendMode = modes[index]!;
      const open = () => EventStoreDbEventStore.open(first.connectionString, { ...settings, appendMode });
      opened.push(await insist(open));
    }
    const chaos = new Dice(`${seed} faults`);
    let working = true;
    const disturb = async () => {
      while (working) {
        const kind = chaos.below(12);
        if (kind === 0) first.cut();
        else if (kind === 1) first.leader = { host: '127.0.0.1', port: first.port };
        else if (first.appendFaults.length === 0) first.appendFaults.push(chaos.pick(faults));
        // So many in a row that a writer gives up now and then.
        if (kind === 2) first.appendFaults.push(...Array.from({ length: 5 }, () => 'silence-after' as const));
        await pause(10 + chaos.below(40));
        first.leader = undefined;
      }
    };
    const history: Append[] = [];
    const seen = new Map<string, RecordedEvent[]>();
    const writers = opened.flatMap((store, index) =>
      Array.from({ length: writersPerStore }, (_, number) =>
        write(store, new Dice(`${seed} ${index} ${number}`), history, seen),
      ),
    );
    await Promise.all([disturb(), Promise.all(writers).finally(() => (working = false))]);
    first.appendFaults.length = 0;
    // Writes that the server has held back arrive within this time, or never.
    await pause(300);
    const left = new Map<string, RecordedEvent[]>();
    for (const stream of streams) left.set(stream, await insist(() => all(opened[0]!.read(stream))));
    return { history, seen, left };
  } finally {
    for (const store of opened) await store.close();
    await first.stop();
  }
}

describe('the check of a history', () => {
  const event = (id: string, revision: number): RecordedEvent =>
    ({ stream: 'organization-a', id, revision, position: BigInt(revision) }) as RecordedEvent;
  const append = (ids: readonly string[], expected: number, more: Partial<Append> = {}): Append => {
    const revision = expected + ids.length;
    const times = { invokedAt: 10 * revision, endedAt: 10 * revision + 5 };
    return {
      stream: 'organization-a',
      ids,
      expected,
      ...times,
      outcome: 'ok',
      revision,
      position: BigInt(revision),
      ...more,
    };
  };
  const log = [event('a', 0), event('b', 1), event('c', 2)];
  const history = [append(['a'], -1), append(['b', 'c'], 0)];
  const found = (appends: readonly Append[], events = log) =>
    violations(appends, new Map([['organization-a', events]]));

  test('finds nothing in a right one', () => {
    expect(found(history)).toEqual([]);
    const lost = append(['d'], 2, { outcome: 'unknown' });
    expect(found([...history, lost, append(['e'], 1, { outcome: 'fail' })])).toEqual([]);
    expect(found([...history, lost], [...log, event('d', 3)])).toEqual([]);
  });

  test.each<[string, readonly Append[], (readonly RecordedEvent[])?]>([
    ['an acknowledged event that is lost', history, log.slice(0, 2)],
    ['an event that is there twice', history, [...log, event('c', 3)]],
    ['an event that nobody has appended', history, [...log, event('x', 3)]],
    ['a revision that is left out', history, [event('a', 0), event('b', 1), event('c', 3)]],
    ['half of an unknown append', [...history, append(['d', 'e'], 2, { outcome: 'unknown' })], [...log, event('d', 3)]],
    ['a refused append that was written', [...history, append(['d'], 2, { outcome: 'fail' })], [...log, event('d', 3)]],
    ['an append behind another revision than was expected', [history[0]!, append(['b', 'c'], 1)]],
    ['a wrong position', [history[0]!, append(['b', 'c'], 0, { position: 7n })]],
    ['a wrong revision', [history[0]!, append(['b', 'c'], 0, { revision: 1 })]],
    ['a later append that stands earlier', [append(['a'], -1, { invokedAt: 90, endedAt: 95 }), history[1]!]],
  ])('finds %s', (_fault, appends, events = log) => {
    expect(found(appends, [...events])).not.toEqual([]);
  });
});

describe.each([1, 2])('histories of parallel writers on %d stores under faults', (stores) => {
  test.each(seeds)(
    'are those of one log (seed %s)',
    async (seed) => {
      const { history, seen, left } = await play(`${seed} ${stores}`, stores);
      expect(violations(history, left)).toEqual([]);
      for (const [stream, events] of seen) expect(left.get(stream)?.slice(0, events.length)).toEqual(events);
      expect(history.length).toBeGreaterThanOrEqual(stores * writersPerStore * appendsPerWriter);
      expect(isTelling(history)).toBe(true);
    },
    2 * patienceMs,
  );
});
