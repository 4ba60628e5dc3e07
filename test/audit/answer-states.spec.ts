import type { StateAnswer, StateQuestion } from '../../src/read-models/states.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { stateOf } from '../e2e/until.js';
import { moduleFile } from '../threads/module-file.js';
import { stateSteps } from '../../src/audit/timeline/query-states.js';
import { renamed, streamOf } from './long-stream.js';

const policies = (count: number, notes: string) =>
  Array.from({ length: count }, (_, index) => ({
    type: 'PolicyCreated',
    data: { policyId: `policy ${index}`, policyName: `number ${index}`, effect: 'EFFECT_ALLOW', notes },
  }));

const storeOf = (following: () => Iterable<{ type: string; data: object }>) => {
  let read = 0;
  return {
    get eventsRead() {
      return read;
    },
    async *read(stream: string) {
      for (const event of streamOf(stream.slice('organization-'.length), following())) {
        read++;
        yield await Promise.resolve(event);
      }
    },
  };
};

const newest: StateQuestion = { asks: 'state', at: { by: 'newest' }, lists: [], after: 0 };
type Tasks = ReturnType<typeof queryTasks>;
const ask = (tasks: Tasks, question: StateQuestion, organizationId = 'acme', family = 'family') =>
  tasks.states({ family, organizationId }, { organizationId, question, now: 0 }, () => undefined);

const numbersOf = ({ elements }: StateAnswer) =>
  elements.texts.map((text) => Number((JSON.parse(text) as { number: string }).number));

test('what is larger than 4 MiB comes in pages, without a gap, and no two elements twice', async () => {
  const thread = queryTasks({ store: storeOf(() => policies(11, 'x'.repeat(1_000_000))) });
  const seen: number[] = [];
  for (;;) {
    const answer = await ask(thread, { ...newest, after: seen.length });
    expect(answer.elements.texts.reduce((sum, text) => sum + text.length, 0)).toBeLessThan(4.1 * 1024 * 1024);
    seen.push(...numbersOf(answer));
    if (!answer.elements.hasMore) break;
  }
  expect(seen).toEqual(Array.from({ length: 11 }, (_, index) => index + 1));

  const from = { by: 'revision', revision: 0 } as const;
  const changes = await ask(thread, { asks: 'changes', from, to: { by: 'revision', revision: 3 }, after: 1 });
  expect(changes.elements.texts.map((text) => (JSON.parse(text) as { text: string }).text)).toEqual([
    "policy 'number 1' was created",
    "policy 'number 2' was created",
  ]);
  await thread.close();
});

test('reads no further than it is asked about, and refuses what would take too long', async () => {
  const early = storeOf(() => renamed(20_000, 'Acme'));
  const thread = queryTasks({ store: early });
  const { reached } = await ask(thread, { ...newest, at: { by: 'time', time: 7_500 } });
  expect(reached[0]).toMatchObject({ revision: '7', recordedAt: '1970-01-01T00:00:07.000Z' });
  expect(early.eventsRead).toBeLessThan(2_000);
  await thread.close();

  const long = storeOf(() => renamed(1_000, 'x'.repeat(Math.ceil(stateSteps / 100))));
  const other = queryTasks({ store: long });
  await expect(ask(other, newest)).rejects.toMatchObject({
    code: 'RESOURCE_EXHAUSTED',
    message: expect.stringMatching(
      /more events up to there than one question may fold .* run `countersign replay`/,
    ) as string,
  });
  // The thread goes on with the next question.
  expect((await ask(other, { ...newest, at: { by: 'revision', revision: 0 } })).reached[0]).toMatchObject({
    revision: '0',
  });
  await other.close();
});

test('one question of a family at a time, and few that wait', async () => {
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  let [now, most] = [0, 0];
  const thread = queryTasks({
    store: {
      async *read(stream) {
        most = Math.max(most, ++now);
        await held;
        yield* streamOf(stream.slice('organization-'.length), []);
        now--;
      },
    },
  });
  const waiting = ['a', 'b', 'c', 'd'].map((id) => ask(thread, newest, id));
  waiting.push(...Array.from({ length: 4 }, () => ask(thread, newest, 'family')));
  // Whoever has most makes room, and is refused itself; each of the others has a place.
  for (const id of ['family', 'a', 'b']) {
    expect(await stateOf(ask(thread, newest, id))).toBe('RESOURCE_EXHAUSTED');
  }
  goOn();
  const answers = await Promise.all(waiting);
  expect(answers.map(({ organization }) => organization)).toMatchObject(
    ['a', 'b', 'c', 'd', 'family', 'family', 'family', 'family'].map((organizationId) => ({ organizationId })),
  );
  expect(most).toBe(1);
  await thread.close();
});

test('a broken chain is not told, and a thread that dies or does not answer is a 503', async () => {
  const broken = queryTasks({
    store: {
      async *read(stream) {
        for (const event of streamOf(stream.slice('organization-'.length), policies(2, ''))) {
          yield await Promise.resolve(
            event.revision === 1 ? { ...event, data: { ...(event.data as object), notes: 'forged' } } : event,
          );
        }
      },
    },
  });
  await expect(ask(broken, newest)).rejects.toThrow('is broken at revision 1');
  expect((await ask(broken, { ...newest, at: { by: 'revision', revision: 0 } })).reached[0]).toMatchObject({
    revision: '0',
  });
  await broken.close();

  for (const act of ['process.exit(1)', 'new Promise(() => undefined)']) {
    const answer = { value: { reached: [], elements: { texts: [], hasMore: false } } };
    // A thread that was lost is replaced: the second one finds what the first has left.
    const file = await moduleFile(`
      import { appendFileSync, readFileSync } from 'node:fs';
      const own = new URL(import.meta.url).pathname + '.asked';
      export function states() {
        appendFileSync(own, '.');
        return readFileSync(own).length === 1 ? ${act} : ${JSON.stringify(answer)};
      }`);
    const tasks = queryTasks({ store: storeOf(() => []), file, longestMs: 2_000 });
    await expect(ask(tasks, newest)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await ask(tasks, newest)).toMatchObject({ reached: [] });
    await tasks.close();
  }
});
