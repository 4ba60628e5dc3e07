import { readFileSync } from 'node:fs';
import type { AttestedScheme } from '../../src/stamps/stamp.js';
import { decryptCredentialBundle, verifySessionJwtSignature } from '@turnkey/crypto';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import type { Vote } from '../../src/domain/activity/events.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import {
  ApiError,
  apiKeyPairFromPrivate,
  startCoordinator,
  StampingClient,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { send } from '../../src/client/stamping-client.js';
import { stampBody } from '../../src/stamps/sign.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { verifyVote } from '../../src/audit/verify/verify-vote.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { refusal, textLike } from './exchange.js';
import { IdentityProvider } from './identity-provider.js';
import { discoveryKeys, resultOf } from './login-world.js';
import { claimsOf, clientSignature, codeOf } from './one-time-codes.js';

const type = 'ACTIVITY_TYPE_STAMP_LOGIN';

let identities: IdentityProvider;
let coordinator: TestCoordinator;
let notarizer: string;
let count = 0;

beforeAll(async () => {
  identities = await IdentityProvider.start();
  coordinator = await startCoordinator({ settings: identities.settings });
  notarizer = (await discoveryKeys(coordinator))['notarizer']!;
});
afterAll(async () => {
  await coordinator.close();
  await identities.close();
});

const apiKey = (key: ApiKeyPair) => ({ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve });

/** A sub-organization of that root user. */
async function subOrganization(user: object, more: object = {}, by = coordinator.client) {
  const activity = await by.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: 'Sub',
    rootUsers: [{ userName: 'Ann', apiKeys: [], authenticators: [], oauthProviders: [], ...user }],
    rootQuorumThreshold: 1,
    ...more,
  });
  const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(activity);
  return { organizationId: subOrganizationId, userIds: rootUserIds, userId: rootUserIds[0]! };
}

const clientOf = (organizationId: string, key: ApiKeyPair) =>
  new StampingClient(coordinator.url, organizationId, key, coordinator.clock);

/** What a session says, once its signature was verified as the published client does it. */
async function sessionOf(activity: { readonly result: object }) {
  const { session } = resultOf(activity);
  expect(await verifySessionJwtSignature(session!, notarizer)).toBe(true);
  return claimsOf(session!);
}

/** A verification token for an e-mail address, bound to a key if there is one. */
async function verificationToken(
  contact: string,
  key?: ApiKeyPair,
  organizationId = coordinator.organizationId,
  by = coordinator.client,
) {
  const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme', userIdentifier: `${++count}` };
  const at = { organizationId };
  const { otpId } = resultOf<{ otpId: string }>(await by.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked, at));
  const otpCode = await codeOf(coordinator, otpId);
  const bound = key ? { publicKey: key.publicKey } : {};
  return resultOf(await by.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode, ...bound }, at))['verificationToken']!;
}

/** Proves the address of a user, who stamps with that client. */
async function prove(client: StampingClient, userId: string, userEmail: string) {
  // A sub-organization sends codes to its own users only.
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail });
  const token = await verificationToken(userEmail, undefined, client.organizationId, client);
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail, verificationToken: token });
}

/** The header of an attested stamp, as the published client makes it. */
function attested(body: string, key: ApiKeyPair, token: string, scheme: AttestedScheme, more: object = {}): string {
  const { publicKey } = key;
  const stamp = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString()) as {
    signature: string;
  };
  const text = JSON.stringify({ publicKeyAttestation: token, scheme, publicKey, signature: stamp.signature, ...more });
  return Buffer.from(text).toString('base64url');
}

const byToken = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
const byOidc = 'STAMP_ATTESTED_SCHEME_P256_OIDC';

/** Logs in with a key that a token vouches for. */
async function attestedLogin(
  organizationId: string,
  key: ApiKeyPair,
  token: string,
  scheme: AttestedScheme = byToken,
  { parameters = {}, activityType = type }: { parameters?: object; activityType?: string } = {},
) {
  const client = clientOf(organizationId, key);
  const timestampMs = String(coordinator.clock.now() + ++count);
  const body = client.submitBody(activityType, { publicKey: key.publicKey, ...parameters }, { timestampMs });
  const headers = { 'x-stamp-attested': attested(body, key, token, scheme) };
  return (
    await send<{
      activity: { id: string; status: string; fingerprint: string; organizationId: string; result: object };
    }>(`${coordinator.url}${submitPath(activityType)}`, body, headers)
  ).body.activity;
}

test('whoever stamps gets a session for a key of the client, and needs no policy for it', async () => {
  const ann = await coordinator.createUser('Ann');
  const key = coordinator.newKey();
  const activity = await ann.client.submit(type, { publicKey: key.publicKey, expirationSeconds: '60' });
  expect(await sessionOf(activity)).toEqual({
    exp: Math.floor(coordinator.clock.now() / 1000) + 60,
    public_key: key.publicKey,
    session_type: 'SESSION_TYPE_READ_WRITE',
    user_id: ann.userId,
    organization_id: coordinator.organizationId,
  });
  const session = coordinator.clientFor(key);
  expect(await session.query('whoami')).toMatchObject({ userId: ann.userId });
  // A session goes on by logging in again with its own key.
  const next = coordinator.newKey();
  await session.submit(type, { publicKey: next.publicKey, invalidateExisting: true });
  expect(await refusal(session.query('whoami'))).toMatchObject({ turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
  coordinator.clock.advance('15m');
  expect(await refusal(coordinator.clientFor(next).query('whoami'))).toMatchObject({
    turnkeyErrorCode: 'API_KEY_EXPIRED',
  });
});

test('a policy may forbid it', async () => {
  const eve = await coordinator.createUser('Eve');
  await coordinator.createPolicy({
    policyName: 'no sessions for Eve',
    effect: 'EFFECT_DENY',
    condition: "activity.kind == 'STAMP_LOGIN'",
    consensus: `approvers.any(user, user.id == '${eve.userId}')`,
  });
  expect(await refusal(eve.client.submit(type, { publicKey: coordinator.newKey().publicKey }))).toMatchObject({
    status: 403,
    turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED',
  });
});

describe('a session', () => {
  const readWrite = 'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2';
  const keysOf = (userId: string) => ({ userId, apiKeys: [apiKey(coordinator.newKey())] });
  const login = (client: StampingClient, parameters: object = {}) => {
    const { publicKey } = coordinator.newKey();
    return client.submit(type, { publicKey, ...parameters });
  };
  const session = async (client: StampingClient) => {
    const key = coordinator.newKey();
    await client.submit(type, { publicKey: key.publicKey });
    return coordinator.clientFor(key);
  };

  test('renews itself, for 100 years', async () => {
    const ann = await coordinator.createUser('Ann');
    const [first, next] = [await session(ann.client), coordinator.newKey()];
    await first.submit(type, { publicKey: next.publicKey, expirationSeconds: String(100 * 365 * 86_400) });
    coordinator.clock.advance('15m');
    expect(await refusal(first.query('whoami'))).toMatchObject({ turnkeyErrorCode: 'API_KEY_EXPIRED' });
    expect(await coordinator.clientFor(next).query('whoami')).toMatchObject({ userId: ann.userId });
  });

  test('makes no key under company policy 11, and an API key and a login by a code still do', async () => {
    const { client } = coordinator;
    const ann = await coordinator.createUser('Ann');
    const userEmail = 'ann.in.session@example.com';
    const { userId } = ann;
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', {
      userId,
      userEmail,
      verificationToken: await verificationToken(userEmail),
    });
    const bySession = await session(ann.client);
    const target = coordinator.newKey();
    const { credentialBundle } = resultOf(await ann.client.submit(readWrite, { targetPublicKey: target.publicKey }));
    const byBundle = coordinator.clientFor(
      apiKeyPairFromPrivate(decryptCredentialBundle(credentialBundle!, target.privateKey)),
    );
    const page = readFileSync(new URL('../../docs/how-to/company-policies.md', import.meta.url), 'utf8');
    const [, text = ''] = /^## 11\. [^]*?```json\n([^]*?)```/m.exec(page)!;
    const policyId = await coordinator.createPolicy(JSON.parse(text) as Parameters<typeof coordinator.createPolicy>[0]);

    const denied = { status: 403, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' };
    for (const one of [bySession, byBundle]) {
      expect(await one.query('whoami')).toMatchObject({ userId });
      expect(await refusal(login(one))).toMatchObject(denied);
      expect(await refusal(one.submit(readWrite, { targetPublicKey: coordinator.newKey().publicKey }))).toMatchObject(
        denied,
      );
      expect(await refusal(one.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', keysOf(userId)))).toMatchObject(denied);
    }
    const done = { status: 'ACTIVITY_STATUS_COMPLETED' };
    expect(await login(ann.client)).toMatchObject(done);
    expect(await ann.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', keysOf(userId))).toMatchObject(done);
    const [bound, other] = [coordinator.newKey(), coordinator.newKey()];
    expect(
      await attestedLogin(coordinator.organizationId, bound, await verificationToken(userEmail, bound)),
    ).toMatchObject(done);
    const token = await verificationToken(userEmail, other);
    const asked = { publicKey: other.publicKey };
    expect(
      await client.submit('ACTIVITY_TYPE_OTP_LOGIN_V2', {
        verificationToken: token,
        ...asked,
        clientSignature: clientSignature(other, token, 'USAGE_TYPE_LOGIN', { login: asked }),
      }),
    ).toMatchObject(done);
    await client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });
});

describe('with the id of the parent', () => {
  test('an API key finds its sub-organization, for whoami and for sessions, and for nothing else', async () => {
    const key = coordinator.newKey();
    const { organizationId, userId } = await subOrganization({ apiKeys: [apiKey(key)] });
    const client = coordinator.clientFor(key);
    expect(await client.query('whoami')).toEqual({ organizationId, organizationName: 'Sub', userId, username: 'Ann' });

    const own = coordinator.newKey();
    const activity = await client.submit(type, { publicKey: own.publicKey });
    expect(activity.organizationId).toBe(organizationId);
    expect(await sessionOf(activity)).toMatchObject({ organization_id: organizationId, user_id: userId });
    expect(await clientOf(organizationId, own).query('whoami')).toMatchObject({ userId });
    const readWrite = await client.submit('ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2', {
      targetPublicKey: coordinator.newKey().publicKey,
    });
    expect(resultOf(readWrite)).toMatchObject({ organizationId, organizationName: 'Sub', userId, username: 'Ann' });

    const nobody = { status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' };
    expect(await refusal(client.query('list_users'))).toMatchObject(nobody);
    expect(
      await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] })),
    ).toMatchObject(nobody);
  });

  test('a passkey too, right after it was made', async () => {
    const passkey = new SoftwareAuthenticator();
    const authenticators = [{ authenticatorName: 'passkey', ...passkey.register() }];
    const { organizationId, userId } = await subOrganization({ authenticators });
    const { publicKey } = coordinator.newKey();
    const body = coordinator.client.submitBody(type, { publicKey });
    const headers = { 'x-stamp-webauthn': passkey.assert({ body }) };
    const { body: answer } = await send<{ activity: { result: object } }>(
      `${coordinator.url}/public/v1/submit/stamp_login`,
      body,
      headers,
    );
    expect(await sessionOf(answer.activity)).toMatchObject({ organization_id: organizationId, user_id: userId });
    const question = JSON.stringify({ organizationId: coordinator.organizationId });
    const { body: who } = await send(`${coordinator.url}/public/v1/query/whoami`, question, {
      'x-stamp-webauthn': passkey.assert({ body: question }),
    });
    expect(who).toMatchObject({ organizationId, userId });
  });

  test('a key in two sub-organizations finds neither, until one is gone', async () => {
    const [key, other] = [coordinator.newKey(), coordinator.newKey()];
    const first = await subOrganization({ apiKeys: [apiKey(key), apiKey(other)] });
    const second = await subOrganization({ apiKeys: [apiKey(key)] });
    const client = coordinator.clientFor(key);
    const conflict = { status: 401, turnkeyErrorCode: 'CREDENTIAL_CONFLICT' };
    expect(await refusal(client.query('whoami'))).toMatchObject(conflict);
    expect(await refusal(client.submit(type, { publicKey: coordinator.newKey().publicKey }))).toMatchObject(conflict);
    for (const { organizationId } of [first, second]) {
      expect(await clientOf(organizationId, key).query('whoami')).toMatchObject({ organizationId });
    }
    const owner = clientOf(first.organizationId, other);
    const { apiKeys } = await owner.query<{ apiKeys: { apiKeyId: string; credential: { publicKey: string } }[] }>(
      'get_api_keys',
      { userId: first.userId },
    );
    const { apiKeyId } = apiKeys.find(({ credential }) => credential.publicKey === key.publicKey)!;
    await owner.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: first.userId, apiKeyIds: [apiKeyId] });
    expect(await client.query('whoami')).toMatchObject({ organizationId: second.organizationId });
  });

  test('a key of the parent itself stays there', async () => {
    const ann = await coordinator.createUser('Ann');
    const { organizationId } = await subOrganization({ apiKeys: [apiKey(ann.key)] });
    expect(await ann.client.query('whoami')).toMatchObject({ organizationId: coordinator.organizationId });
    expect(await clientOf(organizationId, ann.key).query('whoami')).toMatchObject({ organizationId });
  });

  test('a key of nobody is told where it was looked for', async () => {
    const client = coordinator.clientFor(coordinator.newKey());
    const message = `could not find public key in organization: organizationId=${coordinator.organizationId} publicKey=${client.key.publicKey}`;
    const nobody = { status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND', message };
    expect(await refusal(client.query('whoami'))).toMatchObject(nobody);
    expect(await refusal(client.submit(type, { publicKey: client.key.publicKey }))).toMatchObject(nobody);
  });
});

describe('a read-only session', () => {
  const make = 'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION';

  interface Session {
    readonly session: string;
    readonly sessionExpiry: string;
  }

  /** Nothing in the body says whose it is to be: two users in one millisecond would submit one activity. */
  const sessionBy = async (client: StampingClient) => {
    const timestampMs = String(coordinator.clock.now() + ++count);
    return resultOf<Session>(await client.submit(make, {}, { timestampMs }));
  };

  const asked = <Answer = Record<string, unknown>>(
    session: string,
    query = 'whoami',
    organizationId = coordinator.organizationId,
    more: Readonly<Record<string, string>> = {},
  ) =>
    send<Answer>(`${coordinator.url}/public/v1/query/${query}`, JSON.stringify({ organizationId }), {
      'x-session': session,
      ...more,
    });

  test('reads what its user may, by the header alone, until it ends', async () => {
    const ann = await coordinator.createUser('Ann');
    const { session, sessionExpiry } = await sessionBy(ann.client);
    expect(sessionExpiry).toBe(String(Math.floor(coordinator.clock.now() / 1000) + 900));
    expect((await asked(session)).body).toMatchObject({ userId: ann.userId, username: 'Ann' });
    const { users } = (await asked<{ users: { userId: string }[] }>(session, 'list_users')).body;
    expect(users.map(({ userId }) => userId)).toContain(ann.userId);

    coordinator.clock.advance('899s');
    expect((await asked(session)).body).toMatchObject({ userId: ann.userId });
    coordinator.clock.advance('1s');
    expect(await refusal(asked(session))).toMatchObject({ status: 401, turnkeyErrorCode: 'API_KEY_EXPIRED' });
  });

  test('is told to whoever submits it, once, and to nobody who reads what was recorded', async () => {
    const ann = await coordinator.createUser('Ann');
    const body = ann.client.submitBody(make, {});
    const post = () => ann.client.post<{ activity: ActivityEnvelope }>(submitPath(make), body);
    const { activity } = (await post()).body;
    const { session } = resultOf<Session>(activity);
    expect(await refusal(post())).toMatchObject({ status: 400, message: textLike('start again') });

    const read = await ann.client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId: activity.id });
    const recorded = resultOf<Session>(read.activity);
    expect(session.startsWith(`${recorded.session}.`)).toBe(true);
    expect(await refusal(asked(recorded.session))).toMatchObject({
      status: 401,
      turnkeyErrorCode: 'SIGNATURE_INVALID',
    });
    const proof = session.split('.')[1]!;
    expect(JSON.stringify((await coordinator.events()).map(({ data }) => data))).not.toContain(proof);
    // Another user with the same bytes has a user of their own behind the stamp.
    const bob = await coordinator.createUser('Bob');
    const again = (await bob.client.post<{ activity: ActivityEnvelope }>(submitPath(make), body)).body.activity;
    expect(resultOf<Session>(again).session).toBe(recorded.session);
  });

  test('does nothing: no submit takes it, not even beside a stamp, and no query takes both', async () => {
    const ann = await coordinator.createUser('Ann');
    const { session } = await sessionBy(ann.client);
    const refused = { status: 401, turnkeyErrorCode: 'SIGNATURE_MISSING', message: textLike(/queries only/) };
    for (const [activityType, parameters] of [
      ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] }],
      [make, {}],
      ['ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: `sha256:${'00'.repeat(32)}` }],
    ] as const) {
      const body = coordinator.client.submitBody(activityType, parameters);
      const url = `${coordinator.url}${submitPath(activityType)}`;
      const { headerName, headerValue } = stampBody(body, coordinator.client.key);
      expect(await refusal(send(url, body, { 'x-session': session }))).toMatchObject(refused);
      expect(await refusal(send(url, body, { 'x-session': session, [headerName]: headerValue }))).toMatchObject(
        refused,
      );
    }
    const { headerName, headerValue } = stampBody('{}', ann.key);
    expect(await refusal(asked(session, 'whoami', undefined, { [headerName]: headerValue }))).toMatchObject({
      status: 401,
      turnkeyErrorCode: 'SIGNATURE_INVALID',
      message: textLike(/a session or a stamp, not both/),
    });
  });

  test('reads no other organization: not a sub-organization, not the parent, no stranger’s', async () => {
    const key = coordinator.newKey();
    const { organizationId, userId } = await subOrganization({ apiKeys: [apiKey(key)] });
    const own = await sessionBy(clientOf(organizationId, key));
    expect((await asked(own.session, 'list_users', organizationId)).body).toMatchObject({ users: [{ userId }] });
    // As with a stamp, whoami finds the sub-organization by the parent's id, and is the only one to.
    expect((await asked(own.session)).body).toMatchObject({ organizationId, userId });
    const elsewhere = { status: 401, turnkeyErrorCode: 'ORGANIZATION_MISMATCH' };
    expect(await refusal(asked(own.session, 'list_users'))).toMatchObject(elsewhere);
    const stranger = await subOrganization({ apiKeys: [apiKey(coordinator.newKey())] });
    for (const query of ['whoami', 'list_users']) {
      expect(await refusal(asked(own.session, query, stranger.organizationId))).toMatchObject(elsewhere);
    }
    const root = await sessionBy(coordinator.client);
    expect(await refusal(asked(root.session, 'list_users', organizationId))).toMatchObject(elsewhere);
  });

  test('is refused when a letter of it has changed, or its user', async () => {
    const [ann, bob] = [await coordinator.createUser('Ann'), await coordinator.createUser('Bob')];
    const { session } = await sessionBy(ann.client);
    const [claims, proof] = session.split('.') as [string, string];
    const changed = Buffer.from(claims, 'base64url').toString().replace(ann.userId, bob.userId);
    for (const forged of [
      `${Buffer.from(changed).toString('base64url')}.${proof}`,
      `${claims}.${proof.replace(/^./, (letter) => (letter === 'A' ? 'B' : 'A'))}`,
      `${claims}.`,
      'x',
      '',
    ]) {
      expect(await refusal(asked(forged))).toMatchObject({ status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID' });
    }
    expect(await refusal(asked('x'.repeat(1_025)))).toMatchObject({ status: 401, message: textLike(/at most 1024/) });
  });

  test('ends with the credential that made it, with that credential’s life, and with its user', async () => {
    const ann = await coordinator.createUser('Ann');
    const short = coordinator.newKey();
    await ann.client.submit(type, { publicKey: short.publicKey, expirationSeconds: '60' });
    const [long, brief] = [await sessionBy(ann.client), await sessionBy(coordinator.clientFor(short))];
    const ended = { status: 401, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' };
    coordinator.clock.advance('60s');
    expect(await refusal(asked(brief.session))).toMatchObject(ended);
    expect((await asked(long.session)).body).toMatchObject({ userId: ann.userId });

    const spare = coordinator.newKey();
    await ann.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: ann.userId, apiKeys: [apiKey(spare)] });
    const bySpare = await sessionBy(coordinator.clientFor(spare));
    const { apiKeys } = await ann.client.query<{ apiKeys: { apiKeyId: string; credential: { publicKey: string } }[] }>(
      'get_api_keys',
      { userId: ann.userId },
    );
    const { apiKeyId } = apiKeys.find(({ credential }) => credential.publicKey === spare.publicKey)!;
    await ann.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: ann.userId, apiKeyIds: [apiKeyId] });
    expect(await refusal(asked(bySpare.session))).toMatchObject(ended);
    expect((await asked(long.session)).body).toMatchObject({ userId: ann.userId });

    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [ann.userId] });
    expect(await refusal(asked(long.session))).toMatchObject(ended);
  });

  test('of a passkey ends with the passkey, and of an organization with it', async () => {
    const passkey = new SoftwareAuthenticator();
    const key = coordinator.newKey();
    const { organizationId, userId } = await subOrganization({
      apiKeys: [apiKey(key)],
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
    });
    const client = clientOf(organizationId, key);
    const body = client.submitBody(make, {});
    const { activity } = (
      await send<{ activity: ActivityEnvelope }>(`${coordinator.url}${submitPath(make)}`, body, {
        'x-stamp-webauthn': passkey.assert({ body }),
      })
    ).body;
    const { session } = resultOf<Session>(activity);
    expect((await asked(session, 'whoami', organizationId)).body).toMatchObject({ userId });
    const { authenticators } = await client.query<{ authenticators: { authenticatorId: string }[] }>(
      'get_authenticators',
      { userId },
    );
    const authenticatorIds = authenticators.map(({ authenticatorId }) => authenticatorId);
    await client.submit('ACTIVITY_TYPE_DELETE_AUTHENTICATORS', { userId, authenticatorIds });
    expect(await refusal(asked(session, 'whoami', organizationId))).toMatchObject({ status: 401 });

    const other = await sessionBy(client);
    await client.submit('ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION', { deleteWithoutExport: true });
    expect(await refusal(asked(other.session, 'whoami', organizationId))).toMatchObject({ status: 404 });
  });

  test('may be forbidden by a policy', async () => {
    const eve = await coordinator.createUser('Eve');
    await coordinator.createPolicy({
      policyName: 'no reading sessions for Eve',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'CREATE_READ_ONLY_SESSION'",
      consensus: `approvers.any(user, user.id == '${eve.userId}')`,
    });
    expect(await refusal(eve.client.submit(make, {}))).toMatchObject({ status: 403 });
  });
});

describe('a key that a token vouches for', () => {
  /** Somebody whose address is proved, in a sub-organization of their own. */
  async function newPerson() {
    const userEmail = `person.${++count}@example.com`;
    const own = coordinator.newKey();
    const subject = `person ${count}`;
    const oidcToken = (more: object = {}) => identities.idToken({ subject, at: coordinator.clock.now(), ...more });
    const oauthProviders = [{ providerName: 'provider', oidcToken: await oidcToken() }];
    const made = await subOrganization({ userEmail, apiKeys: [apiKey(own)], oauthProviders });
    const client = clientOf(made.organizationId, own);
    await prove(client, made.userId, userEmail);
    return { ...made, userEmail, client, oidcToken };
  }

  test.each(['the parent', 'the sub-organization'])(
    'logs in whose contact it proves, with the id of %s',
    async (named) => {
      const ann = await newPerson();
      const key = coordinator.newKey();
      const token = await verificationToken(ann.userEmail, key);
      const organizationId = named === 'the parent' ? coordinator.organizationId : ann.organizationId;
      const activity = await attestedLogin(organizationId, key, token);
      expect(activity.organizationId).toBe(ann.organizationId);
      expect(await sessionOf(activity)).toMatchObject({
        organization_id: ann.organizationId,
        user_id: ann.userId,
        public_key: key.publicKey,
      });
      expect(await clientOf(ann.organizationId, key).query('whoami')).toMatchObject({ userId: ann.userId });
    },
  );

  test.each(['the parent', 'the sub-organization'])(
    'logs in whose identity it proves, with the id of %s',
    async (named) => {
      const ann = await newPerson();
      const key = coordinator.newKey();
      const token = await ann.oidcToken({ publicKey: key.publicKey });
      const organizationId = named === 'the parent' ? coordinator.organizationId : ann.organizationId;
      const activity = await attestedLogin(organizationId, key, token, byOidc, {
        parameters: { expirationSeconds: '60' },
      });
      expect(await sessionOf(activity)).toMatchObject({ organization_id: ann.organizationId, user_id: ann.userId });
      const session = clientOf(ann.organizationId, key);
      coordinator.clock.advance(59_999);
      expect(await session.query('whoami')).toMatchObject({ userId: ann.userId });
      coordinator.clock.advance(1);
      expect(await refusal(session.query('whoami'))).toMatchObject({ turnkeyErrorCode: 'API_KEY_EXPIRED' });
    },
  );

  test('leaves what was proved in the vote, from which all of it can be decided again', async () => {
    const ann = await newPerson();
    const [first, second] = [coordinator.newKey(), coordinator.newKey()];
    const token = await verificationToken(ann.userEmail, first);
    await attestedLogin(ann.organizationId, first, token);
    await attestedLogin(ann.organizationId, second, await ann.oidcToken({ publicKey: second.publicKey }), byOidc);
    const events = await coordinator.events(organizationStream(ann.organizationId));
    const votes = events.flatMap(({ data }) => {
      const { type: of, vote } = data as { type?: string; vote?: Vote };
      return of === type && vote ? [vote] : [];
    });
    expect(votes).toMatchObject([
      {
        scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256',
        publicKey: first.publicKey,
        credentialId: claimsOf(token)['id'],
        attestation: { kind: 'contact', contact: ann.userEmail, organizationId: coordinator.organizationId },
      },
      {
        scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256',
        publicKey: second.publicKey,
        attestation: { kind: 'identity', issuer: identities.issuer, audience: 'app' },
      },
    ]);
    for (const vote of votes) await verifyVote(vote);
    await expect(verifyVote({ ...votes[0]!, message: `${votes[0]!.message} ` })).rejects.toThrow();
    const again = redecide(events, buildRegistry(activities));
    expect(again.filter(({ activityType }) => activityType === type)).toHaveLength(2);
    for (const one of again) expect(one.again).toEqual(one.recorded);
    expect(JSON.stringify(votes)).not.toContain(token);
  });

  test('serves for one login; the identical request is the same login', async () => {
    const ann = await newPerson();
    const key = coordinator.newKey();
    const token = await verificationToken(ann.userEmail, key);
    const body = clientOf(ann.organizationId, key).submitBody(type, { publicKey: key.publicKey });
    const url = `${coordinator.url}/public/v1/submit/stamp_login`;
    const headers = { 'x-stamp-attested': attested(body, key, token, byToken) };
    const first = await send<{ activity: object }>(url, body, headers);
    expect((await send<{ activity: object }>(url, body, headers)).body).toEqual(first.body);
    expect(await refusal(attestedLogin(ann.organizationId, key, token))).toMatchObject({
      status: 400,
      code: 9,
      message: expect.stringContaining('has already been used for USAGE_TYPE_LOGIN') as string,
    });
  });

  test('waits for votes like any other, and counts as long as the contact is the same', async () => {
    const [annKey, benKey] = [coordinator.newKey(), coordinator.newKey()];
    const userEmail = `person.${++count}@example.com`;
    const user = { authenticators: [], oauthProviders: [] };
    const { organizationId, userIds } = await subOrganization(
      {},
      {
        rootUsers: [
          { userName: 'Ann', userEmail, apiKeys: [apiKey(annKey)], ...user },
          { userName: 'Ben', apiKeys: [apiKey(benKey)], ...user },
        ],
        rootQuorumThreshold: 1,
      },
    );
    const [ann, ben] = [clientOf(organizationId, annKey), clientOf(organizationId, benKey)];
    await prove(ann, userIds[0]!, userEmail);
    await ann.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'logins take two',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'STAMP_LOGIN'",
      notes: '',
    });
    await ann.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 2, userIds });
    const login = async () => {
      const key = coordinator.newKey();
      return { key, activity: await attestedLogin(organizationId, key, await verificationToken(userEmail, key)) };
    };
    const { key, activity } = await login();
    expect(activity).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', result: {} });
    const done = await ben.approve(activity.fingerprint);
    expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await sessionOf(done)).toMatchObject({ user_id: userIds[0], public_key: key.publicKey });

    const { activity: second } = await login();
    const change = { userId: userIds[0], userEmail: '' };
    const asked = await ann.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change);
    expect((await ben.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    // Ann's approval rests on a contact that is no longer hers.
    expect((await ben.approve(second.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  });

  test('a policy sees what it is: one may forbid logins by e-mail and allow those by identity', async () => {
    const ann = await newPerson();
    const userEmail = `person.${++count}@example.com`;
    const subject = `person ${count}`;
    const helper = coordinator.newKey();
    const oidcToken = (more: object = {}) => identities.idToken({ subject, at: coordinator.clock.now(), ...more });
    const { userIds } = resultOf<{ userIds: [string] }>(
      await ann.client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
        users: [
          {
            userName: 'Ben',
            userEmail,
            apiKeys: [apiKey(helper)],
            authenticators: [],
            oauthProviders: [{ providerName: 'provider', oidcToken: await oidcToken() }],
            userTags: [],
          },
        ],
      }),
    );
    await prove(ann.client, userIds[0], userEmail);
    await ann.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'not by e-mail',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'STAMP_LOGIN'",
      consensus: "credentials.any(credential, credential.type == 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256')",
      notes: '',
    });
    const key = coordinator.newKey();
    const byContact = attestedLogin(ann.organizationId, key, await verificationToken(userEmail, key));
    expect(await refusal(byContact)).toMatchObject({ status: 403, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' });
    const denials = await coordinator.events(`denials-${ann.organizationId}`);
    expect(denials.at(-1)?.data).toMatchObject({
      type,
      userId: userIds[0],
      scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256',
      publicKey: key.publicKey,
    });
    const activity = await attestedLogin(
      ann.organizationId,
      key,
      await oidcToken({ publicKey: key.publicKey }),
      byOidc,
    );
    expect(await sessionOf(activity)).toMatchObject({ user_id: userIds[0] });
  });

  test('who has signed up logs in with the same token', async () => {
    const userEmail = `person.${++count}@example.com`;
    const key = coordinator.newKey();
    const token = await verificationToken(userEmail, key);
    const signup = { email: userEmail, apiKeys: [], authenticators: [], oauthProviders: [] };
    const message = JSON.stringify({ signupV2: signup, tokenId: claimsOf(token)['id'], type: 'USAGE_TYPE_SIGNUP' });
    const stamp = JSON.parse(Buffer.from(stampBody(message, key).headerValue, 'base64url').toString()) as {
      publicKey: string;
      signature: string;
    };
    const { publicKey, signature } = stamp;
    const scheme = 'CLIENT_SIGNATURE_SCHEME_API_P256';
    const { organizationId, userId } = await subOrganization(
      { userEmail },
      { verificationToken: token, clientSignature: { publicKey, scheme, message, signature } },
    );
    const activity = await attestedLogin(coordinator.organizationId, key, token);
    expect(await sessionOf(activity)).toMatchObject({ organization_id: organizationId, user_id: userId });
  });

  test('leads to where the contact was proved first, unless another organization is named', async () => {
    const [ann, other] = [await newPerson(), await newPerson()];
    await prove(other.client, other.userId, ann.userEmail);
    const key = coordinator.newKey();
    const token = await verificationToken(ann.userEmail, key);
    expect(await sessionOf(await attestedLogin(coordinator.organizationId, key, token))).toMatchObject({
      user_id: ann.userId,
    });
    const again = await verificationToken(ann.userEmail, key);
    expect(await sessionOf(await attestedLogin(other.organizationId, key, again))).toMatchObject({
      user_id: other.userId,
    });
  });

  describe('is refused', () => {
    const unauthenticated = { status: 401, code: 16 };

    test('on everything but stamp_login', async () => {
      const ann = await newPerson();
      const key = coordinator.newKey();
      const token = await verificationToken(ann.userEmail, key);
      const told = {
        ...unauthenticated,
        turnkeyErrorCode: 'SIGNATURE_INVALID',
        message: expect.stringContaining('log in with stamp_login') as string,
      };
      for (const [activityType, parameters] of [
        ['ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: 'Mallory', publicKey: undefined }],
        ['ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2', { targetPublicKey: key.publicKey, publicKey: undefined }],
        ['ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: `sha256:${'0'.repeat(64)}`, publicKey: undefined }],
      ] as const) {
        const attempt = attestedLogin(ann.organizationId, key, token, byToken, { activityType, parameters });
        expect([activityType, await refusal(attempt)]).toMatchObject([activityType, told]);
      }
      const body = JSON.stringify({ organizationId: ann.organizationId });
      for (const path of ['whoami', 'list_users']) {
        const headers = { 'x-stamp-attested': attested(body, key, token, byToken) };
        expect(await refusal(send(`${coordinator.url}/public/v1/query/${path}`, body, headers))).toMatchObject(told);
      }
    });

    test('with a token that vouches for another key, or for none', async () => {
      const ann = await newPerson();
      const [key, other] = [coordinator.newKey(), coordinator.newKey()];
      for (const token of [await verificationToken(ann.userEmail, other), await verificationToken(ann.userEmail)]) {
        const attempt = refusal(attestedLogin(ann.organizationId, key, token));
        expect(await attempt).toMatchObject({
          ...unauthenticated,
          message: expect.stringContaining('is not bound to') as string,
        });
      }
      for (const token of [await ann.oidcToken({ publicKey: other.publicKey }), await ann.oidcToken()]) {
        const attempt = refusal(attestedLogin(ann.organizationId, key, token, byOidc));
        expect(await attempt).toMatchObject({ status: 400, turnkeyErrorCode: 'INVALID_OIDC_TOKEN' });
      }
    });

    test('with a token of an issuer at which nobody has an identity, and the issuer is not asked', async () => {
      const [ann, stranger] = [await newPerson(), await IdentityProvider.start()];
      const key = coordinator.newKey();
      const at = coordinator.clock.now();
      for (const named of [ann.organizationId, coordinator.organizationId]) {
        const token = await stranger.idToken({ subject: 'anybody', publicKey: key.publicKey, at });
        expect(await refusal(attestedLogin(named, key, token, byOidc))).toMatchObject({
          ...unauthenticated,
          turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND',
        });
      }
      expect(stranger.requests).toEqual([]);
      const unknown = await identities.idToken({ subject: 'nobody', publicKey: key.publicKey, at });
      for (const named of [ann.organizationId, coordinator.organizationId]) {
        expect(await refusal(attestedLogin(named, key, unknown, byOidc))).toMatchObject({
          ...unauthenticated,
          turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND',
        });
      }
      await stranger.close();
    });

    test('with a signature of another key, or over another body', async () => {
      const ann = await newPerson();
      const [key, other] = [coordinator.newKey(), coordinator.newKey()];
      const token = await verificationToken(ann.userEmail, key);
      const body = clientOf(ann.organizationId, key).submitBody(type, { publicKey: key.publicKey });
      const url = `${coordinator.url}/public/v1/submit/stamp_login`;
      const invalid = { ...unauthenticated, turnkeyErrorCode: 'SIGNATURE_INVALID' };
      for (const header of [
        attested(body, other, token, byToken, { publicKey: key.publicKey }),
        attested(`${body} `, key, token, byToken),
      ]) {
        expect(await refusal(send(url, body, { 'x-stamp-attested': header }))).toMatchObject(invalid);
      }
    });

    test('for a contact that nobody has proved', async () => {
      const userEmail = `person.${++count}@example.com`;
      const key = coordinator.newKey();
      const { organizationId } = await subOrganization({ userEmail, apiKeys: [apiKey(coordinator.newKey())] });
      for (const named of [organizationId, coordinator.organizationId]) {
        const attempt = attestedLogin(named, key, await verificationToken(userEmail, key));
        expect(await refusal(attempt)).toMatchObject({ ...unauthenticated, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' });
      }
    });

    test('with a token of another sub-organization', async () => {
      const [ann, ben] = [await newPerson(), await newPerson()];
      const key = coordinator.newKey();
      await ben.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId: ben.userId, userEmail: ann.userEmail });
      const foreign = await verificationToken(ann.userEmail, key, ben.organizationId, ben.client);
      for (const named of [ann.organizationId, coordinator.organizationId]) {
        expect(await refusal(attestedLogin(named, key, foreign))).toMatchObject({
          ...unauthenticated,
          message: expect.stringContaining(`issued by organization \`${ben.organizationId}\``) as string,
        });
      }
      const own = await verificationToken(ann.userEmail, key, ann.organizationId, ann.client);
      expect(await sessionOf(await attestedLogin(ann.organizationId, key, own))).toMatchObject({ user_id: ann.userId });
    });

    test('with a token that is over, changed, or of the other kind', async () => {
      const ann = await newPerson();
      const key = coordinator.newKey();
      const token = await verificationToken(ann.userEmail, key);
      const oidcToken = await ann.oidcToken({ publicKey: key.publicKey });
      const changed = token.replace(/\.([^.]*)\./, (_whole, payload: string) => {
        const claims = {
          ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object),
          contact: 'root@example.com',
        };
        return `.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;
      });
      const attempts: readonly (readonly [string, AttestedScheme])[] = [
        [changed, byToken],
        [oidcToken, byToken],
        [token, byOidc],
      ];
      for (const [one, scheme] of attempts) {
        expect(await refusal(attestedLogin(ann.organizationId, key, one, scheme))).toMatchObject({
          status: 400,
          code: 3,
        });
      }
      coordinator.clock.advance('61m');
      for (const [one, scheme] of [
        [token, byToken],
        [oidcToken, byOidc],
      ] as const) {
        expect(await refusal(attestedLogin(ann.organizationId, key, one, scheme))).toMatchObject({
          status: 400,
          code: 3,
        });
      }
    });

    test('beside another stamp', async () => {
      const ann = await newPerson();
      const key = coordinator.newKey();
      const token = await verificationToken(ann.userEmail, key);
      const body = ann.client.submitBody(type, { publicKey: key.publicKey });
      const { headerName, headerValue } = stampBody(body, ann.client.key);
      const headers = { [headerName]: headerValue, 'x-stamp-attested': attested(body, key, token, byToken) };
      const attempt = send(`${coordinator.url}/public/v1/submit/stamp_login`, body, headers);
      await expect(attempt).rejects.toThrow(ApiError);
      expect(await refusal(attempt)).toMatchObject({ ...unauthenticated, turnkeyErrorCode: 'SIGNATURE_INVALID' });
    });
  });
});

test('sessions and what was proved are there after a restart', async () => {
  const first = await startCoordinator({ store: 'sqlite', settings: identities.settings });
  const subject = 'restarted';
  const oauthProviders = [
    { providerName: 'provider', oidcToken: await identities.idToken({ subject, at: first.clock.now() }) },
  ];
  const { subOrganizationId: organizationId } = resultOf<{ subOrganizationId: string }>(
    await first.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'Sub',
      rootUsers: [{ userName: 'Ann', apiKeys: [], authenticators: [], oauthProviders }],
      rootQuorumThreshold: 1,
    }),
  );
  const key = first.newKey();
  const login = async (at: TestCoordinator) => {
    const token = await identities.idToken({ subject, publicKey: key.publicKey, at: at.clock.now() });
    const timestampMs = String(at.clock.now() + ++count);
    const body = at.clientFor(key).submitBody(type, { publicKey: key.publicKey }, { timestampMs });
    const headers = { 'x-stamp-attested': attested(body, key, token, byOidc) };
    await send(`${at.url}/public/v1/submit/stamp_login`, body, headers);
    return at.clientFor(key, organizationId).query('whoami');
  };
  expect(await login(first)).toMatchObject({ organizationId });
  const second = await first.restart();
  try {
    expect(await second.clientFor(key, organizationId).query('whoami')).toMatchObject({ organizationId });
    expect(await login(second)).toMatchObject({ organizationId });
  } finally {
    await second.close();
  }
});
