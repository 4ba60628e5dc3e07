import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAuthProxy } from '../../src/app/create-auth-proxy.js';
import { readConfig } from '../../src/config/config.js';
import { createLogger } from '../../src/logging/logger.js';
import { startCoordinator, type ApiKeyPair, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { clientSignature, codeOf } from '../e2e/one-time-codes.js';

const secret = 's'.repeat(32);
const internal = '/internal/v1/auth-proxy';
const contact = 'ann@example.com';

let coordinator: TestCoordinator;
/** In front of the API; it notes what the proxy asks. */
let relay: Server;
let proxy: Awaited<ReturnType<typeof createAuthProxy>>;
let proxyUrl: string;
const asked: string[] = [];

/** Passes a request on, and its answer back. */
async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
  asked.push(request.url!);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers;
  const { method = 'GET' } = request;
  const answer = await fetch(`${coordinator.url}${request.url}`, {
    method,
    headers: headers as Record<string, string>,
    ...(method === 'GET' ? {} : { body: Buffer.concat(chunks) }),
  });
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
}

beforeAll(async () => {
  coordinator = await startCoordinator({ at: new Date(), settings: { APP: 'api', PROXY_SECRET: secret } });
  relay = createServer((request, response) => void passOn(request, response));
  await new Promise<void>((listening) => relay.listen(0, '127.0.0.1', listening));
  const apiUrl = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
  const config = readConfig({ APP: 'proxy', API_URL: apiUrl, PROXY_SECRET: secret });
  proxy = await createAuthProxy(config, { secret, logger: createLogger('silent') });
  await proxy.app.listen(0, '127.0.0.1');
  proxyUrl = await proxy.app.getUrl();
});
afterAll(async () => {
  await proxy.close();
  relay.closeAllConnections();
  relay.close();
  await coordinator.close();
});

async function call(path: string, body: object): Promise<{ status: number; body: Record<string, string> }> {
  asked.length = 0;
  const { status, body: answer } = await exchange(`${proxyUrl}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
  return { status, body: answer as Record<string, string> };
}

async function verified(address: string, key: ApiKeyPair): Promise<string> {
  const { otpId } = (await call('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: address })).body;
  const otpCode = await codeOf(coordinator, otpId!);
  return (await call('otp_verify', { otpId, otpCode, publicKey: key.publicKey })).body['verificationToken']!;
}

/** What somebody asks who logs in with a code, and names an organization or none. */
async function login(address: string, named: { organizationId?: string } = {}) {
  const key = coordinator.newKey();
  const session = { publicKey: coordinator.newKey().publicKey };
  const verificationToken = await verified(address, key);
  const signed = clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: session });
  return { verificationToken, ...session, ...named, clientSignature: signed };
}

test('a login asks the API three times, whether it names the organization or not', async () => {
  const key = coordinator.newKey();
  const verificationToken = await verified(contact, key);
  const methods = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const { body: home } = await call('signup', {
    userName: 'Ann',
    userEmail: contact,
    verificationToken,
    ...methods,
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
      signup: { ...methods, email: contact },
    }),
  });
  // The first one also learns the key that verifies tokens.
  await call('otp_login', await login('somebody@example.com'));

  expect((await call('otp_login', await login(contact))).status).toBe(200);
  expect(asked).toEqual([`${internal}/configuration`, `${internal}/account-stamp`, '/public/v1/submit/otp_login']);

  const { organizationId } = home as { organizationId: string };
  expect((await call('otp_login', await login(contact, { organizationId }))).status).toBe(200);
  expect(asked).toEqual([`${internal}/configuration`, `${internal}/stamp`, '/public/v1/submit/otp_login']);
});

test('a proof that leads to no account is stamped for none', async () => {
  const { status, body } = await call('otp_login', await login('nobody@example.com'));
  expect([status, body['turnkeyErrorCode']]).toEqual([404, 'ORGANIZATION_NOT_FOUND']);
  expect(asked).toEqual([`${internal}/configuration`, `${internal}/account-stamp`]);
});

test('a question for an account’s stamp stamps nothing that a proxy does not forward', async () => {
  const request = JSON.stringify({ type: 'ACTIVITY_TYPE_CREATE_POLICY_V3', timestampMs: '1', parameters: {} });
  const configId = coordinator.root.authProxyConfigId;
  const question = { configId, filterType: 'EMAIL', filterValue: contact, request };
  const answerTo = (bearer: string) =>
    exchange(`${coordinator.url}${internal}/account-stamp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}` },
      body: JSON.stringify(question),
    });
  expect(await answerTo(secret)).toMatchObject({ status: 403 });
  expect(await answerTo('w'.repeat(32))).toMatchObject({ status: 401 });
});
