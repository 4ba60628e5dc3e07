import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { receiveBodies } from '../../src/http/receive-body.js';

const mebibyte = 1024 * 1024;
const inTwoParts = `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n`;

let server: FastifyInstance;
let port: number;
let bodies: Buffer[];
let inThisTurn = 0;
let mostInTurn: number;

beforeAll(async () => {
  server = fastify({ bodyLimit: 2 * mebibyte });
  receiveBodies(server);
  server.addHook('preParsing', (_request, _reply, payload, done) => {
    payload.on('data', ({ length }: Buffer) => {
      if (inThisTurn === 0) setImmediate(() => (inThisTurn = 0));
      inThisTurn += length;
      mostInTurn = Math.max(mostInTurn, inThisTurn);
    });
    payload.pause();
    done(null, payload);
  });
  server.post('/', ({ body }) => {
    bodies.push(body as Buffer);
    return 'taken';
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  port = (server.server.address() as AddressInfo).port;
});
beforeEach(() => {
  bodies = [];
  mostInTurn = 0;
});
afterAll(() => server.close());

async function open(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function answerTo(...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = await open();
  for (const part of parts) {
    socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

const chunked = (...chunks: readonly Buffer[]) =>
  Buffer.concat([
    ...chunks.flatMap((chunk) => [Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]),
    Buffer.from('0\r\n\r\n'),
  ]);

test.each([
  ['with its length', (body: Buffer) => [`content-length: ${body.length}\r\n\r\n`, body]],
  ['in parts', (body: Buffer) => [`content-length: ${body.length}\r\n\r\n`, body.subarray(0, 7), body.subarray(7)]],
  [
    'in chunks',
    (body: Buffer) => ['transfer-encoding: chunked\r\n\r\n', chunked(body.subarray(0, 7), body.subarray(7))],
  ],
])('a body that is sent %s is received as it is', async (_how, send) => {
  const body = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251));
  expect(await answerTo(inTwoParts, 'content-type: application/json\r\n', ...send(body))).toMatch(/^HTTP\/1.1 200 /);
  expect(bodies).toEqual([body]);
});

test.each([
  ['announced as longer than 2 MiB', ['content-length: 2097153\r\n\r\n']],
  [
    'longer than 2 MiB in chunks',
    ['transfer-encoding: chunked\r\n\r\n', chunked(Buffer.alloc(2 * mebibyte), Buffer.alloc(1))],
  ],
])('one that is %s is refused', async (_how, parts) => {
  const answer = await answerTo(inTwoParts, 'content-type: application/json\r\n', ...parts);
  expect(answer).toContain('request body is larger than 2 MiB');
  expect(bodies).toEqual([]);
});

const keptAlive = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';
const inParts = (count: number, bytes: number) => chunked(...Array<Buffer>(count).fill(Buffer.alloc(bytes, ' ')));

test('one in 64 parts is received however short they are, and longer ones in a part for each 256 bytes more', async () => {
  const headers = `${keptAlive}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`;
  expect(await answerTo(headers, inParts(64, 1))).toMatch(/^HTTP\/1.1 200 /);
  expect(await answerTo(headers, inParts(4096, 256))).toMatch(/^HTTP\/1.1 200 /);
  expect(bodies.map(({ length }) => length)).toEqual([64, 2 ** 20]);
});

test.each([
  ['65 parts of a byte each', 65, 1],
  ['4,096 parts of 250 bytes', 4096, 250],
])('one in %s is refused, and its connection closed', async (_what, count, bytes) => {
  const answer = await answerTo(`${keptAlive}transfer-encoding: chunked\r\n\r\n`, inParts(count, bytes));
  expect(answer).toMatch(/^HTTP\/1.1 [^]*in too many parts/);
  expect(bodies).toEqual([]);
});

test('a connection whose chunked body is answered before its end is closed', async () => {
  const answer = await answerTo('GET /nothing HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
  expect(answer).toMatch(/^HTTP\/1.1 404 /);
});

test.each([
  ['with their length', (body: Buffer) => [`content-length: ${body.length}\r\n\r\n`, body]],
  ['in chunks', (body: Buffer) => ['transfer-encoding: chunked\r\n\r\n', chunked(body)]],
])('six that are sent %s at once are taken in many turns of the event loop', async (_how, send) => {
  const body = Buffer.from(Array.from({ length: 2 * mebibyte }, (_, at) => at % 251));
  const parts = [inTwoParts, 'content-type: application/json\r\n', ...send(body)].map((part) => Buffer.from(part));
  const answers = await Promise.all(Array.from({ length: 6 }, () => answerTo(Buffer.concat(parts))));
  expect(answers.map((answer) => answer.split('\r\n')[0])).toEqual(Array(6).fill('HTTP/1.1 200 OK'));
  expect(bodies.map((taken) => taken.equals(body))).toEqual(Array(6).fill(true));
  // 512 KiB, and what each connection had read by then.
  expect(mostInTurn).toBeLessThan(1.5 * mebibyte);
});

test('one that breaks off is nobody’s', async () => {
  const closed = new Promise<void>((resolve) =>
    server.server.once('connection', (peer) => peer.once('close', () => resolve())),
  );
  const socket = await open();
  socket.write(`${inTwoParts}content-type: application/json\r\ncontent-length: 100\r\n\r\n{}`);
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.destroy();
  await closed;
  expect(bodies).toEqual([]);
});
