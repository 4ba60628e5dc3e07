import { secp256k1 } from '@noble/curves/secp256k1.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import {
  send,
  startCoordinator,
  StampingClient,
  stampBody,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { generateApiKeyPair } from '../../src/stamps/sign.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { coreClient } from './core-client.js';
import { exchange, refusal, textLike } from './exchange.js';
import { resultOf } from './login-world.js';
import { claimsOf, clientSignature, codeOf } from './one-time-codes.js';
import { until } from './until.js';

const stampLogin = 'ACTIVITY_TYPE_STAMP_LOGIN';
const createSubOrganization = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8';

let coordinator: TestCoordinator;
let configId: string;
let count = 0;

beforeAll(async () => {
  // The published client has the wall clock.
  coordinator = await startCoordinator({
    at: new Date(),
    settings: {
      PASSKEY_COUNTERS: 'strict',
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
  configId = coordinator.root.authProxyConfigId;
});
afterAll(() => coordinator.close());

const nobody = { status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' };
const newContact = () => `claimed-${++count}@example.com`;
const apiKey = ({ publicKey, curve }: ApiKeyPair, more: object = {}) => ({
  apiKeyName: `key ${++count}`,
  publicKey,
  curveType: curve,
  ...more,
});
const newKey = (curve: ApiKeyPair['curve']) =>
  generateApiKeyPair((length) => crypto.getRandomValues(new Uint8Array(length)), curve);
const isOnSecp256k1 = ({ publicKey }: ApiKeyPair) => {
  try {
    return Boolean(secp256k1.Point.fromHex(publicKey));
  } catch {
    return false;
  }
};
const clientOf = (organizationId: string, key: ApiKeyPair) =>
  new StampingClient(coordinator.url, organizationId, key, coordinator.clock);

async function proxy(path: string, body: object) {
  const answer = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': configId },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: answer.body as Record<string, string> };
}

async function ok(path: string, body: object) {
  const answer = await proxy(path, body);
  expect(answer).toMatchObject({ status: 200, body: {} });
  return answer.body;
}

interface Keys {
  readonly apiKeys?: readonly object[];
  readonly authenticators?: readonly object[];
  readonly userEmail?: string;
}

/** What anybody may do who has read the configuration's id in a page. */
async function signUp(user: Keys): Promise<string> {
  const asked = { userName: `Stranger ${++count}`, apiKeys: [], authenticators: [], oauthProviders: [] };
  return (await ok('signup', { ...asked, ...user }))['organizationId']!;
}

/** What only the parent's members may do. */
async function madeByMembers(user: Keys): Promise<{ organizationId: string; userId: string }> {
  const asked = { userName: `Person ${++count}`, apiKeys: [], authenticators: [], oauthProviders: [] };
  const activity = await coordinator.client.submit(createSubOrganization, {
    subOrganizationName: `Sub ${++count}`,
    rootUsers: [{ ...asked, ...user }],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(activity);
  return { organizationId: subOrganizationId, userId: rootUserIds[0]! };
}

/** Where a key is led that names the parent, by a query and by a login. */
const asks = (key: ApiKeyPair) =>
  coordinator
    .clientFor(key)
    .query<{ organizationId: string }>('whoami')
    .then(({ organizationId }) => organizationId);
const logsIn = (key: ApiKeyPair, at = coordinator.organizationId) =>
  clientOf(at, key)
    .submit(
      stampLogin,
      { publicKey: coordinator.newKey().publicKey },
      { timestampMs: String(coordinator.clock.now() + ++count) },
    )
    .then(({ organizationId }) => organizationId);

async function passkeyLogsIn(passkey: SoftwareAuthenticator, more: object = {}, at = coordinator.organizationId) {
  const body = clientOf(at, coordinator.newKey()).submitBody(
    stampLogin,
    { publicKey: coordinator.newKey().publicKey },
    { timestampMs: String(coordinator.clock.now() + ++count) },
  );
  const answer = await send<{ activity: { organizationId: string } }>(
    `${coordinator.url}${submitPath(stampLogin)}`,
    body,
    {
      'x-stamp-webauthn': passkey.assert({ body, ...more }),
    },
  );
  return answer.body.activity.organizationId;
}

const account = async (filterType: string, filterValue: string, more: object = {}) =>
  (await ok('account', { filterType, filterValue, ...more }))['organizationId'];

const records = async () =>
  (await coordinator.events(`claims-${coordinator.organizationId}`)).map(
    ({ data }) => data as { kind: string; value: string; organizationId: string; by: string; outranks?: true },
  );
const recordsOf = async (value: string) => (await records()).filter((one) => one.value === value);

describe('an API key of somebody else in a public sign-up', () => {
  test('does not keep its owner out, before the first login or after it', async () => {
    for (const curve of ['API_KEY_CURVE_P256', 'API_KEY_CURVE_SECP256K1', 'API_KEY_CURVE_ED25519'] as const) {
      const key = newKey(curve);
      const before = await signUp({ apiKeys: [apiKey(key), apiKey(coordinator.newKey())] });
      const { organizationId } = await madeByMembers({ apiKeys: [apiKey(key)], userEmail: newContact() });
      expect(await asks(key)).toBe(organizationId);
      expect(await account('PUBLIC_KEY', key.publicKey)).toBe(organizationId);
      expect(await logsIn(key)).toBe(organizationId);
      const after = await signUp({ apiKeys: [apiKey(key), apiKey(coordinator.newKey())] });
      expect(await signUp({ apiKeys: [apiKey(key)] })).not.toBe(after);
      expect([await asks(key), await logsIn(key)]).toEqual([organizationId, organizationId]);
      expect(await account('PUBLIC_KEY', key.publicKey)).toBe(organizationId);
      expect(before).not.toBe(organizationId);
    }
  });

  test('leads nobody without an account into the organization of who has done it', async () => {
    const [key, own] = [coordinator.newKey(), coordinator.newKey()];
    const theirs = await signUp({ apiKeys: [apiKey(key), apiKey(own)] });
    expect(await logsIn(own, theirs)).toBe(theirs);
    expect(await refusal(asks(key))).toMatchObject(nobody);
    expect(await refusal(logsIn(key))).toMatchObject(nobody);
    expect(await account('PUBLIC_KEY', key.publicKey)).toBeUndefined();
    // Who has it named can still do without: nobody but the stranger's own key has been anywhere.
    expect(await account('PUBLIC_KEY', own.publicKey)).toBe(theirs);
  });

  test('where nobody else could act leads there, the newest first, and the first login decides', async () => {
    const key = coordinator.newKey();
    await signUp({ apiKeys: [apiKey(key)], userEmail: newContact() });
    const older = await signUp({ apiKeys: [apiKey(key)] });
    const newer = await signUp({ apiKeys: [apiKey(key)] });
    expect(await account('PUBLIC_KEY', key.publicKey)).toBeUndefined();
    expect([await asks(key), await logsIn(key)]).toEqual([newer, newer]);
    await signUp({ apiKeys: [apiKey(key)] });
    expect([await asks(key), await account('PUBLIC_KEY', key.publicKey)]).toEqual([newer, newer]);
    // A request that names another organization comes first, once.
    expect(await logsIn(key, older)).toBe(older);
    await until('the order is recorded', async () => (await recordsOf(key.publicKey)).length === 2);
    expect(await asks(key)).toBe(older);
    const third = await signUp({ apiKeys: [apiKey(key)] });
    expect(await logsIn(key, third)).toBe(third);
    await until('the order is recorded', async () => (await recordsOf(key.publicKey)).length === 3);
    expect(await asks(key)).toBe(older);
    expect(await recordsOf(key.publicKey)).toEqual([
      expect.objectContaining({ organizationId: newer, provedBy: 'resolved-request' }),
      expect.objectContaining({ organizationId: older, provedBy: 'request', outranks: true }),
      expect.objectContaining({ organizationId: third, provedBy: 'request' }),
    ]);
    expect(await coordinator.events(organizationStream(newer))).toContainEqual(
      expect.objectContaining({
        data: expect.objectContaining({
          decision: expect.objectContaining({
            resolution: { parentOrganizationId: coordinator.organizationId, rule: 'first-assertion' },
          }) as unknown,
        }) as unknown,
      }),
    );
  });
});

test('one of several that the parent’s members made is only reached by its name, and the first proof holds', async () => {
  const [key, other] = [coordinator.newKey(), coordinator.newKey()];
  const first = await madeByMembers({ apiKeys: [apiKey(key), apiKey(other)] });
  const second = await madeByMembers({ apiKeys: [apiKey(key)] });
  const conflict = { status: 401, turnkeyErrorCode: 'CREDENTIAL_CONFLICT' };
  expect(await refusal(asks(key))).toMatchObject(conflict);
  expect(await refusal(logsIn(key))).toMatchObject(conflict);
  expect(await account('PUBLIC_KEY', key.publicKey)).toBeUndefined();
  // A query proves nothing, a login does; what comes later moves nothing.
  await clientOf(second.organizationId, key).query('whoami');
  expect(await refusal(asks(key))).toMatchObject(conflict);
  await logsIn(key, first.organizationId);
  expect(await asks(key)).toBe(first.organizationId);
  await logsIn(key, second.organizationId);
  expect([await asks(key), await account('PUBLIC_KEY', key.publicKey)]).toEqual(
    Array<string>(2).fill(first.organizationId),
  );
  await until('both are recorded', async () => (await recordsOf(key.publicKey)).length === 2);
  // The claim ends with the key, and the next oldest proof holds.
  const { userId, organizationId } = first;
  const { apiKeys } = await clientOf(organizationId, other).query<{
    apiKeys: { apiKeyId: string; credential: { publicKey: string } }[];
  }>('get_api_keys', { userId });
  const { apiKeyId } = apiKeys.find(({ credential }) => credential.publicKey === key.publicKey)!;
  await clientOf(organizationId, other).submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: [apiKeyId] });
  expect([await asks(key), await logsIn(key)]).toEqual(Array<string>(2).fill(second.organizationId));
  // And with the organization.
  await clientOf(second.organizationId, key).submit('ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION', {});
  expect(await refusal(asks(key))).toMatchObject(nobody);
});

test('the key of a minute is its sign-up’s: whoever has read it gets nothing by it, during the minute or after', async () => {
  const register = (passkey: SoftwareAuthenticator) => ({
    authenticatorName: `passkey ${++count}`,
    ...passkey.register(),
  });
  const minute = (key: ApiKeyPair) => apiKey(key, { expirationSeconds: '60' });
  const over = { status: 401, turnkeyErrorCode: 'API_KEY_EXPIRED' };
  for (const [isUsed, isReadAtOnce] of [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ]) {
    const key = coordinator.newKey();
    const strangers = async () => {
      await signUp({ apiKeys: [minute(key)], authenticators: [register(new SoftwareAuthenticator())] });
      await signUp({ apiKeys: [apiKey(key)], authenticators: [register(new SoftwareAuthenticator())] });
      await signUp({ apiKeys: [apiKey(key), apiKey(coordinator.newKey())] });
    };
    const home = await signUp({ apiKeys: [minute(key)], authenticators: [register(new SoftwareAuthenticator())] });
    if (isReadAtOnce) await strangers();
    if (isUsed) expect(await logsIn(key)).toBe(home);
    expect(await asks(key)).toBe(home);
    expect(await account('PUBLIC_KEY', key.publicKey)).toBe(isUsed ? home : undefined);
    coordinator.clock.advance('61s');
    await strangers();
    // A client that is late is told so, and is not led to whoever waits for it.
    expect(await refusal(asks(key))).toMatchObject(over);
    expect(await refusal(logsIn(key))).toMatchObject(over);
    expect(await account('PUBLIC_KEY', key.publicKey)).toBeUndefined();
  }
});

test('a member of the parent who adds a credential of somebody else gets none of their requests', async () => {
  const passkey = new SoftwareAuthenticator();
  const registered = () => ({ authenticatorName: `passkey ${++count}`, ...passkey.register() });
  const [key, membersKey] = [coordinator.newKey(), coordinator.newKey()];
  const home = await signUp({ apiKeys: [apiKey(key)], authenticators: [registered()] });
  await logsIn(key, home);
  await passkeyLogsIn(passkey, {}, home);
  coordinator.clock.advance('1s');
  const member = await coordinator.createUser(`Member ${++count}`);
  const add = (user: typeof member, publicKey: ApiKeyPair) =>
    user.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: user.userId, apiKeys: [apiKey(publicKey)] });
  await add(member, key);
  await member.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: member.userId,
    authenticators: [registered()],
  });
  expect([await asks(key), await logsIn(key), await passkeyLogsIn(passkey)]).toEqual(Array<string>(3).fill(home));
  // Nor does somebody who signs up with the member's own, even if it is used there.
  await add(member, membersKey);
  coordinator.clock.advance('1s');
  await logsIn(membersKey, await signUp({ apiKeys: [apiKey(membersKey)] }));
  const { organizationId } = coordinator;
  expect([await asks(membersKey), await logsIn(membersKey)]).toEqual([organizationId, organizationId]);
});

test('a key that somebody adds to their organization is not one that the parent has put there', async () => {
  const [key, own] = [coordinator.newKey(), coordinator.newKey()];
  const theirs = await madeByMembers({ apiKeys: [apiKey(own)] });
  const person = clientOf(theirs.organizationId, own);
  await person.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: theirs.userId, apiKeys: [apiKey(key)] });
  expect(await refusal(asks(key))).toMatchObject(nobody);
  const { organizationId } = await madeByMembers({ apiKeys: [apiKey(key)], userEmail: newContact() });
  expect([await asks(key), await logsIn(key)]).toEqual([organizationId, organizationId]);
});

test('a passkey of the parent’s reads where somebody has registered its id under another key', async () => {
  const [passkey, forger] = [new SoftwareAuthenticator(), new SoftwareAuthenticator()];
  const { credentialId } = passkey;
  const registered = (one: SoftwareAuthenticator, more: object = {}) => ({
    authenticatorName: `passkey ${++count}`,
    ...one.register(more),
  });
  const member = await coordinator.createUser(`Member ${++count}`);
  await member.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: member.userId,
    authenticators: [registered(passkey)],
  });
  await coordinator.createPolicy({
    policyName: `${member.userId} logs people in`,
    condition: "activity.resource == 'AUTH'",
    consensus: `approvers.any(user, user.id == '${member.userId}')`,
  });
  const userEmail = newContact();
  const organizationId = await signUp({ authenticators: [registered(forger, { credentialId })], userEmail });
  const reads = async (one: SoftwareAuthenticator) => {
    const body = JSON.stringify({ organizationId });
    const headers = { 'x-stamp-webauthn': one.assert({ body, credentialId }) };
    return (await send(`${coordinator.url}/public/v1/query/list_users`, body, headers)).body;
  };
  expect(await reads(passkey)).toEqual(await reads(forger));
  const type = 'ACTIVITY_TYPE_EMAIL_AUTH_V3';
  const body = clientOf(organizationId, coordinator.newKey()).submitBody(
    type,
    { email: userEmail, targetPublicKey: coordinator.newKey().publicKey, emailCustomization: { appName: 'App' } },
    { timestampMs: String(coordinator.clock.now() + ++count) },
  );
  const by = (one: SoftwareAuthenticator) =>
    send<{ activity: { votes: { userId: string }[] } }>(`${coordinator.url}${submitPath(type)}`, body, {
      'x-stamp-webauthn': one.assert({ body, credentialId }),
    });
  expect((await refusal(by(new SoftwareAuthenticator()))).status).toBe(401);
  expect((await refusal(by(passkey))).message).toContain('root quorum');
});

describe('a passkey', () => {
  const authenticator = (passkey: SoftwareAuthenticator, more: object = {}) => ({
    authenticatorName: `passkey ${++count}`,
    ...passkey.register(more),
  });

  test('is found though its id was registered under other keys, and though those were used', async () => {
    const passkey = new SoftwareAuthenticator();
    const { credentialId } = passkey;
    const organizationId = await signUp({ authenticators: [authenticator(passkey)], userEmail: newContact() });
    const forger = new SoftwareAuthenticator();
    const theirs = await signUp({ authenticators: [authenticator(forger, { credentialId })] });
    // Whoever has registered it can use it, and is told what is theirs.
    expect(await passkeyLogsIn(forger, { credentialId })).toBe(theirs);
    expect(await account('CREDENTIAL_ID', credentialId)).toBeUndefined();
    expect(await passkeyLogsIn(passkey)).toBe(organizationId);
    expect(await account('CREDENTIAL_ID', credentialId)).toBe(organizationId);
    await signUp({ authenticators: [authenticator(passkey)] });
    expect(await passkeyLogsIn(passkey)).toBe(organizationId);
  });

  test('leads to the organization that had its key first, of those where nobody has used it', async () => {
    const passkey = new SoftwareAuthenticator();
    const first = await signUp({ authenticators: [authenticator(passkey)], apiKeys: [apiKey(coordinator.newKey())] });
    await signUp({ authenticators: [authenticator(passkey)], apiKeys: [apiKey(coordinator.newKey())] });
    expect(await passkeyLogsIn(passkey)).toBe(first);
  });

  test('has one counter, in the parent and in its sub-organizations', async () => {
    const passkey = new SoftwareAuthenticator();
    const ann = await coordinator.createUser(`Ann ${++count}`);
    await ann.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: ann.userId,
      authenticators: [authenticator(passkey, { signCount: 3 })],
    });
    await coordinator.createPolicy({
      policyName: 'Ann logs people in',
      condition: "activity.resource == 'AUTH'",
      consensus: `approvers.any(user, user.id == '${ann.userId}')`,
    });
    const sub = await madeByMembers({ authenticators: [authenticator(passkey, { signCount: 4 })] });
    const people = await madeByMembers({ apiKeys: [apiKey(coordinator.newKey())], userEmail: newContact() });
    const inParent = (signCount: number) => passkeyLogsIn(passkey, { signCount });
    const inSub = (signCount: number) => passkeyLogsIn(passkey, { signCount }, sub.organizationId);
    /** A request of the parent's for a user of its sub-organization. */
    const forSub = async (signCount: number) => {
      const type = 'ACTIVITY_TYPE_EMAIL_AUTH_V3';
      const { users } = await coordinator.client.query<{ users: { userEmail: string }[] }>('list_users', {
        organizationId: people.organizationId,
      });
      const email = users[0]!.userEmail;
      const body = clientOf(people.organizationId, ann.key).submitBody(
        type,
        { email, targetPublicKey: coordinator.newKey().publicKey, emailCustomization: { appName: 'App' } },
        { timestampMs: String(coordinator.clock.now() + ++count) },
      );
      const stamp = { 'x-stamp-webauthn': passkey.assert({ body, signCount }) };
      await send(`${coordinator.url}${submitPath(type)}`, body, stamp);
    };
    const stale = { status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID', message: textLike('counter') };
    expect(await inSub(9)).toBe(sub.organizationId);
    for (const used of [9, 6]) {
      expect(await refusal(inParent(used))).toMatchObject(stale);
      expect(await refusal(inSub(used))).toMatchObject(stale);
      expect(await refusal(forSub(used))).toMatchObject(stale);
    }
    expect(await inParent(10)).toBe(coordinator.organizationId);
    expect(await refusal(inSub(10))).toMatchObject(stale);
  });

  test('is not locked by who registers its id and its key, which are public, with the highest counter', async () => {
    const highest = { signCount: 0xffff_ffff };
    const passkey = new SoftwareAuthenticator();
    const home = await signUp({ authenticators: [authenticator(passkey, { signCount: 1 })], userEmail: newContact() });
    expect(await passkeyLogsIn(passkey, { signCount: 2 }, home)).toBe(home);
    await signUp({ authenticators: [authenticator(passkey, highest)], apiKeys: [apiKey(coordinator.newKey())] });
    await madeByMembers({ authenticators: [authenticator(passkey, highest)] });
    expect(await passkeyLogsIn(passkey, { signCount: 3 }, home)).toBe(home);
    expect(await passkeyLogsIn(passkey, { signCount: 4 })).toBe(home);
    expect(await refusal(passkeyLogsIn(passkey, { signCount: 4 }, home))).toMatchObject({ status: 401 });
  });
});

describe('a contact', () => {
  async function verified(contact: string, key: ApiKeyPair): Promise<string> {
    const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
    const otpCode = await codeOf(coordinator, otpId!);
    return (await ok('otp_verify', { otpId, otpCode, publicKey: key.publicKey }))['verificationToken']!;
  }

  async function signedUp(contact: string, key: ApiKeyPair): Promise<string> {
    const verificationToken = await verified(contact, key);
    const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
    const { organizationId } = await ok('signup', {
      userName: contact,
      userEmail: contact,
      verificationToken,
      ...asked,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
        signup: { ...asked, email: contact },
      }),
    });
    return organizationId!;
  }

  async function loggedIn(contact: string): Promise<unknown> {
    const [key, session] = [coordinator.newKey(), coordinator.newKey()];
    const verificationToken = await verified(contact, key);
    const answer = await ok('otp_login', {
      verificationToken,
      publicKey: session.publicKey,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', {
        login: { publicKey: session.publicKey },
      }),
    });
    return claimsOf(answer['session']!)['organization_id'];
  }

  test('leads to where it was proved first, whoever else has proved it since', async () => {
    const contact = newContact();
    const organizationId = await signedUp(contact, coordinator.newKey());
    // A link in a mail was followed, and the page behind it was somebody else's.
    const owner = coordinator.newKey();
    const theirs = await signUp({ apiKeys: [apiKey(owner)] });
    const { userId } = await clientOf(theirs, owner).query<{ userId: string }>('whoami');
    const stolen = await verified(contact, owner);
    const change = { userId, userEmail: contact, verificationToken: stolen };
    await clientOf(theirs, owner)
      .submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change)
      .catch(() => undefined);
    const siblings = await signedUp(contact, coordinator.newKey());
    expect(siblings).not.toBe(organizationId);
    // One contact gets so many codes at a time.
    coordinator.clock.advance('4m');
    const verificationToken = await verified(contact, coordinator.newKey());
    expect(await account('EMAIL', contact, { verificationToken })).toBe(organizationId);
    expect(await account('EMAIL', contact.toUpperCase(), { verificationToken })).toBe(organizationId);
    expect(await loggedIn(contact)).toBe(organizationId);
  });

  test('leads nowhere where it was only written down', async () => {
    const contact = newContact();
    await madeByMembers({ apiKeys: [apiKey(coordinator.newKey())], userEmail: contact });
    await signUp({ apiKeys: [apiKey(coordinator.newKey())], userEmail: contact });
    const key = coordinator.newKey();
    const verificationToken = await verified(contact, key);
    expect(await account('EMAIL', contact, { verificationToken })).toBeUndefined();
    const { publicKey } = coordinator.newKey();
    const login = { verificationToken, publicKey };
    const signature = clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', { login: { publicKey } });
    expect(await proxy('otp_login', { ...login, clientSignature: signature })).toMatchObject({ status: 404 });
  });
});

describe('@turnkey/core, after a stranger has registered first', () => {
  const open = () =>
    coreClient({
      apiBaseUrl: coordinator.url,
      authProxyUrl: coordinator.root.authProxyUrl,
      authProxyConfigId: configId,
      organizationId: coordinator.organizationId,
    });
  const organizationOf = ({ sessionToken }: { readonly sessionToken: string }) =>
    String(claimsOf(sessionToken)['organization_id']);

  test('signs up with a passkey and its key of a minute, and logs in with the passkey', async () => {
    const passkey = new SoftwareAuthenticator();
    const { credentialId } = passkey;
    const { client, store } = open();
    client.usePasskey({
      createReactNativePasskey: () => {
        const { challenge, attestation } = passkey.register();
        return Promise.resolve({ challenge, attestation });
      },
      stamp: (body: string) =>
        Promise.resolve({ stampHeaderName: 'X-Stamp-WebAuthn', stampHeaderValue: passkey.assert({ body }) }),
    });
    const signedUp = await client.signUpWithPasskey({ createSubOrgParams: { userName: 'Pat' } });
    const organizationId = organizationOf(signedUp);
    const forger = new SoftwareAuthenticator();
    const forged = { authenticatorName: 'forged', ...forger.register({ credentialId }) };
    const theirs = await signUp({ authenticators: [forged], apiKeys: [apiKey(coordinator.newKey())] });
    expect(await passkeyLogsIn(forger, { credentialId })).toBe(theirs);
    expect(organizationOf(await client.loginWithPasskey())).toBe(organizationId);
    expect(store.current).not.toBe('');
  });

  test.each([
    ['ethereum', 'API_KEY_CURVE_SECP256K1'],
    ['solana', 'API_KEY_CURVE_ED25519'],
  ] as const)('signs up with a wallet of %s, and logs in with it', async (namespace, curve) => {
    const wallet = newKey(curve);
    for (const more of [{}, { expirationSeconds: '60' }]) {
      await signUp({ apiKeys: [apiKey(wallet, more), apiKey(coordinator.newKey())] });
    }
    await signUp({ apiKeys: [apiKey(wallet)] });
    const { client } = open();
    client.useWallet((body) => {
      const { headerName, headerValue } = stampBody(body, wallet);
      return { stampHeaderName: headerName, stampHeaderValue: headerValue };
    });
    const walletProvider = { interfaceType: namespace, chainInfo: { namespace } };
    const first = await client.loginOrSignupWithWallet({ walletProvider });
    expect(first.action).toBe('SIGNUP');
    expect(await asks(wallet)).toBe(organizationOf(first));
    await signUp({ apiKeys: [apiKey(wallet)] });
    const second = await client.loginOrSignupWithWallet({ walletProvider });
    expect([second.action, organizationOf(second)]).toEqual(['LOGIN', organizationOf(first)]);
    expect(organizationOf(await client.loginWithWallet({ walletProvider }))).toBe(organizationOf(first));
  });

  test('signs up with a code in a mail, and logs in with the next', async () => {
    const contact = newContact();
    await signUp({ apiKeys: [apiKey(coordinator.newKey())], userEmail: contact });
    const { client } = open();
    const otpType = 'OTP_TYPE_EMAIL';
    const complete = async () => {
      const otpId = await client.initOtp({ otpType, contact });
      const otpCode = await codeOf(coordinator, otpId);
      return client.completeOtp({ otpId, otpCode, contact, otpType, createSubOrgParams: { userEmail: contact } });
    };
    const first = await complete();
    expect(first.action).toBe('SIGNUP');
    await signUp({ apiKeys: [apiKey(coordinator.newKey())], userEmail: contact });
    const second = await complete();
    expect([second.action, organizationOf(second)]).toEqual(['LOGIN', organizationOf(first)]);
  });
});

test('a back end’s sub-organization with its user’s wallet key is where the user logs in by the parent’s id', async () => {
  for (const curve of ['API_KEY_CURVE_SECP256K1', 'API_KEY_CURVE_ED25519'] as const) {
    const wallet = newKey(curve);
    await signUp({ apiKeys: [apiKey(wallet)] });
    const email = { userEmail: newContact() };
    const { organizationId } = await madeByMembers({
      apiKeys: [apiKey(wallet), apiKey(coordinator.newKey())],
      ...email,
    });
    await signUp({ apiKeys: [apiKey(wallet)] });
    expect([await asks(wallet), await logsIn(wallet)]).toEqual([organizationId, organizationId]);
  }
});

test('a public sign-up in which nothing was proved within an hour lapses', async () => {
  const own = await startCoordinator({ seed: 'lapse' });
  const post = (path: string, body: object) =>
    exchange(`${own.url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': own.root.authProxyConfigId },
      body: JSON.stringify(body),
    });
  try {
    const signedUp = async (key: ApiKeyPair) => {
      const asked = { userName: 'Nora', authenticators: [], oauthProviders: [] };
      const { body } = await post('signup', { ...asked, apiKeys: [apiKey(key)] });
      return (body as { organizationId: string }).organizationId;
    };
    const [idle, busy] = [own.newKey(), own.newKey()];
    const lapsed = await signedUp(idle);
    const kept = await signedUp(busy);
    await own.clientFor(busy, kept).submit(stampLogin, { publicKey: own.newKey().publicKey });
    own.clock.advance('59m');
    expect(await own.clientFor(idle).query('whoami')).toMatchObject({ organizationId: lapsed });
    own.clock.advance('1m');
    expect(await refusal(own.clientFor(idle).query('whoami'))).toMatchObject(nobody);
    const gone = { status: 404, turnkeyErrorCode: 'ORGANIZATION_NOT_FOUND', message: textLike('has lapsed') };
    expect(await refusal(own.clientFor(idle, lapsed).query('whoami'))).toMatchObject(gone);
    const login = { publicKey: own.newKey().publicKey };
    expect(await refusal(own.clientFor(idle, lapsed).submit(stampLogin, login))).toMatchObject(gone);
    expect(await own.clientFor(busy).query('whoami')).toMatchObject({ organizationId: kept });
    // What was asserted there keeps nobody from signing up again.
    const again = await signedUp(idle);
    expect(await own.clientFor(idle).submit(stampLogin, login)).toMatchObject({ organizationId: again });
  } finally {
    await own.close();
  }
});

test('whoever adds the key of the parent’s back end as their own keeps nobody from being logged in by it', async () => {
  const backEnd = await coordinator.createUser('Back end');
  await coordinator.createPolicy({
    policyName: 'The back end logs people in',
    condition: "activity.type == 'ACTIVITY_TYPE_EMAIL_AUTH_V3'",
    consensus: `approvers.any(user, user.id == '${backEnd.userId}')`,
  });
  const passkey = new SoftwareAuthenticator();
  const registered = { authenticatorName: `passkey ${++count}`, ...passkey.register() };
  await backEnd.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: backEnd.userId,
    authenticators: [registered],
  });
  const [boss, other] = [coordinator.newKey(), coordinator.newKey()];
  const userEmail = 'boss@example.com';
  const person = { userName: 'Boss', userEmail, authenticators: [], oauthProviders: [] };
  const found = async (...keys: ApiKeyPair[]) => {
    const made = await coordinator.client.submit(createSubOrganization, {
      subOrganizationName: 'Sub',
      rootUsers: [{ ...person, apiKeys: keys.map((key) => apiKey(key)) }],
      rootQuorumThreshold: 1,
    });
    return resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(made);
  };
  const { subOrganizationId } = await found(boss);
  const made = await clientOf(subOrganizationId, boss).submit('ACTIVITY_TYPE_CREATE_USERS_V3', {
    users: [{ userName: 'Other', userTags: [], apiKeys: [apiKey(other)], authenticators: [], oauthProviders: [] }],
  });
  const [userId] = resultOf<{ userIds: string[] }>(made).userIds;
  const loggedIn = (organizationId: string) =>
    clientOf(organizationId, backEnd.key).submit('ACTIVITY_TYPE_EMAIL_AUTH_V3', {
      email: userEmail,
      targetPublicKey: coordinator.newKey().publicKey,
      emailCustomization: { appName: 'App' },
    });
  coordinator.clock.advance('4m');
  const added = (by: ApiKeyPair, key: ApiKeyPair) =>
    clientOf(subOrganizationId, by).submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: userId!,
      apiKeys: [apiKey(key)],
    });
  await added(other, backEnd.key);
  expect(await loggedIn(subOrganizationId)).toMatchObject({ votes: [{ userId: backEnd.userId }] });
  // Only in the verbs that the parent's members submit there, too.
  expect(await added(backEnd.key, coordinator.newKey())).toMatchObject({ votes: [{ userId }] });

  // Nor who adds a passkey of a member of the parent, which is as public.
  await clientOf(subOrganizationId, other).submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: userId!,
    authenticators: [registered],
  });
  const type = 'ACTIVITY_TYPE_EMAIL_AUTH_V3';
  const body = clientOf(subOrganizationId, other).submitBody(
    type,
    { email: userEmail, targetPublicKey: coordinator.newKey().publicKey, emailCustomization: { appName: 'App' } },
    { timestampMs: String(coordinator.clock.now() + ++count) },
  );
  const byPasskey = await send<object>(`${coordinator.url}${submitPath(type)}`, body, {
    'x-stamp-webauthn': passkey.assert({ body }),
  });
  expect(byPasskey.body).toMatchObject({ activity: { votes: [{ userId: backEnd.userId }] } });

  // A key that the founding brought is the user's (docs/protocol.md, who may stamp what).
  const founded = await found(backEnd.key);
  coordinator.clock.advance('4m');
  expect(await loggedIn(founded.subOrganizationId)).toMatchObject({ votes: [{ userId: founded.rootUserIds[0] }] });
});

test('whoever adds the key of the parent’s back end, for an hour or of another curve, does not keep it from reading', async () => {
  const backEnd = newKey('API_KEY_CURVE_P256');
  // Half of all public keys of one curve are public keys of the other, too.
  let other = newKey('API_KEY_CURVE_P256');
  while (!isOnSecp256k1(other)) other = newKey('API_KEY_CURVE_P256');
  const nothing = { userTags: [], authenticators: [], oauthProviders: [] };
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [{ userName: 'Reading back end', apiKeys: [apiKey(backEnd), apiKey(other)], ...nothing }],
  });
  const own = coordinator.newKey();
  const asked = { userName: 'Owner', authenticators: [], oauthProviders: [] };
  const made = await coordinator.client.submit(createSubOrganization, {
    subOrganizationName: 'Sub',
    rootUsers: [{ ...asked, apiKeys: [apiKey(own)] }],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(made);
  const [userId] = rootUserIds;
  const reads = (key: ApiKeyPair) => clientOf(subOrganizationId, key).query('list_users');
  await clientOf(subOrganizationId, own).submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId: userId!,
    apiKeys: [apiKey(backEnd, { expirationSeconds: '3600' }), apiKey(other, { curveType: 'API_KEY_CURVE_SECP256K1' })],
  });
  expect(await reads(backEnd)).toMatchObject({ users: [{ userId }] });
  coordinator.clock.advance('61m');
  for (const key of [backEnd, other]) expect(await reads(key)).toMatchObject({ users: [{ userId }] });
  // Nobody else's key reads: what is over is over, where the parent does not have it.
  const brief = coordinator.newKey();
  await clientOf(subOrganizationId, own).submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId: userId!,
    apiKeys: [apiKey(brief, { expirationSeconds: '60' })],
  });
  coordinator.clock.advance('2m');
  expect(await refusal(reads(brief))).toMatchObject({
    status: 401,
    turnkeyErrorCode: 'API_KEY_EXPIRED',
  });
});

test('whoever adds the key of the parent’s root user as their own keeps them from no history', async () => {
  const own = coordinator.newKey();
  const nothing = { authenticators: [], oauthProviders: [] };
  const made = await coordinator.client.submit(createSubOrganization, {
    subOrganizationName: 'Sub',
    rootUsers: [{ userName: 'Owner', apiKeys: [apiKey(own)], ...nothing }],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId } = resultOf<{ subOrganizationId: string }>(made);
  const other = coordinator.newKey();
  const users = [{ userName: 'Other', userTags: [], apiKeys: [apiKey(other)], ...nothing }];
  const added = await clientOf(subOrganizationId, own).submit('ACTIVITY_TYPE_CREATE_USERS_V3', { users });
  const [userId] = resultOf<{ userIds: string[] }>(added).userIds;
  const { apiPublicKey, apiPrivateKey } = coordinator.root;
  const root = { publicKey: apiPublicKey, privateKey: apiPrivateKey, curve: 'API_KEY_CURVE_P256' } as const;
  const member = await coordinator.createUser('No member of the root quorum');
  coordinator.clock.advance('1m');
  await clientOf(subOrganizationId, other).submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId: userId!,
    apiKeys: [apiKey(root), apiKey(member.key)],
  });
  const byRoot = clientOf(subOrganizationId, root);
  expect((await byRoot.query<{ events: object[] }>('list_events')).events.length).toBeGreaterThan(1);
  expect(await byRoot.query('whoami')).toMatchObject({ userId });
  // Others of the parent read no histories, and are who they were.
  expect(await refusal(clientOf(subOrganizationId, member.key).query('list_events'))).toMatchObject({
    status: 403,
    message: textLike(`user \`${userId}\` is not in the root quorum of organization \`${subOrganizationId}\``),
  });
});

test('what was proved holds over a restart, and is recorded once', async () => {
  const own = await startCoordinator({ store: 'sqlite', seed: 'claims' });
  try {
    const key = own.newKey();
    const asked = { userName: 'Ann', authenticators: [], oauthProviders: [] };
    const made = await own.client.submit(createSubOrganization, {
      subOrganizationName: 'Sub',
      rootUsers: [{ ...asked, apiKeys: [apiKey(key)] }],
      rootQuorumThreshold: 1,
    });
    const { subOrganizationId } = resultOf(made);
    for (let login = 1; login <= 3; login++) {
      const timestampMs = String(own.clock.now() + login);
      await own.clientFor(key).submit(stampLogin, { publicKey: own.newKey().publicKey }, { timestampMs });
    }
    const stream = `claims-${own.organizationId}`;
    await until('it is recorded', async () => (await own.events(stream)).length > 0);
    const again = await own.restart();
    try {
      const timestampMs = String(again.clock.now() + 10);
      const { organizationId } = await again
        .clientFor(key)
        .submit(stampLogin, { publicKey: again.newKey().publicKey }, { timestampMs });
      expect(organizationId).toBe(subOrganizationId);
      expect(await again.events(stream)).toHaveLength(1);
    } finally {
      await again.close();
    }
  } finally {
    await own.close().catch(() => undefined);
  }
});
