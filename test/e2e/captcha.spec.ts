import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { coreClient2 } from './core-client.js';
import { exchange } from './exchange.js';
import { LogLines } from './log-lines.js';
import { clientSignature, codeOf } from './one-time-codes.js';

// docs/how-to/captcha.md, with a provider of the siteverify protocol.

const secret = 'secret-key-of-the-captcha';
const siteKey = '1x00000000000000000000AA';

/** What the provider answers next, if not what the token deserves. */
let manner: { status: number; body: string } | 'never' | undefined;
/** Forms that were posted to it. */
let posted: URLSearchParams[] = [];
const spent = new Set<string>();
let provider: Server;
let coordinator: TestCoordinator;
const log = new LogLines();

beforeAll(async () => {
  provider = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString());
      posted.push(form);
      if (manner === 'never') return;
      const token = form.get('response') ?? '';
      const isGood = form.get('secret') === secret && token.startsWith('solved') && !spent.has(token);
      spent.add(token);
      const codes = form.get('secret') === secret ? ['timeout-or-duplicate'] : ['invalid-input-secret'];
      const outcome = isGood
        ? { success: true, hostname: 'app.example.com' }
        : { success: false, 'error-codes': codes };
      const { status, body } = manner ?? { status: 200, body: JSON.stringify(outcome) };
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    });
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  coordinator = await startCoordinator({ at: new Date(), settings: settings(), log, logLevel: 'debug' });
});
afterAll(async () => {
  await coordinator.close();
  provider.closeAllConnections();
  await new Promise((resolve) => provider.close(resolve));
});
beforeEach(() => {
  manner = undefined;
  posted = [];
});

function settings(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    ALLOW_PRIVATE_NETWORK: 'true',
    PROXY_CAPTCHA_VERIFY_URL: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/siteverify`,
    PROXY_CAPTCHA_SECRET: secret,
    PROXY_CAPTCHA_SITE_KEY: siteKey,
    PROXY_RATE_LIMIT_PER_CONTACT: '0',
    PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
    ...more,
  };
}

let tokens = 0;
const solved = () => `solved-${++tokens}`;
let people = 0;
const newContact = () => `person-${++people}@example.com`;

async function call(path: string, body: object | undefined, token?: string, at = coordinator) {
  const { status, body: answer } = await exchange(`${at.url}/v1/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-auth-proxy-config-id': at.root.authProxyConfigId,
      ...(token === undefined ? {} : { 'x-captcha-token': token }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status, body: answer as Readonly<Record<string, string>> };
}

const code = () => ({ otpType: 'OTP_TYPE_EMAIL', contact: newContact() });
const signUp = (more: object = {}) => {
  const key = coordinator.newKey();
  const apiKeys = [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }];
  return { apiKeys, authenticators: [], oauthProviders: [], ...more };
};
const requests: [string, () => object][] = [
  ['otp_init', code],
  ['otp_init_v2', code],
  ['signup', signUp],
  ['signup_v2', signUp],
];

describe.each(requests)('%s', (path, body) => {
  test('takes a solved captcha, which is checked with the secret, and once', async () => {
    const token = solved();
    expect(await call(path, body(), token)).toMatchObject({ status: 200 });
    expect(posted.map((form) => Object.fromEntries(form))).toEqual([{ secret, response: token }]);
    expect(await call(path, body(), token)).toMatchObject({ status: 403, body: { code: 7 } });
  });

  test('is refused without one, with a wrong one, or with what cannot be a token', async () => {
    const before = coordinator.messages().length;
    const missing = 'invalid request: X-Captcha-Token: is required: solve the captcha first';
    for (const token of [undefined, ''])
      expect(await call(path, body(), token)).toMatchObject({ status: 400, body: { code: 3, message: missing } });
    expect(await call(path, body(), 'x'.repeat(8_193))).toMatchObject({ status: 400 });
    expect(posted).toEqual([]);
    const wrong = await call(path, body(), 'guessed');
    expect(wrong).toMatchObject({
      status: 403,
      body: { message: 'the captcha is not solved, or its token was used before or is too old: solve it again' },
    });
    expect(coordinator.messages()).toHaveLength(before);
  });

  test.each<[string, typeof manner]>([
    ['answers with an error', { status: 500, body: '' }],
    ['answers with a yes and an error', { status: 500, body: '{"success":true}' }],
    ['answers with something else', { status: 200, body: '<html>' }],
    ['answers with no outcome', { status: 200, body: '{"success":"true"}' }],
    ['answers with too much', { status: 200, body: `{"success":true,"x":"${'x'.repeat(100_000)}"}` }],
    ['redirects', { status: 302, body: '{"success":true}' }],
    ['refuses the secret', { status: 400, body: '{"success":false,"error-codes":["invalid-input-secret"]}' }],
  ])('is refused when the provider %s', async (_how, now) => {
    manner = now;
    const answer = await call(path, body(), solved());
    expect(answer).toMatchObject({ status: 503, body: { code: 14 } });
    expect(answer.body['message']).toMatch(/^the captcha cannot be checked now: solve it again in a moment/);
  });
});

test('is refused when the provider does not answer within five seconds', async () => {
  manner = 'never';
  expect(await call('otp_init', code(), solved())).toMatchObject({ status: 503 });
});

test('a sign-up with a code needs no second one: its token serves once, and no other opens anything', async () => {
  const contact = newContact();
  const { body: sent } = await call('otp_init', { ...code(), contact }, solved());
  const key = coordinator.newKey();
  const otpCode = await codeOf(coordinator, sent['otpId']!);
  const verify = { otpId: sent['otpId'], otpCode, publicKey: key.publicKey };
  const { body } = await call('otp_verify', verify);
  const verificationToken = body['verificationToken']!;
  posted = [];
  const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const signup = { signup: { ...asked, email: contact } };
  const signature = clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', signup);
  const request = { userEmail: contact, verificationToken, ...asked, clientSignature: signature };
  expect(await call('signup', request)).toMatchObject({ status: 200 });
  expect(await call('signup', request)).toMatchObject({ status: 400 });
  // Whatever else it says, a sign-up with a token has to be one that the token is for.
  for (const token of [verificationToken, 'none', `${verificationToken.slice(0, -4)}AAAA`]) {
    const other = await call('signup', signUp({ verificationToken: token }));
    expect([token.length, other.status]).toEqual([token.length, 400]);
  }
  expect(posted).toEqual([]);
});

test('logins and other requests need none', async () => {
  for (const path of ['otp_verify', 'otp_login', 'oauth_login', 'account'])
    expect((await call(path, {})).body['message']).not.toContain('X-Captcha-Token');
  expect(await call('wallet_kit_config', undefined)).toMatchObject({ status: 200 });
  expect(posted).toEqual([]);
});

test('`@turnkey/core` 2.x sends the token, and the React kit reads the site key', async () => {
  const { client } = coreClient2({
    apiBaseUrl: coordinator.url,
    authProxyUrl: coordinator.root.authProxyUrl,
    authProxyConfigId: coordinator.root.authProxyConfigId,
    organizationId: coordinator.organizationId,
  });
  const token = solved();
  const asked = { ...code(), captchaToken: token };
  expect(await client.initOtp(asked)).toMatchObject({ otpId: expect.any(String) as string });
  expect(posted.map((form) => form.get('response'))).toEqual([token]);
  await expect(client.initOtp({ ...asked, ...code() })).rejects.toThrow();
  expect(await call('wallet_kit_client_params', undefined)).toEqual({
    status: 200,
    body: { turnstileSiteKey: siteKey },
  });
});

test('browsers may send it', async () => {
  const { headers } = await fetch(`${coordinator.url}/v1/otp_init`, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://app.example.com',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-captcha-token',
    },
  });
  expect(headers.get('access-control-allow-headers')).toContain('X-Captcha-Token');
});

test('the log says once a minute what is wrong, and has neither secret nor token', async () => {
  manner = { status: 200, body: '{"success":false,"error-codes":["invalid-input-secret"]}' };
  for (let times = 0; times < 3; times++) await call('otp_init', code(), solved());
  const lines = log.all().filter(({ msg }) => msg.startsWith('captchas cannot be checked at PROXY_CAPTCHA_VERIFY_URL'));
  expect(lines).toHaveLength(1);
  expect(log.text).not.toMatch(/solved-\d|secret-key-of-the-captcha/);
});

test('without the setting, none is required or asked for', async () => {
  const without = await startCoordinator();
  try {
    expect(await call('otp_init', code(), undefined, without)).toMatchObject({ status: 200 });
    expect(await call('wallet_kit_client_params', undefined, undefined, without)).toEqual({ status: 200, body: {} });
    expect(posted).toEqual([]);
  } finally {
    await without.close();
  }
});
