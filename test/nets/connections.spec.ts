import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { Installation, stop, type Run } from '../e2e/installation.js';

/*
 * A connection costs the main thread no more than what is sent on it, however it is cut up: each flood is measured beside
 * an honest client of the same server that sends as much.
 */

let installation: Installation;
let server: Run & { readonly url: string };

beforeAll(async () => {
  installation = await Installation.make();
  server = await installation.start();
});
afterAll(async () => {
  await stop(server, /request refused|left out/);
  await installation.remove();
});

/** Processor time that the main thread of the server has had, in milliseconds. */
async function mainThreadMs(): Promise<number> {
  const { pid } = server.child;
  const [ns] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'latin1')).split(' ');
  return Number(ns) / 1e6;
}

async function costOf(work: () => Promise<unknown>): Promise<number> {
  const before = await mainThreadMs();
  await work();
  return (await mainThreadMs()) - before;
}

/** Sends bytes on a connection of their own. Returns what came back until the server closed it. */
async function sent(bytes: Buffer): Promise<string> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => undefined);
  let text = '';
  socket.on('data', (data) => (text += data.toString('latin1')));
  socket.write(bytes);
  await new Promise((closed) => socket.once('close', closed));
  return text;
}

const head = (rest: string) => `POST /public/v1/query/whoami HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${rest}\r\n`;

/** A body of 2 MiB, in chunks. */
function inChunksOf(size: number): Buffer {
  const chunk = `${size.toString(16)}\r\n${' '.repeat(size)}\r\n`;
  const headers = head('content-type: application/json\r\ntransfer-encoding: chunked\r\n');
  return Buffer.from(`${headers}${chunk.repeat(2 ** 21 / size)}0\r\n\r\n`);
}

const times = async <Made>(count: number, work: () => Promise<Made>): Promise<Made[]> => {
  const made: Made[] = [];
  for (let number = 0; number < count; number++) made.push(await work());
  return made;
};

test('a body in chunks of one byte costs no more than one in chunks of 16 KiB', async () => {
  const [honest, tiny] = [inChunksOf(2 ** 14), inChunksOf(1)];
  await times(4, () => sent(honest));
  const answers: string[] = [];
  const honestMs = await costOf(() => times(8, async () => answers.push(await sent(honest))));
  expect(answers.map((answer) => answer.slice(9, 12))).toEqual(Array(8).fill('401'));
  const tinyMs = await costOf(() => times(8, async () => answers.push(await sent(tiny))));
  process.stdout.write(
    `eight bodies of 2 MiB: ${honestMs.toFixed()} ms, in chunks of one byte ${tinyMs.toFixed()} ms\n`,
  );
  expect(tinyMs).toBeLessThan(2 * honestMs);
});

/** Requests in one write, and what came back. Each alone would be answered. */
const pipelined = (count: number) =>
  sent(Buffer.from('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(count - 1) + head('content-length: 0\r\n')));
const statuses = (answers: string) => [...answers.matchAll(/HTTP\/1.1 (\d+) /g)].map(([, status]) => status);

test('a connection answers eight requests under way, and with one more it is closed', async () => {
  expect(statuses(await pipelined(8))).toEqual([...Array<string>(7).fill('200'), '401']);
  expect(statuses(await pipelined(9)).length).toBeLessThan(9);
});

test('64 KiB of requests on one connection cost little more than eight of them', async () => {
  await times(4, () => pipelined(8));
  const fewMs = await costOf(() => times(8, () => pipelined(8)));
  const manyMs = await costOf(() => times(8, () => pipelined(1_900)));
  process.stdout.write(`eight times eight requests: ${fewMs.toFixed()} ms, eight times 1,900 ${manyMs.toFixed()} ms\n`);
  expect(manyMs).toBeLessThan(6 * fewMs);
});
