import { createServer, type Server } from 'node:http';
import { build } from 'esbuild';
import type { Browser } from 'playwright-core';
import { send, startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { anyText, refusal, textLike } from '../e2e/exchange.js';
import { connect, Visitor } from './visitor.js';

interface Registration {
  readonly authenticatorName: string;
  readonly challenge: string;
  readonly attestation: {
    readonly credentialId: string;
    readonly clientDataJson: string;
    readonly attestationObject: string;
    readonly transports: readonly string[];
  };
}

let coordinator: TestCoordinator;
let browser: Browser;
let server: Server;
let port: number;
let visitor: Visitor;
let count = 0;

beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: [new URL('passkey-page.mjs', import.meta.url).pathname],
    bundle: true,
    format: 'esm',
    write: false,
    define: { global: 'globalThis' },
  });
  server = createServer(({ url }, response) => {
    if (url === '/page.js') response.setHeader('content-type', 'text/javascript').end(outputFiles[0]!.contents);
    else response.setHeader('content-type', 'text/html').end('<script type="module" src="page.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  port = (server.address() as { port: number }).port;
  // The browser has the wall clock.
  [coordinator, browser] = await Promise.all([startCoordinator({ at: new Date() }), connect()]);
});

afterAll(async () => {
  await browser?.close();
  await coordinator?.close();
  server?.close();
});

const origin = () => `http://localhost:${port}`;

beforeEach(async () => {
  visitor = await Visitor.at(browser, origin());
});

afterEach(() => visitor.leave());

/** Has the page do something, and gives what it gave. */
function page<Result>(name: string, given: object = {}): Promise<Result> {
  return visitor.page.evaluate<Result>(`ceremonies.${name}(${JSON.stringify(given)})`);
}

const api = () => ({ apiUrl: coordinator.url, organizationId: coordinator.organizationId });
const register = (attestation = 'none') => page<Registration>('register', { attestation });

const add = ({ client, userId }: TestUser, registration: Registration) =>
  client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators: [registration] });

/** The same registration with something of its attestation changed. */
const altered = (registration: Registration, attestation: Partial<Registration['attestation']>): Registration => ({
  ...registration,
  attestation: { ...registration.attestation, ...attestation },
});

async function userWithPasskey(): Promise<TestUser> {
  const user = await coordinator.createUser(`Owner ${++count}`);
  await add(user, await register());
  return user;
}

/** Who is not in the root quorum may do what a policy says. */
const allow = (userId: string) =>
  coordinator.createPolicy({
    policyName: `tags of ${userId}`,
    condition: "activity.kind == 'CREATE_USER_TAG'",
    consensus: `approvers.any(user, user.id == '${userId}')`,
  });

test('a passkey is registered in the browser and verified here; then it stamps a submit and a query', async () => {
  const user = await coordinator.createUser('Ann');
  await allow(user.userId);
  const registration = await register();
  const { status, result } = await add(user, registration);
  expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
  expect(result['createAuthenticatorsResult']).toEqual({ authenticatorIds: [anyText] });
  const [device] = await visitor.passkeys();
  const { authenticators } = await user.client.query<{ authenticators: readonly object[] }>('get_authenticators', {
    userId: user.userId,
  });
  expect(authenticators).toMatchObject([
    {
      authenticatorName: 'of the browser',
      credentialId: device!.credentialId,
      attestationType: 'none',
      aaguid: textLike(/^[0-9a-f-]{36}$/),
      credential: { type: 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR', publicKey: anyText },
      transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
    },
  ]);
  const { credential } = authenticators[0] as { credential: { publicKey: string } };

  const activity = await page<object>('createUserTag', { ...api(), userTagName: 'by passkey' });
  expect(activity).toMatchObject({
    status: 'ACTIVITY_STATUS_COMPLETED',
    votes: [{ userId: user.userId, scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN', publicKey: credential.publicKey }],
  });
  expect(await page('whoami', api())).toMatchObject({ userId: user.userId, username: 'Ann' });
  // Preflight, headers and all: the page's origin is not the API's.
  expect(visitor.complaints).toEqual([]);
});

test('an attestation that is signed is verified, and no bit of it can be changed', async () => {
  const user = await coordinator.createUser('Direct');
  const registration = await register('direct');
  const bytes = Buffer.from(registration.attestation.attestationObject, 'base64url');
  expect(bytes.toString('latin1')).toContain('packed');

  // A byte string of more than 255 bytes has its length in the two bytes after its first, a shorter one in one byte.
  const name = bytes.indexOf('authData') + 'authData'.length;
  const authData = name + (bytes[name] === 0x58 ? 2 : 3);
  const flipped = (at: number): Registration => {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 0x01;
    return altered(registration, { attestationObject: changed.toString('base64url') });
  };
  const other = Buffer.alloc(32, 7).toString('base64url');
  const attempts: readonly (readonly [string, Registration, string])[] = [
    ['RP id hash', flipped(authData), 'rpIdHash'],
    ['counter', flipped(authData + 36), 'has an invalid statement'],
    ['AAGUID', flipped(authData + 37), 'has an invalid statement'],
    ['public key', flipped(bytes.length - 1), 'a key that cannot be used'],
    ['challenge', { ...registration, challenge: other }, 'challenge is'],
    ['credential id', altered(registration, { credentialId: other }), 'the attestation is for'],
  ];
  for (const [part, attempt, message] of attempts) {
    const refused = await refusal(add(user, attempt));
    expect([part, refused]).toMatchObject([part, { status: 400, code: 3, message: textLike(message) }]);
  }
  expect((await add(user, registration)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  const { authenticators } = await user.client.query<{ authenticators: readonly object[] }>('get_authenticators', {
    userId: user.userId,
  });
  expect(authenticators).toMatchObject([{ attestationType: 'packed' }]);
});

test('a registration that was made for another origin is refused, whoever sends it', async () => {
  const user = await coordinator.createUser('Phished');
  const registration = await register();
  const clientData = JSON.parse(Buffer.from(registration.attestation.clientDataJson, 'base64url').toString()) as object;
  expect(clientData).toMatchObject({ type: 'webauthn.create', origin: origin(), crossOrigin: false });
  const forged = (change: object) =>
    altered(registration, {
      clientDataJson: Buffer.from(JSON.stringify({ ...clientData, ...change })).toString('base64url'),
    });
  for (const change of [
    { origin: 'https://wallet.example.com' },
    { origin: 'http://wallet.localhost.example.com' },
    { crossOrigin: true },
    { type: 'webauthn.get' },
  ]) {
    expect(await refusal(add(user, forged(change)))).toMatchObject({
      status: 400,
      message: textLike('clientDataJson'),
    });
  }
  const owner = {
    userName: 'Owner',
    apiKeys: [],
    oauthProviders: [],
    authenticators: [forged({ origin: 'https://x.example' })],
  };
  const parent = coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
    subOrganizationName: 'Phished',
    rootUsers: [owner],
    rootQuorumThreshold: 1,
  });
  expect(await refusal(parent)).toMatchObject({ status: 400, message: textLike('clientDataJson') });
});

test('a stamp is for one body and from an origin that is allowed', async () => {
  const user = await userWithPasskey();
  await allow(user.userId);
  const whoami = JSON.stringify({ organizationId: coordinator.organizationId });
  const ask = (body: string, stamp: { stampHeaderName: string; stampHeaderValue: string }) =>
    send(`${coordinator.url}/public/v1/query/whoami`, body, { [stamp.stampHeaderName]: stamp.stampHeaderValue });
  const stamp = await page<{ stampHeaderName: string; stampHeaderValue: string }>('stamp', { body: whoami });
  expect((await ask(whoami, stamp)).body).toMatchObject({ userId: user.userId });
  const invalid = { status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID' };
  expect(await refusal(ask(`${whoami} `, stamp))).toMatchObject(invalid);
  const flipped = stamp.stampHeaderValue.replace(/"signature":"(.{20})(.)/, (_all, before: string, one: string) => {
    return `"signature":"${before}${one === 'A' ? 'B' : 'A'}`;
  });
  expect(await refusal(ask(whoami, { ...stamp, stampHeaderValue: flipped }))).toMatchObject(invalid);

  const name = 'FEATURE_NAME_WEBAUTHN_ORIGINS';
  const feature = (value: string) =>
    coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name, value });
  try {
    await feature('https://wallet.example.com');
    const tag = { ...api(), userTagName: 'from elsewhere' };
    expect(await page('createUserTag', tag)).toEqual({ refused: textLike(`origin \`${origin()}\` is not one of`) });
    expect(await page('whoami', api())).toEqual({ refused: textLike('is not one of') });
    await feature(origin());
    expect(await page('whoami', api())).toMatchObject({ userId: user.userId });
  } finally {
    await coordinator.client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', { name });
  }
});

test('a back end makes a sub-organization for it, whose owner asks there by passkey', async () => {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
    subOrganizationName: 'Home of a passkey',
    rootUsers: [{ userName: 'Owner', apiKeys: [], oauthProviders: [], authenticators: [await register('direct')] }],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId: organizationId } = result['createSubOrganizationResultV7'] as {
    subOrganizationId: string;
  };
  const me = { organizationId, organizationName: 'Home of a passkey', username: 'Owner' };
  expect(await page('whoami', { ...api(), organizationId })).toMatchObject(me);
  const tag = await page('createUserTag', { ...api(), organizationId, userTagName: 'mine' });
  expect(tag).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED' });
});

test.each(['proxySignup', 'proxySignupV2'])('%s takes a passkey and nothing else, and it logs in', async (path) => {
  const { authProxyUrl, authProxyConfigId, organizationId } = coordinator.root;
  const registration = await register();
  const config = { path, apiBaseUrl: coordinator.url, authProxyUrl, authProxyConfigId, organizationId };
  const tampered = altered(registration, { credentialId: Buffer.alloc(32, 7).toString('base64url') });
  expect(await page('signUp', { ...config, userName: 'Bea', authenticators: [tampered] })).toEqual({
    refused: textLike('the attestation is for'),
  });
  const made = await page<{ organizationId: string; userId: string; whoami: object }>('signUp', {
    ...config,
    userName: 'Bea',
    authenticators: [registration],
  });
  expect(made.organizationId).not.toBe(organizationId);
  expect(made.whoami).toMatchObject({ organizationId: made.organizationId, userId: made.userId, username: 'Bea' });
});
