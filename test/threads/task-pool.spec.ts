import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { organizationPath } from '../../src/fairness/fair-queue.js';
import { TaskPool, type Kind } from '../../src/threads/task-pool.js';
import type { Task } from '../../src/threads/task.js';
import { stateOf } from '../e2e/until.js';
import { moduleFile } from './module-file.js';

/*
 * A task that kills its thread, or has to be ended, ends alone: others in the same pool go on, on threads that keep what they have.
 */

interface Table {
  /** Says which thread it has, after so many milliseconds. */
  readonly rest: Task<number, number>;
  /** Runs this code. */
  readonly evaluate: Task<string, unknown>;
}

const distFile = (name: string) => new URL(`../../dist/threads/${name}.js`, import.meta.url).href;
const code = `
  import { setTimeout } from 'node:timers/promises';
  import { threadId } from 'node:worker_threads';
  import { task } from '${distFile('task')}';
  import { CoordinatorError } from '${new URL('../../dist/domain/errors.js', import.meta.url).href}';
  export const rest = task((ms) => setTimeout(ms, threadId));
  export const evaluate = task((code) => eval(code));`;

const opened: TaskPool<Table>[] = [];
afterAll(() => Promise.all(opened.map((pool) => pool.close())));

async function poolWith({ heapMib = 64 } = {}): Promise<TaskPool<Table>> {
  const pool = new TaskPool<Table>({ file: await moduleFile(code), heapMib });
  opened.push(pool);
  return pool;
}

const noun = { one: 'the result', many: 'results' };
const kind = (given: Partial<Kind> = {}): Kind => ({ most: 1, longestMs: 60_000, noun, ...given });
const path = organizationPath('acme');
const forever = 'for (;;) {}';

test.each([
  ['runs for ever', forever, 'the result was not available within 2 s'],
  ['never answers', 'new Promise(() => undefined)', 'the result was not available within 2 s'],
  ['ends the thread', 'process.exit(1)', 'the thread that made the result has ended'],
  [
    'fails out of turn',
    `setImmediate(() => { throw new Error('secret') }), new Promise(() => undefined)`,
    'the thread that made the result has ended',
  ],
  [
    'fills the memory',
    'const held = []; for (;;) held.push(new Array(1e5).fill(held.length));',
    'the thread that made the result has ended',
  ],
  ['returns what cannot be copied', '() => undefined', 'the thread that made the result has ended'],
])('a task that %s ends alone, and its thread is replaced', async (_what, script, why) => {
  const pool = await poolWith();
  const rest = pool.kind('rest', kind({ most: 3 }));
  const isLate = why.includes('within');
  const evaluate = pool.kind('evaluate', kind({ longestMs: isLate ? 2_000 : 60_000 }));
  const resting = Promise.all([rest(path, () => 0), rest(path, () => 0), rest(path, () => 0)]);
  await resting;
  // One that runs meanwhile, one that waits for its turn behind it, and those that come later.
  const meanwhile = Promise.all(Array.from({ length: 6 }, () => rest(path, () => 1_500)));
  const [bad, behind] = [evaluate(path, () => script), evaluate(path, () => '6 * 7')];
  await expect(bad).rejects.toMatchObject({ code: 'UNAVAILABLE', message: `${why}: send the same request again` });
  expect(await behind).toBe(42);
  // Each of three threads rested twice.
  expect(new Set(await meanwhile).size).toBe(3);
  expect(await evaluate(path, () => '1')).toBe(1);
});

test('an error comes across with its code and details; a mistake with its message', async () => {
  const pool = await poolWith();
  const evaluate = pool.kind('evaluate', kind());
  const details = [{ '@type': 'type', field: 'a' }];
  const refused = `throw new CoordinatorError('NOT_FOUND', 'none', ${JSON.stringify({ details, category: 'FORBIDDEN', retryAfterSeconds: 3 })})`;
  await expect(evaluate(path, () => refused)).rejects.toMatchObject({
    name: 'CoordinatorError',
    code: 'NOT_FOUND',
    message: 'none',
    details,
    category: 'FORBIDDEN',
    retryAfterSeconds: 3,
  });
  await expect(evaluate(path, () => `throw new TypeError('odd')`)).rejects.toThrow(/^odd$/);
});

test('no kind waits for another, and organizations take turns for the threads of one', async () => {
  const pool = await poolWith();
  const evaluate = pool.kind('evaluate', kind({ most: 2, ofFamily: 1 }));
  const rest = pool.kind('rest', kind());
  const order: string[] = [];
  const ask = (name: string) => evaluate(organizationPath(name), () => '1').then(() => order.push(name));
  const stuck = evaluate(organizationPath('stuck'), () => 'new Promise(() => undefined)').catch(() => undefined);
  const greedy = Array.from({ length: 20 }, () => ask('greedy'));
  await Promise.all([...greedy, ask('modest')]);
  // A family has one thread of two; of those that wait, the second is next.
  expect(order.indexOf('modest')).toBeLessThan(3);
  expect(
    await stateOf(
      rest(path, () => 0),
      20_000,
    ),
  ).toBe('done');
  await pool.close();
  await stuck;
});

test('what runs, waits or comes when it is closed is refused', async () => {
  const pool = await poolWith();
  const evaluate = pool.kind('evaluate', kind());
  expect(await evaluate(path, () => '1')).toBe(1);
  const asked = [evaluate(path, () => forever), evaluate(path, () => '1')];
  const refused = Promise.all(asked.map((one) => expect(one).rejects.toThrow('the coordinator is shutting down')));
  await pool.close();
  await refused;
  await expect(evaluate(path, () => '1')).rejects.toThrow('the coordinator is shutting down');
});

test('an idle thread keeps its modules, and does not keep the process alive', async () => {
  const script = `
    const { TaskPool } = await import('${distFile('task-pool')}');
    const pool = new TaskPool({ file: new URL('${(await moduleFile(code)).href}'), heapMib: 64 });
    const rest = pool.kind('rest', ${JSON.stringify(kind())});
    console.log(await rest([], () => 0) === await rest([], () => 0));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 30_000,
  });
  expect(stdout).toBe('true\n');
});
