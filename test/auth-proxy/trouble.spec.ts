import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { createAuthProxy } from '../../src/app/create-auth-proxy.js';
import { Api } from '../../src/auth-proxy/api.js';
import { readConfig } from '../../src/config/config.js';
import { createLogger } from '../../src/logging/logger.js';
import { startCoordinator } from '../../src/testing/index.js';
import { exchange, textLike } from '../e2e/exchange.js';

const secret = 's'.repeat(32);
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** A server in the place of the API that answers as it is told. */
async function apiThat(answers: RequestListener): Promise<string> {
  const server: Server = createServer(answers);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  opened.push(
    () =>
      new Promise((closed) => {
        server.close(closed);
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The auth proxy as a server of its own. */
async function proxyOf(apiUrl: string, shown = secret, logger = createLogger('silent')): Promise<string> {
  const config = readConfig({ APP: 'proxy', API_URL: apiUrl, PROXY_SECRET: shown });
  const proxy = await createAuthProxy(config, { secret: shown, logger });
  opened.push(() => proxy.close());
  await proxy.app.listen(0, '127.0.0.1');
  return proxy.app.getUrl();
}

const ask = (proxy: string, configId = '00000000-0000-4000-8000-000000000000') =>
  exchange(`${proxy}/v1/wallet_kit_config`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': configId },
  });

const unavailable = {
  status: 503,
  body: {
    code: 14,
    message: 'the Activity API behind this auth proxy does not respond: send the same request again in a moment',
  },
};

test('an unreachable API gives a clear 503; the proxy is live but not ready', async () => {
  const gone = await apiThat(() => undefined);
  await opened.pop()!();
  const proxy = await proxyOf(gone);
  const answer = await ask(proxy);
  expect(answer).toMatchObject(unavailable);
  expect(answer.headers.get('retry-after')).toBe('1');
  // Where the API is, is not for callers.
  expect(answer.text).not.toContain(new URL(gone).port);
  expect((await exchange(`${proxy}/health/live`)).status).toBe(200);
  expect(await exchange(`${proxy}/health/ready`)).toMatchObject({ status: 503, body: { status: 'api-unavailable' } });
});

const answers: readonly (readonly [string, RequestListener])[] = [
  ['hangs up', (request) => request.socket.destroy()],
  ['answers no JSON', (_request, response) => response.end('<html>')],
  ['answers nothing', (_request, response) => response.writeHead(502).end()],
  ['answers an error without a code', (_request, response) => response.writeHead(500).end('{"error":"secret words"}')],
  ['sends elsewhere', (_request, response) => response.writeHead(302, { location: 'http://example.com/' }).end('{}')],
  ['stops in the middle', (_request, response) => void response.writeHead(200, { 'content-length': 9 }).write('{')],
];

test.each(answers)('an API that %s gives a clear 503', async (how, answer) => {
  const url = await apiThat((request, response) => {
    answer(request, response);
    if (how === 'stops in the middle') setTimeout(() => request.socket.destroy(), 20);
  });
  const refused = await ask(await proxyOf(url));
  expect(refused).toMatchObject(unavailable);
  expect(refused.text).not.toContain('secret words');
});

test('gives up on an API that does not respond in time', async () => {
  const url = await apiThat(() => undefined);
  const api = new Api({ url: () => url, secret, clock: Date, answerMs: 50 });
  await expect(api.configuration('00000000-0000-4000-8000-000000000000')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: unavailable.body.message,
  });
});

test('the proxy asks for responses no older than the newest it has received', async () => {
  const configuration = {
    configId: '00000000-0000-4000-8000-000000000000',
    organizationId: '00000000-0000-4000-8000-000000000001',
    organizationName: 'O',
    settings: { allowedOrigins: ['*'], allowedAuthMethods: [] },
  };
  const positions = ['41', '7', '50', undefined, '51'];
  const asked: unknown[] = [];
  const url = await apiThat((request, response) => {
    asked.push(request.headers['x-min-position']);
    const position = positions[asked.length - 1];
    const header = position === undefined ? {} : { 'x-position': position };
    response.writeHead(200, { 'content-type': 'application/json', ...header }).end(JSON.stringify(configuration));
  });
  const proxy = await proxyOf(url);
  for (const _ of positions) expect((await ask(proxy)).status).toBe(200);
  expect(asked).toEqual([undefined, '41', '41', '50', '50']);
});

describe('before a real API', () => {
  const start = async (settings: Readonly<Record<string, string>>) => {
    const coordinator = await startCoordinator({ settings });
    opened.push(() => coordinator.close());
    return coordinator;
  };

  test('a standalone proxy serves its configurations, and nothing of the API', async () => {
    const { url, root } = await start({ APP: 'api', PROXY_SECRET: secret });
    const proxy = await proxyOf(url);
    expect(await ask(proxy, root.authProxyConfigId)).toMatchObject({
      status: 200,
      body: { organizationId: root.organizationId },
    });
    expect(await exchange(`${proxy}/health/ready`)).toMatchObject({ status: 200, body: { status: 'ok' } });
    for (const path of ['public/v1/query/whoami', 'internal/v1/auth-proxy/stamp']) {
      expect((await exchange(`${proxy}/${path}`, { method: 'POST', body: '{}' })).status).toBe(404);
    }
    // And the API by itself is no proxy.
    expect((await ask(url, root.authProxyConfigId)).status).toBe(404);
  });

  test('a preflight request counts against its address, as any other does', async () => {
    const { url } = await start({ PROXY_RATE_LIMIT_PER_ADDRESS: '2' });
    const preflight = async () =>
      (await exchange(`${url}/v1/otp_init`, { method: 'OPTIONS', headers: { origin: 'https://app.example' } })).status;
    expect([await preflight(), await preflight(), await preflight()]).toEqual([204, 204, 429]);
  });

  test('a wrong secret is reported to the operator, and callers see neither secret', async () => {
    const { url, root } = await start({ APP: 'api', PROXY_SECRET: secret });
    const refused = await ask(await proxyOf(url, 'w'.repeat(32)), root.authProxyConfigId);
    expect(refused).toMatchObject({ status: 503, body: { message: textLike('set the same PROXY_SECRET for both') } });
    expect(refused.text).not.toMatch(/s{32}|w{32}/);
  });

  test('a proxy with the wrong secret is not ready, and tells its operator', async () => {
    const { url } = await start({ APP: 'api', PROXY_SECRET: secret });
    const lines: string[] = [];
    const log = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(chunk.toString());
        done();
      },
    });
    const proxy = await proxyOf(url, 'w'.repeat(32), createLogger('error', log));
    for (let count = 0; count < 2; count++) {
      expect(await exchange(`${proxy}/health/ready`)).toMatchObject({
        status: 503,
        body: { status: 'proxy-secret-refused', reason: textLike('set the same one for both') },
      });
    }
    const said = lines.join('').split('set the same PROXY_SECRET for both').length - 1;
    expect([said, /s{32}|w{32}/.test(lines.join(''))]).toEqual([1, false]);
  });

  test('a standalone proxy has metrics', async () => {
    const { url, root } = await start({ APP: 'api', PROXY_SECRET: secret });
    const proxy = await proxyOf(url);
    await ask(proxy, root.authProxyConfigId);
    const { text } = await exchange(`${proxy}/metrics`);
    expect(text).toMatch(/countersign_http_request_seconds_count\{route="\/v1\/:name",status="200"\} 1/);
  });

  test('an API without a secret serves no proxy', async () => {
    const { url } = await start({ APP: 'api' });
    const stamp = await exchange(`${url}/internal/v1/auth-proxy/stamp`, {
      method: 'POST',
      headers: { authorization: 'Bearer undefined' },
      body: '{}',
    });
    expect(stamp).toMatchObject({ status: 404, body: { message: textLike('the auth proxy is not enabled') } });
  });
});
