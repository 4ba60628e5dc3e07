import { toFunctionSelector } from 'viem';
import { coordinatorTasks, type PoolOfTasks } from '../../src/coordinator/coordinator-pool.js';
import { ReadingTasks } from '../../src/coordinator/reading-tasks.js';
import { TaskPool } from '../../src/threads/task-pool.js';
import { notApplicable, Unreadable } from '../../src/domain/policy/types.js';
import { organizationPath, type QueuePath } from '../../src/fairness/fair-queue.js';
import type { CoordinatorError } from '../../src/domain/errors.js';
import { decodingSteps, Steps } from '../../src/domain/steps.js';
import { read, type ToRead } from '../../src/transactions/reading.js';
import { stateOf } from '../e2e/until.js';
import { moduleFile } from '../threads/module-file.js';

/*
 * What is read in another thread is what would be read here; a thread that is lost is no outcome.
 */

const opened: PoolOfTasks[] = [];
const threads = ({ most, ...options }: { most?: number; file?: URL; longestMs?: number } = {}) => {
  const pool: PoolOfTasks = new TaskPool({ ...coordinatorTasks, ...options });
  opened.push(pool);
  const tasks = new ReadingTasks(pool, ...(most === undefined ? [] : [most]));
  return Object.assign(tasks, { close: () => pool.close() });
};
afterAll(() => Promise.all(opened.map((one) => one.close())));

const path = organizationPath('one');
const silent = () => moduleFile('export const read = () => new Promise(() => undefined);');
const text = (payload: string): ToRead => ({
  kind: 'payloads',
  encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
  hashFunction: 'HASH_FUNCTION_SHA256',
  payloads: [payload],
  fields: ['payload'],
});

/** A call of `go(string,uint8)` on the contract 0x11…, whose text is not UTF-8 and whose number has bits beyond its type. */
const call = (data: string): ToRead => {
  const to = '11'.repeat(20);
  const length = data.length / 2;
  const list = `0101843b9aca0082520894${to}80b8${length.toString(16)}${data}`;
  return {
    kind: 'transaction',
    chain: 'ETHEREUM',
    unsignedTransaction: `f8${(list.length / 2 - 1).toString(16)}${list.slice(2)}`,
    publicKey: `02${'79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'}`,
    interfaces: [
      {
        address: `0x${to}`,
        json: JSON.stringify([
          { type: 'function', name: 'go', inputs: ['string', 'uint8'].map((type) => ({ name: type, type })) },
        ]),
      },
    ],
    owner: '',
  };
};

it('gives what is read here, doubts and all', async () => {
  const word = (value: number) => value.toString(16).padStart(64, '0');
  const selector = toFunctionSelector('go(string,uint8)').slice(2);
  const jobs = [text('hello'), call(`${selector}${word(64)}${word(256)}${word(1)}ff${'00'.repeat(31)}`)];
  const elsewhere = threads({ most: 1 });
  for (const job of jobs) {
    const steps = new Steps(decodingSteps);
    expect(await elsewhere.read(job, path)).toEqual({ value: read(job, steps), spent: steps.spent });
    expect(steps.spent).toBeGreaterThan(0);
  }

  const { value } = (await elsewhere.read(call('00'.repeat(60)), path)) as { value: { call: Record<string, unknown> } };
  expect(value.call['contract_call_args']).toBeInstanceOf(Unreadable);
  const none = { ...call('00'.repeat(60)), interfaces: [] };
  const without = (await elsewhere.read(none, path)) as { value: { call: Record<string, unknown> } };
  expect(without.value.call['contract_call_args']).toBe(notApplicable);
});

it('keeps its thread while there is nothing to read', async () => {
  const file = await moduleFile(`
    import { threadId } from 'node:worker_threads';
    export const read = () => ({ value: { spent: 0, value: threadId } });`);
  const elsewhere = threads({ most: 1, file });
  const thread = await elsewhere.read(text('a'), path);
  // Time enough to end in for one that ends: others are started, and read.
  for (let count = 0; count < 3; count++) expect(await threads({ file }).read(text('b'), path)).not.toEqual(thread);
  expect(await elsewhere.read(text('c'), path)).toEqual(thread);
});

it('gives the refusal that is given here', async () => {
  const job: ToRead = { kind: 'interface', type: 'ETHEREUM', json: '{}' };
  const outcome = await threads().read(job, path);
  expect('refusal' in outcome && outcome.refusal).toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(() => read(job)).toThrow('refusal' in outcome ? outcome.refusal.message : '');
});

it.each([
  [
    'does not answer',
    'new Promise(() => undefined)',
    1_000,
    /was not available within 1 s: send the same request again/,
  ],
  ['ends', 'process.exit(1)', 20_000, /has ended: send/],
  ['throws', '({ error: new Error() })', 20_000, /failed: send/],
])('refuses with 503 when a thread %s, and replaces it', async (_what, act, longestMs, reason) => {
  const file = await moduleFile(`export const read = () => ${act};`);
  const elsewhere = threads({ most: 1, longestMs, file });
  const asked = [elsewhere.read(text('a'), path), elsewhere.read(text('b'), path)];
  for (const one of asked) {
    expect(await stateOf(one, 20_000)).toBe('UNAVAILABLE');
    await expect(one).rejects.toMatchObject({ code: 'UNAVAILABLE', message: expect.stringMatching(reason) as string });
  }
});

it('has 256 that wait, and each organization has one beyond them', async () => {
  const elsewhere = threads({ most: 1, file: await silent() });
  const codes = (paths: readonly QueuePath[]) =>
    paths.map((of) => elsewhere.read(text('a'), of).catch((error: CoordinatorError) => error.code));
  const waiting = codes(Array.from({ length: 256 }, (_, at) => organizationPath(`family ${at}`)));
  expect(await stateOf(elsewhere.read(text('a'), organizationPath('family 1')))).toBe('RESOURCE_EXHAUSTED');
  const others = codes(Array.from({ length: 300 }, (_, at) => organizationPath(`sub ${at}`, 'family 1')));
  await elsewhere.close();
  expect(new Set(await Promise.all([...waiting, ...others]))).toEqual(new Set(['UNAVAILABLE']));
});

it('has families take turns, and lets none of them fill the line', async () => {
  const order: string[] = [];
  const elsewhere = threads({ most: 1 });
  const ask = (organization: string) =>
    elsewhere.read(text(organization), organizationPath(organization)).then(
      () => void order.push(organization),
      (error: Error) => void order.push(`${organization}: ${error.message.slice(0, 17)}`),
    );
  const all = [...Array.from({ length: 257 }, () => ask('greedy')), ask('modest'), ask('modest')];
  await Promise.all(all);
  expect(order.slice(0, 3)).toEqual(Array(3).fill('greedy: Too many requests'));
  expect(order.lastIndexOf('modest')).toBeLessThan(9);
  expect(order.filter((one) => one === 'greedy')).toHaveLength(254);
});

it('lets siblings and the parent in, whatever four sub-organizations of them ask', async () => {
  const elsewhere = threads({ most: 1, file: await silent() });
  const refused: string[] = [];
  const ask = (name: string, of: QueuePath, count: number) =>
    Array.from({ length: count }, () =>
      elsewhere.read(text('a'), of).catch(({ code }: CoordinatorError) => {
        if (code === 'RESOURCE_EXHAUSTED') refused.push(name);
      }),
    );
  const asked = [
    ...Array.from({ length: 4 }, (_, at) => ask('greedy', organizationPath(`greedy ${at}`, 'parent'), 100)).flat(),
    ...ask('sibling', organizationPath('sibling', 'parent'), 10),
    ...ask('parent', organizationPath('parent'), 100),
  ];
  await elsewhere.close();
  await Promise.all(asked);
  expect([refused.length, new Set(refused)]).toEqual([254, new Set(['greedy'])]);
});
