import type { ServerResponse } from 'node:http';
import { GuardedFetchError, type GuardedRequest } from '../../src/http-client/guarded-request.js';
import { OutboundHttp } from '../../src/http-client/outbound-http.js';
import { startWebServer, type WebServer } from '../oidc/web-server.js';
import { ok, serverByHand } from './server-by-hand.js';

/*
 * The thread in which requests to hosts of others are made: what it bounds beside what every such request has, and what becomes
 * of requests when it is lost. Most of what it does is tested in guarded-fetch.spec.ts.
 */

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

function outbound(options: Partial<ConstructorParameters<typeof OutboundHttp>[0]> = {}): OutboundHttp {
  const http = new OutboundHttp({ allowPrivateNetwork: true, ...options });
  closing.push(() => http.close());
  return http;
}

async function serve(...args: Parameters<typeof startWebServer>): Promise<WebServer> {
  const server = await startWebServer(...args);
  closing.push(server.close);
  return server;
}

async function byHand(...args: Parameters<typeof serverByHand>): Promise<string> {
  const server = await serverByHand(...args);
  closing.push(server.close);
  return server.url;
}

const patient = { timeoutMs: 25_000 } as const;
const statusOnly: GuardedRequest = { ...patient, method: 'POST', body: '{}', statusOnly: true, keepFor: 'me' };
const failureOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'answered',
    (error: unknown) => (error instanceof GuardedFetchError ? `${error.rule}: ${error.message}` : error),
  );

function inChunksOfOneByte(response: ServerResponse, bytes: number): void {
  response.writeHead(200, { 'content-type': 'text/plain' });
  for (let count = 0; count < bytes; count++) response.write('x');
  response.end();
}

describe('what a host sends', () => {
  const http = new OutboundHttp({ allowPrivateNetwork: true });
  afterAll(() => http.close());
  const tooMuch = 'size: host `127.0.0.1` sent more bytes than its response may have';

  test('is counted as it comes from the network: a body in chunks of one byte ends before its own limit', async () => {
    const { url } = await serve((_request, response) => inChunksOfOneByte(response, 100_000));
    expect(await failureOf(http.fetch(url, patient))).toBe(tooMuch);
    // Small documents may come in any form.
    const small = await serve((_request, response) => inChunksOfOneByte(response, 10_000));
    expect((await http.fetch(small.url, patient)).body).toHaveLength(10_000);
  });

  test('is counted where the parser tells nothing of it', async () => {
    const url = await byHand((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;');
      const more = setInterval(() => socket.write('x'.repeat(10_000)), 1);
      socket.on('close', () => clearInterval(more));
    });
    expect(await failureOf(http.fetch(url, patient))).toBe(tooMuch);
  });

  test('has 128 headers at most', async () => {
    const url = await byHand((socket) => socket.write(ok.replace('content', `${'x: y\r\n'.repeat(3)}content`)));
    expect((await http.fetch(url, patient)).headers).toEqual({ x: 'y,y,y', 'content-length': '0' });
    const lines = (count: number) => Array.from({ length: count }, (_, at) => `x-${at}: y\r\n`).join('');
    const many = await byHand((socket) => socket.write(ok.replace('content', `${lines(128)}content`)));
    expect(await failureOf(http.fetch(many, patient))).toBe('size: host `127.0.0.1` sent more than 128 headers');
  });

  test('is read up to 2 KiB where the status counts: a connection is kept after those, and closed with more', async () => {
    const server = await serve((request, response) => {
      const bytes = Number(new URL(request.url!, 'http://any').searchParams.get('bytes'));
      if (request.url!.startsWith('/pieces')) inChunksOfOneByte(response, bytes);
      else response.end(Buffer.alloc(bytes));
    });
    const after = async (path: string) => {
      const { status, body } = await http.fetch(server.url + path, statusOnly);
      expect([status, body]).toEqual([200, new Uint8Array()]);
      return server.connections();
    };
    expect([await after('/whole?bytes=2048'), await after('/whole?bytes=2049'), await after('/whole?bytes=0')]).toEqual(
      [1, 1, 2],
    );
    expect([await after('/pieces?bytes=2048'), await after('/pieces?bytes=65536'), await after('/')]).toEqual([
      2, 2, 3,
    ]);
  });
});

test('a body that is a part of a buffer is sent as that part, and stays what it was', async () => {
  const bodies: string[] = [];
  const { url } = await serve((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => bodies.push(text));
    request.on('end', () => response.end());
  });
  const whole = Buffer.from('before{"a":1}after');
  await outbound().fetch(url, { ...patient, method: 'POST', body: whole.subarray(6, 13) });
  expect([bodies, whole.toString()]).toEqual([['{"a":1}'], 'before{"a":1}after']);
});

test('a target is looked at, and a refusal keeps its rule and the name of its cause', async () => {
  const http = outbound();
  const { url, requests } = await serve((_request, response) => response.end());
  await http.check(url);
  expect(requests).toEqual([]);
  expect(await failureOf(http.check('http://169.254.169.254/'))).toMatch(
    /^address: host `169\.254\.169\.254` resolves/,
  );
  await expect(http.fetch('http://127.0.0.1:1/')).rejects.toMatchObject({
    rule: 'connection',
    cause: { code: 'ECONNREFUSED' },
  });
});

describe('a thread that is lost', () => {
  const interrupted = (why: string) => `connection: the request was interrupted: ${why}`;
  /** Answers nobody, and does what the URL of a request says. */
  const file = new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ id, url }) => {
        if (url === 'exit') process.exit(1);
        if (url === 'throw') throw new Error('about a secret');
        if (url === 'hang') for (;;);
        if (url === 'answer') parentPort.postMessage({ id, response: { status: 204, headers: {}, body: new Uint8Array() } });
      });
    `)}`,
  );

  test.each([
    ['exit', 'the thread that makes requests ended'],
    ['throw', 'the thread that makes requests failed'],
    ['hang', 'the thread that makes requests stopped responding'],
  ])('because of %s fails what it was sent, and is replaced', async (how, why) => {
    const http = outbound({ file, graceMs: 1_000 });
    const waiting = failureOf(http.fetch('wait', { timeoutMs: 100_000 }));
    expect(await failureOf(http.fetch(how, { timeoutMs: 1_000 }))).toBe(interrupted(why));
    expect(await waiting).toBe(interrupted(why));
    expect((await http.fetch('answer', patient)).status).toBe(204);
  });

  test('because the coordinator ends refuses what comes later as well', async () => {
    const http = outbound({ file });
    const waiting = failureOf(http.fetch('wait', patient));
    await http.close();
    const why = interrupted('the coordinator is shutting down');
    expect([await waiting, await failureOf(http.fetch('answer'))]).toEqual([why, why]);
  });
});
