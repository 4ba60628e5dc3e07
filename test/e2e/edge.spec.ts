import { randomUUID } from 'node:crypto';
import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import { thisThread } from '../../src/fairness/turns.js';
import { bytesInFlight } from '../../src/rate-limits/bodies-in-flight.js';
import {
  startCoordinator,
  type ApiKeyPair,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { exchange, refusal } from './exchange.js';
import { IdentityProvider } from './identity-provider.js';
import { clientSignature, codeOf, messageOf } from './one-time-codes.js';
import { encoded, operatorPaths } from './operator-paths.js';
import { startTenants, type Tenant } from './tenants.js';
import { until } from './until.js';
import { WebhookReceiver } from './webhook-receiver.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';

let coordinator: TestCoordinator;
const running: TestCoordinator[] = [];

beforeEach(async () => {
  coordinator = await startCoordinator();
  running.push(coordinator);
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()));
});

const resultOf = ({ result }: { readonly result: object }) => Object.values(result)[0] as Record<string, string>;
const keyParams = ({ publicKey }: ApiKeyPair) => ({
  apiKeyName: 'key',
  publicKey,
  curveType: 'API_KEY_CURVE_P256',
});

function proxy(path: string, body: object, of = coordinator) {
  return exchange(`${of.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': of.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
}

const both = (...ids: readonly string[]) => ids.map((id) => `approvers.any(user, user.id == '${id}')`).join(' && ');

/** Somebody whom nobody knows: a sub-organization that the public sign-up has made for an own key. */
async function stranger(more: object = {}, at = coordinator) {
  const key = at.newKey();
  const answer = await proxy('signup', { userName: 'Mallory', apiKeys: [keyParams(key)], ...more }, at);
  expect(answer.status).toBe(200);
  const { organizationId, userId } = answer.body as { organizationId: string; userId: string };
  return { organizationId, userId, key, client: at.clientFor(key, organizationId) };
}

describe('the auth proxy', () => {
  test('counts and keeps nothing of a request that it refuses for its size', async () => {
    const limited = await startCoordinator({ settings: { PROXY_RATE_LIMIT_PER_CONTACT: '1' } });
    running.push(limited);
    for (let number = 0; number < 3; number++) {
      const contact = `${number}${'x'.repeat(1_000_000)}`;
      const { status, body } = await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact }, limited);
      expect([status, body]).toEqual([
        400,
        expect.objectContaining({
          message: expect.stringContaining('contact: must have 0 to 254 characters') as string,
        }),
      ]);
    }
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com' };
    expect((await proxy('otp_init', asked, limited)).status).toBe(200);
    const { status, headers, body } = await proxy('otp_init', asked, limited);
    expect([status, headers.get('retry-after')]).toEqual([429, '600']);
    expect(JSON.stringify(body)).toContain('1 codes in ten minutes from one address to one contact');
  });

  test('refuses a body that is nested too deep, and says so', async () => {
    const headers = {
      'content-type': 'application/json',
      'x-auth-proxy-config-id': coordinator.root.authProxyConfigId,
    };
    for (const body of [`{"apiKeys":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, '{"a":'.repeat(200_000)]) {
      const answer = await exchange(`${coordinator.url}/v1/signup`, { method: 'POST', headers, body });
      expect(answer).toMatchObject({ status: 400, body: { message: 'request body is nested deeper than 32 levels' } });
    }
  });
});

describe('a flood through the auth proxy', () => {
  let tenants: Awaited<ReturnType<typeof startTenants>>;
  let [flooded, others]: [string, string] = ['', ''];
  const answered: string[] = [];

  const ask = async (configId: string, address: string) => {
    const headers = { 'x-auth-proxy-config-id': configId, 'x-forwarded-for': address };
    const { status } = await exchange(`${tenants.url}/v1/wallet_kit_config`, { method: 'POST', headers });
    answered.push(address);
    return status;
  };

  beforeAll(async () => {
    const limits = ['ADDRESS', 'CONFIGURATION'].map((of) => [`PROXY_RATE_LIMIT_PER_${of}`, '0']);
    tenants = await startTenants({ TRUST_PROXY: 'true', ...(Object.fromEntries(limits) as Record<string, string>) });
    const enabled = async ({ client }: Tenant) => {
      const { result } = await client.submit('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {});
      return (Object.values(result)[0] as { configId: string }).configId;
    };
    [flooded, others] = [await enabled(tenants.parent), await enabled(tenants.stranger)];
    for (const configId of [flooded, others]) expect(await ask(configId, '198.51.100.1')).toBe(200);
  });

  afterAll(() => tenants.close());

  test.each<[string, () => string, (at: number) => string]>([
    ['of one address, that names configurations which nobody has', () => tenants.parent.userId, () => '203.0.113.66'],
    ['of many addresses, to one configuration', () => flooded, (at) => `203.0.113.${at}`],
  ])('%s, lets whoever calls another in after a turn', async (_name, configId, address) => {
    answered.length = 0;
    // As long as so many want the thread, hardly any call begins.
    const hurdle = { isOver: false };
    const taking = Array.from({ length: 200 }, async (_, at) => {
      while (!hurdle.isOver) await thisThread.next([`hurdle ${at}`], { alone: true });
    });
    const flood = Array.from({ length: 50 }, (_, at) => ask(configId(), address(at)));
    await until('the flood has come', () => thisThread.size + answered.length >= 200 + 50 - 2);
    // Whatever has been let in before its turn has been answered by now.
    expect(answered.length).toBeLessThan(15);
    const one = ask(others, '198.51.100.2');
    await until('somebody else has come', () => thisThread.size + answered.length >= 200 + 51 - 2);
    const before = answered.length;
    hurdle.isOver = true;
    await Promise.all([...taking, ...flood]);
    expect(await one).toBe(200);
    expect(answered.indexOf('198.51.100.2') - before).toBeLessThan(15);
  });
});

test('limits of the API count who calls the auth proxy, not the auth proxy', async () => {
  const settings = { TRUST_PROXY: 'true', RATE_LIMIT_PER_ADDRESS: '20', RATE_LIMIT_PER_CREDENTIAL: '10' };
  const limited = await startCoordinator({ settings: { ...settings, RATE_LIMIT_PER_ORGANIZATION: '30' } });
  running.push(limited);
  const verify = (address: string) =>
    exchange(`${limited.url}/v1/otp_verify`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-auth-proxy-config-id': limited.root.authProxyConfigId,
        'x-forwarded-for': address,
      },
      body: JSON.stringify({ otpId: randomUUID(), otpCode: '000000000' }),
    });
  const one = await Promise.all(Array.from({ length: 60 }, () => verify('203.0.113.66')));
  const others = await Promise.all(Array.from({ length: 20 }, (_, number) => verify(`203.0.113.${number}`)));
  expect(one.map(({ status }) => status)).toContain(429);
  expect(others.map(({ status }) => status)).not.toContain(429);
});

test('a body is counted before it is received, and one caller leaves room for others', async () => {
  const behind = await startCoordinator({ settings: { TRUST_PROXY: 'true' } });
  running.push(behind);
  const share = bytesInFlight(getHeapStatistics().heap_size_limit) / 2;
  const fits = Math.floor(share / 2 ** 21);
  const sockets: Socket[] = [];
  /** A request of 2 MiB whose body does not come; its answer, if it has one at once. */
  const begin = (address: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(Number(new URL(behind.url).port), '127.0.0.1');
      sockets.push(socket);
      socket.on('data', (data) => resolve(data.toString()));
      socket.on('error', () => undefined);
      socket.write(
        `POST /public/v1/query/whoami HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${address}\r\n` +
          `content-type: application/json\r\ncontent-length: ${2 ** 21}\r\n\r\n`,
      );
    });
  const whoami = (bytes: number, address: string) =>
    exchange(`${behind.url}/public/v1/query/whoami`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ organizationId: behind.organizationId, filler: 'x'.repeat(bytes) }),
    });
  const refused = await Promise.race(Array.from({ length: fits + 1 }, () => begin('203.0.113.66')));
  expect(refused).toMatch(/^HTTP\/1\.1 429 /);
  expect(refused).toContain('in request bodies of more than 65536 bytes at a time from one address');
  // Without a stamp: 401 says that it was received.
  expect([(await whoami(100, '203.0.113.66')).status, (await whoami(100_000, '203.0.113.1')).status]).toEqual([
    401, 401,
  ]);
  for (const socket of sockets) socket.destroy();
  await until('it is given back', async () => (await whoami(2_000_000, '203.0.113.66')).status === 401);
});

test('bodies that are announced and do not come make room for whoever has announced less', async () => {
  const behind = await startCoordinator({ settings: { TRUST_PROXY: 'true' } });
  running.push(behind);
  const fits = Math.floor(bytesInFlight(getHeapStatistics().heap_size_limit) / 2 ** 21);
  const answers: string[] = [];
  const sockets: Socket[] = [];
  for (let one = 0; one < fits; one += 1) {
    const socket = connect(Number(new URL(behind.url).port), '127.0.0.1');
    sockets.push(socket);
    let text = '';
    socket.on('data', (data) => (text += data.toString())).on('close', () => answers.push(text));
    const written = new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    socket.write(
      `POST /public/v1/query/whoami HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 203.0.113.${one % 2}\r\n` +
        `content-type: application/json\r\ncontent-length: ${2 ** 21}\r\n\r\n{`,
    );
    await written;
  }
  const asked = async () =>
    exchange(`${behind.url}/public/v1/query/whoami`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.99' },
      body: JSON.stringify({ organizationId: behind.organizationId, filler: 'x'.repeat(2_090_000) }),
    });
  // Without a stamp: 401 says that it was received.
  await until('the announced bodies are counted', async () => {
    expect((await asked()).status).toBe(401);
    return answers.length > 0;
  });
  const [given = ''] = answers;
  expect(given).toMatch(/^HTTP\/1\.1 503 /);
  expect(given.toLowerCase()).toContain('connection: close');
  expect(given).toContain('as many request bodies as fit into its memory');
  for (const socket of sockets) socket.destroy();
});

test('what is nested without end is refused, wherever it stands', async () => {
  const deep = '['.repeat(200_000) + ']'.repeat(200_000);
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
    privateKeys: [
      {
        privateKeyName: 'k',
        curve: 'CURVE_SECP256K1',
        addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        privateKeyTags: [],
      },
    ],
  });
  const { privateKeys } = Object.values(result)[0] as { privateKeys: [{ privateKeyId: string }] };
  const typed = (message: string) =>
    `{"types":{"A":[{"name":"a","type":"uint8"}]},"primaryType":"A","domain":{},"message":${message}}`;
  const sign = (encoding: string, payload: string) =>
    coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
      signWith: privateKeys[0].privateKeyId,
      encoding,
      hashFunction: 'HASH_FUNCTION_NO_OP',
      payload,
    });
  const upload = (type: string, smartContractInterface: string) =>
    coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      label: 'deep',
      type,
      smartContractAddress: '0xdac17f958d2ee523a2206206994597c13d831ec7',
      notes: '',
      smartContractInterface,
    });
  for (const attempt of [
    () => sign('PAYLOAD_ENCODING_EIP712', typed(`{"a":${deep}}`)),
    () => sign('PAYLOAD_ENCODING_EIP712', typed(deep)),
    () => sign('PAYLOAD_ENCODING_EIP7702_AUTHORIZATION', `{"chainId":${deep}}`),
    () => upload('SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM', `[${deep.slice(100_000, -100_000)}]`),
  ]) {
    const { status, message } = await refusal(attempt());
    expect([status, message]).toEqual([400, expect.stringContaining('nested deeper than 20000 levels')]);
  }
});

describe('what is for operators', () => {
  const foreign = { origin: 'https://evil.example' };

  test.each([...operatorPaths, ...operatorPaths.map(encoded), '/metrics?%zz', '/metrics%zz'])(
    '%s answers no page of another origin',
    async (path) => {
      const preflight = { method: 'OPTIONS', headers: { ...foreign, 'access-control-request-method': 'GET' } };
      for (const init of [{ headers: foreign }, preflight]) {
        const { headers } = await fetch(coordinator.url + path, init);
        const told = ['allow-origin', 'allow-methods', 'expose-headers'].map((name) =>
          headers.get(`access-control-${name}`),
        );
        expect(told).toEqual([null, null, null]);
      }
    },
  );

  test.each(operatorPaths)('%s answers none where a proxy has asked for its whole address', async (path) => {
    const { hostname, port } = new URL(coordinator.url);
    const { headers } = await new Promise<IncomingMessage>((answered, failed) => {
      const asked = { hostname, port, path: `http://${hostname}${path}`, headers: foreign };
      get(asked, (response) => answered(response.resume())).on('error', failed);
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  test('what pages are to call, answers them', async () => {
    for (const path of ['/public/v1/discovery/keys', '/.well-known/jwks.json']) {
      const { headers } = await fetch(coordinator.url + path, { headers: foreign });
      expect([path, headers.get('access-control-allow-origin')]).toEqual([path, '*']);
    }
  });
});

describe('origins of passkeys', () => {
  const name = 'FEATURE_NAME_WEBAUTHN_ORIGINS';

  async function withPasskey(of: TestCoordinator) {
    const passkey = new SoftwareAuthenticator();
    const created = await of.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: 'Ann',
      rootUsers: [
        {
          userName: 'Ann',
          apiKeys: [keyParams(of.newKey())],
          authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    });
    const { subOrganizationId: organizationId } = resultOf(created) as { subOrganizationId: string };
    const set = (value: string, client: StampingClient) =>
      client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name, value });
    const ask = async (origin: string) => {
      const body = JSON.stringify({ organizationId });
      const stamp = passkey.assert({ body, origin });
      const headers = { 'content-type': 'application/json', 'x-stamp-webauthn': stamp };
      return (await fetch(`${of.url}/public/v1/query/whoami`, { method: 'POST', headers, body })).status;
    };
    return { set, ask };
  }
  const [usual, app] = [
    'https://wallet.example.com',
    'android:apk-key-hash:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  ];

  test('are inherited from the parent', async () => {
    const { set, ask } = await withPasskey(coordinator);
    expect([await ask(usual), await ask(app)]).toEqual([200, 200]);
    await set(usual, coordinator.client);
    expect([await ask(usual), await ask(app)]).toEqual([200, 401]);
  });

  test('are the operator’s where no organization has named any', async () => {
    const limited = await startCoordinator({ settings: { WEBAUTHN_ORIGINS: usual } });
    running.push(limited);
    const { set, ask } = await withPasskey(limited);
    expect([await ask(usual), await ask(app)]).toEqual([200, 401]);
    await set(app, limited.client);
    expect([await ask(usual), await ask(app)]).toEqual([401, 200]);
  });
});

describe('a passkey that could not be used', () => {
  const [usual, other] = ['https://wallet.example.com', 'https://login.wallet.example.com'];
  const passkey = (origin: string) => ({
    authenticatorName: 'passkey',
    ...new SoftwareAuthenticator().register({ origin }),
  });
  const founding = (of: TestCoordinator, origin: string) =>
    of.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: 'Ann',
      rootUsers: [
        { userName: 'Ann', apiKeys: [keyParams(of.newKey())], authenticators: [passkey(origin)], oauthProviders: [] },
      ],
      rootQuorumThreshold: 1,
    });
  const refused = { status: 400, message: expect.stringContaining('is not one of the allowed origins') as string };

  test('is not registered: its origin is none of the operator’s, the parent’s or the organization’s', async () => {
    const limited = await startCoordinator({ settings: { WEBAUTHN_ORIGINS: usual } });
    running.push(limited);
    const { client, root } = limited;
    const add = (origin: string, by = client, userId = root.userId) =>
      by.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators: [passkey(origin)] });
    const user = (origin: string) =>
      client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
        users: [{ userName: origin, apiKeys: [], authenticators: [passkey(origin)], oauthProviders: [], userTags: [] }],
      });
    const set = (value: string) =>
      client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name: 'FEATURE_NAME_WEBAUTHN_ORIGINS', value });
    for (const attempt of [add, user, (origin: string) => founding(limited, origin)]) {
      await attempt(usual);
      expect(await refusal(attempt(other))).toMatchObject(refused);
    }
    // What the parent says holds for its sub-organizations.
    await set(other);
    await founding(limited, other);
    expect(await refusal(founding(limited, usual))).toMatchObject(refused);
    const key = limited.newKey();
    const signup = await proxy('signup', { userName: 'Ann', apiKeys: [keyParams(key)] }, limited);
    const { organizationId, userId } = signup.body as { organizationId: string; userId: string };
    const ann = limited.clientFor(key, organizationId);
    expect(await refusal(add(usual, ann, userId))).toMatchObject(refused);
    await add(other, ann, userId);
  });

  test('is registered wherever a page may have one, when nobody says where', async () => {
    await founding(coordinator, usual);
    await founding(coordinator, other);
  });
});

describe('slow requests', () => {
  /** Whatever a server sends until it ends the connection; fails if it does not. */
  const untilClosed = (lines: readonly string[], trickle = '') =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(coordinator.url).port), '127.0.0.1');
      let said = '';
      // Each byte is progress, and yet it is too slow; and they are fewer parts than a body may have.
      const dripping = setInterval(() => trickle && socket.write(trickle), 200);
      const late = setTimeout(() => socket.destroy(new Error(`still open, after: ${said}`)), 12_000);
      socket.on('data', (chunk) => (said += String(chunk)));
      socket.on('error', (error) => (said === '' ? reject(error) : undefined));
      socket.on('close', () => {
        clearInterval(dripping);
        clearTimeout(late);
        resolve(said);
      });
      socket.write(lines.join('\r\n'));
    });

  test('are ended: headers that do not end, a body that does not, one of each byte by byte', async () => {
    const limited = await startCoordinator({ settings: { HEADERS_TIMEOUT: '1', REQUEST_TIMEOUT: '2' } });
    running.push(limited);
    coordinator = limited;
    const head = ['POST /public/v1/query/whoami HTTP/1.1', 'Host: localhost'];
    const body = [...head, 'Content-Type: application/json', 'Content-Length: 100000', '', '{'];
    const ended = await Promise.all([
      untilClosed([...head, '']),
      untilClosed([...head, 'X-Slow: '], 'x'),
      untilClosed(body),
      untilClosed(body, ' '),
    ]);
    for (const said of ended) expect(said).toMatch(/^HTTP\/1\.1 408 /);
    expect(await limited.client.query('whoami')).toMatchObject({ username: 'Root user' });
  }, 20_000);

  test('are ended after the time for headers, while those whose headers were sent in time still have theirs', async () => {
    const limited = await startCoordinator({ settings: { HEADERS_TIMEOUT: '1', REQUEST_TIMEOUT: '6' } });
    running.push(limited);
    coordinator = limited;
    const head = ['POST /public/v1/query/whoami HTTP/1.1', 'Host: localhost'];
    const order: string[] = [];
    const told = (name: string) => (said: string) => {
      expect(said).toMatch(/^HTTP\/1\.1 408 /);
      order.push(name);
    };
    const began = performance.now();
    const body = untilClosed([...head, 'Content-Length: 100000', '', '{'], ' ').then(told('body'));
    await untilClosed([...head, 'X-Slow: '], 'x').then(told('headers'));
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(order).toEqual(['headers']);
    await body;
    expect(performance.now() - began).toBeGreaterThan(5_000);
  }, 20_000);
});

test('a sign-up with more OIDC tokens than a user may have costs no request to their issuer', async () => {
  const identities = await IdentityProvider.start();
  try {
    const own = await startCoordinator({ settings: identities.settings });
    running.push(own);
    const named = async (subject: string) => ({
      providerName: subject,
      oidcToken: await identities.idToken({ subject, at: own.clock.now() }),
    });
    const tokens = await Promise.all(Array.from({ length: 60 }, (_none, number) => named(`person ${number}`)));
    const attempt = (oauthProviders: object[]) =>
      proxy('signup', { userName: 'Mallory', apiKeys: [keyParams(own.newKey())], oauthProviders }, own);
    const answer = await attempt(tokens);
    expect([answer.status, (answer.body as { message: string }).message]).toEqual([
      429,
      expect.stringContaining('a user may have at most 10 OAuth providers, got 60') as string,
    ]);
    expect(identities.requests).toEqual([]);
    expect((await attempt(tokens.slice(0, 10))).status).toBe(200);
  } finally {
    await identities.close();
  }
});

test('a copy that is started to look at it answers queries, refuses activities and votes, and sends nothing', async () => {
  const receiver = await WebhookReceiver.start();
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  try {
    const settings = { VOTE_NOTICES: 'true', ALLOW_PRIVATE_NETWORK: 'true' };
    const copy = await startCoordinator({ settings, logLevel: 'warn', log });
    running.push(copy);
    const ann = await copy.createUser('Ann', { userEmail: 'ann@example.com' });
    await copy.createUser('Bob', { userEmail: 'bob@example.com' });
    await copy.createPolicy({ policyName: 'two', condition: 'true', consensus: 'approvers.count() >= 2' });
    const asked = await ann.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] });
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    await copy.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
      name: 'all',
      url: receiver.url,
      subscriptions: [{ eventType: 'ACTIVITY_UPDATES' }],
    });
    await copy.settled();
    const sent = [copy.messages().length, receiver.received.length];
    await copy.restart({ settings: { RESTORED: 'true' } });
    const before = await copy.recorded();
    expect(lines.join('')).toContain('RESTORED is true: this server is read-only');
    const otp = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'x' };
    for (const [type, parameters] of [
      ['ACTIVITY_TYPE_INIT_OTP_V3', otp],
      ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'y', userIds: [] }],
      ['ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: asked.fingerprint }],
      ['ACTIVITY_TYPE_REJECT_ACTIVITY', { fingerprint: asked.fingerprint }],
    ] as const) {
      const refused = await refusal(copy.client.submit(type, parameters));
      expect([type, refused.status, refused.message]).toEqual([type, 503, expect.stringContaining('read-only')]);
    }
    const { activity } = await copy.client.query<{ activity: { status: string } }>('get_activity', {
      activityId: asked.id,
    });
    expect(activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await copy.recorded()).toEqual(before);
    // Whatever was on its way has gone when the coordinator has let go of everything.
    await copy.close();
    running.pop();
    expect([copy.messages().length, receiver.received.length]).toEqual(sent);
  } finally {
    await receiver.close();
  }
});

test('settings of the harness are spelled as they are', async () => {
  const settings = { RATE_LIMIT_PER_ADRESS: '1' };
  await expect(startCoordinator({ settings })).rejects.toThrow('did you mean RATE_LIMIT_PER_ADDRESS?');
});

describe('messages speak for the parent', () => {
  const lure = {
    appName: 'Your Bank, see http://evil.example',
    emailCustomization: {
      magicLinkTemplate: 'https://evil.example/%s',
      logoUrl: 'https://evil.example/logo.png',
      templateVariables: JSON.stringify({ introText: 'Call evil.example now', userName: 'evil.example' }),
    },
    smsCustomization: { template: 'evil.example wants {{.OtpCode}}' },
    replyToEmailAddress: 'mallory@evil.example',
    sendFromEmailSenderName: 'evil.example',
  };
  const initTypes = ['ACTIVITY_TYPE_INIT_OTP_V3', 'ACTIVITY_TYPE_INIT_OTP_V2'] as const;

  test('a sub-organization sends codes to nobody but its own users', async () => {
    const { client } = await stranger({ userEmail: 'mallory@example.com' });
    for (const type of initTypes) {
      for (const [otpType, contact] of [
        ['OTP_TYPE_EMAIL', 'victim@example.com'],
        ['OTP_TYPE_SMS', '+13214567890'],
      ]) {
        const refused = await refusal(client.submit(type, { otpType, contact, ...lure }));
        expect([refused.status, refused.message]).toEqual([403, expect.stringContaining(`none has \`${contact}\``)]);
      }
    }
    expect(coordinator.messages()).toEqual([]);
  });

  test('a sub-organization sends codes in the words of its parent, whatever it asks for', async () => {
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', {
      emailCustomizationParams: { appName: 'Acme', magicLinkTemplate: 'https://acme.example/%s' },
      smsCustomizationParams: { template: '{{.OtpCode}} by Acme' },
      replyToEmailAddress: 'help@acme.example',
    });
    const { client } = await stranger({
      organizationName: 'evil.example',
      userEmail: 'victim@example.com',
      userPhoneNumber: '+13214567890',
    });
    const contacts = { OTP_TYPE_EMAIL: 'victim@example.com', OTP_TYPE_SMS: '+13214567890' };
    for (const [otpType, contact] of Object.entries(contacts)) {
      for (const type of ['ACTIVITY_TYPE_INIT_OTP_V3', 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3']) {
        await client.submit(type, { otpType, contact, ...lure });
      }
    }
    const targetPublicKey = coordinator.newKey().publicKey;
    await client.submit('ACTIVITY_TYPE_EMAIL_AUTH_V3', {
      email: 'victim@example.com',
      targetPublicKey,
      emailCustomization: { ...lure.emailCustomization, appName: lure.appName },
      replyToEmailAddress: lure.replyToEmailAddress,
    });
    await until('all are sent', () => coordinator.messages().length === 5);
    expect(JSON.stringify(coordinator.messages())).not.toContain('evil');
    const texts = coordinator.messages().map(({ subject, text }) => subject ?? text.replace(/^\w+/, '…'));
    expect(texts.sort()).toEqual([
      'Sign in to Acme',
      'Your code for Acme',
      'Your code for Acme',
      '… by Acme',
      '… by Acme',
    ]);
    expect(coordinator.messages()[0]).toMatchObject({ replyTo: 'help@acme.example' });
    expect(coordinator.messages()[0]!.text).toContain('https://acme.example/');
  });

  test('a user of the parent chooses the words in a sub-organization too', async () => {
    const { organizationId } = await stranger({ userEmail: 'ann@example.com' });
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'Back end' };
    const sent = await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', asked, { organizationId });
    expect((await messageOf(coordinator, resultOf(sent)['otpId']!)).subject).toBe('Your code for Back end');
  });

  test('a sub-organization invites where its parent says so, and in its parent’s words', async () => {
    const { client, userId } = await stranger({ organizationName: 'evil.example', userName: 'evil.example' });
    const asked = (receiverUserEmail: string) => ({
      invitations: [
        {
          receiverUserName: 'evil.example',
          receiverUserEmail,
          receiverUserTags: [],
          accessType: 'ACCESS_TYPE_ALL',
          senderUserId: userId,
        },
      ],
    });
    const refused = await refusal(client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', asked('victim@example.com')));
    expect([refused.status, refused.message]).toEqual([
      403,
      expect.stringContaining('FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS'),
    ]);
    // Its own word for it does not count.
    const feature = { name: 'FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS', value: '' };
    await client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', feature);
    expect((await refusal(client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', asked('victim@example.com')))).status).toBe(
      403,
    );
    expect(coordinator.messages()).toEqual([]);

    await coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', feature);
    await client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', asked('friend@example.com'));
    await until('it is sent', () => coordinator.messages().length === 1);
    const { text, subject } = coordinator.messages()[0]!;
    expect(subject).toMatch(/^An invitation to an account at /);
    expect([subject, text.replace(/https?:\S+/, '')].join()).not.toContain('evil');
  });

  test('one contact is written to a few times only, whoever asks under whatever name', async () => {
    const contact = 'victim@example.com';
    const asked = (number: number) => ({
      otpType: 'OTP_TYPE_EMAIL',
      contact,
      appName: 'x',
      userIdentifier: `${number}`,
    });
    const outcomes: string[] = [];
    for (const mallory of [await stranger({ userEmail: contact }), await stranger({ userEmail: contact })]) {
      for (let number = 0; number < 6; number++) {
        const type = number % 2 ? 'ACTIVITY_TYPE_INIT_OTP_V3' : 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3';
        outcomes.push(
          await mallory.client.submit(type, asked(number)).then(
            () => 'sent',
            ({ status }: { status: number }) => String(status),
          ),
        );
      }
    }
    expect(outcomes.filter((outcome) => outcome === 'sent')).toHaveLength(4);
    expect(new Set(outcomes)).toEqual(new Set(['sent', '429']));
    const last = await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
    expect([last.status, last.headers.get('retry-after')]).toEqual([429, '180']);
    expect(JSON.stringify(last.body)).toContain('4 messages to one contact in three minutes');
    // What is the parent's is not used up by them.
    await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked(99));
    await until('it is sent too', () => coordinator.messages().length === 5);
  });

  test('a restart gives nobody more messages to a contact, and what cannot be counted is not sent', async () => {
    const kept = await startCoordinator({ store: 'sqlite', settings: { PROXY_RATE_LIMIT_PER_CONTACT: '0' } });
    running.push(kept);
    const contact = 'victim@example.com';
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'x' };
    const ask = async (client = kept.client) =>
      client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked).then(
        () => 200,
        ({ status }: { status: number }) => status,
      );
    const statuses: number[] = [];
    for (let start = 0; start < 3; start++) {
      const { client } = await stranger({ userEmail: contact }, kept);
      for (let send = 0; send < 2; send++) statuses.push(await ask(client));
      await kept.restart();
    }
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
    // What is the parent's is not used up by them.
    expect(await ask()).toBe(200);
    await kept.settled();
    expect(kept.messages()).toHaveLength(5);
    // The address is not in what is counted.
    const counted = (await kept.recorded()).filter(({ type }) => type === 'MessageCounted');
    expect(counted).not.toHaveLength(0);
    expect(JSON.stringify(counted.map(({ position: _, ...event }) => event))).not.toContain('victim');

    kept.fail('read');
    const other = { ...asked, contact: 'other@example.com' };
    const uncounted = await refusal(kept.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', other));
    kept.fail('read', false);
    expect([uncounted.status, uncounted.message]).toEqual([
      503,
      expect.stringContaining('nothing was sent, because the messages to this contact could not be counted'),
    ]);
    await kept.settled();
    expect(kept.messages()).toHaveLength(5);
    kept.clock.advance(1);
    await kept.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', other);
  });

  test('whoever submits floods nobody who approves, and keeps neither notices of others nor codes from them', async () => {
    const told = await startCoordinator({ settings: { VOTE_NOTICES: 'true' } });
    running.push(told);
    const contact = 'bob@example.com';
    const bob = await told.createUser('Bob', { userEmail: contact });
    const ann = await told.createUser('Ann');
    await told.createPolicy({ policyName: 'Ann asks', consensus: both(ann.userId, bob.userId) });
    const waits = async (client: StampingClient) => {
      told.clock.advance(1);
      const { status } = await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'any', userIds: [] });
      expect(status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    };
    /** Notices that Bob gets of so many activities, if they are asked for one after the other. */
    const noticesOf = async (client: StampingClient, count: number, pause: 1 | '2m' = 1) => {
      const before = told.messages().length;
      for (let number = 0; number < count; number++) {
        await waits(client);
        await told.settled();
        told.clock.advance(pause);
      }
      return told.messages().length - before;
    };
    // A stranger names him in an organization of its own, for an hour.
    const key = told.newKey();
    const rootUsers = [
      { userName: 'Mallory', apiKeys: [keyParams(key)] },
      { userName: 'Bob', userEmail: contact },
    ].map((user) => ({ apiKeys: [], authenticators: [], oauthProviders: [], ...user }));
    const created = await told.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'sub',
      rootUsers: [rootUsers[0], { ...rootUsers[1], apiKeys: [keyParams(told.newKey())] }],
      rootQuorumThreshold: 2,
    });
    const mallory = told.clientFor(key, resultOf(created)['subOrganizationId']);
    expect(await noticesOf(mallory, 14, '2m')).toBe(10);
    expect(await noticesOf(ann.client, 12)).toBe(10);
    await told.restart();
    expect(await noticesOf(ann.client, 2)).toBe(0);
    const code = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'x' };
    await told.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', code);
    told.clock.advance('1h');
    expect(await noticesOf(ann.client, 22)).toBe(20);
  });

  test('codes that strangers have sent end none, and keep neither the account nor its parent from theirs', async () => {
    const contact = 'ann@example.com';
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact };
    const key = coordinator.newKey();
    const own = (await proxy('otp_init', asked)).body as { otpId: string };
    const verify = async ({ otpId }: { otpId: string }, publicKey = key.publicKey) =>
      proxy('otp_verify', { otpId, otpCode: await codeOf(coordinator, otpId), publicKey });
    const { verificationToken } = (await verify(own)).body as { verificationToken: string };
    const signup = { signup: { email: contact, apiKeys: [keyParams(key)], authenticators: [], oauthProviders: [] } };
    const account = await proxy('signup', {
      userEmail: contact,
      apiKeys: [keyParams(key)],
      verificationToken,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', signup),
    });
    const ann = coordinator.clientFor(key, (account.body as { organizationId: string }).organizationId);

    coordinator.clock.advance('4m');
    const waiting = (await proxy('otp_init', asked)).body as { otpId: string };
    const statuses: number[] = [];
    for (let send = 0; send < 12; send++) {
      if (send === 6) coordinator.clock.advance('3m');
      statuses.push((await proxy('otp_init', asked)).status);
    }
    expect(statuses.filter((status) => status === 200).length).toBeLessThan(6);
    expect(statuses).toContain(429);
    expect((await verify(waiting)).status).toBe(200);
    for (const client of [ann, coordinator.client]) {
      const { status } = await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', { ...asked, appName: 'x' });
      expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
    }
  });
});
