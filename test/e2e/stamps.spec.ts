import {
  generateApiKeyPair,
  send,
  stampBody,
  startCoordinator,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
} from '../../src/testing/index.js';
import type { StampScheme } from '../../src/stamps/stamp.js';
import { SoftwareAuthenticator, type AssertOptions } from '../stamps/software-authenticator.js';
import { anyText, exchange, objectWith, refusal, textLike } from './exchange.js';
import { stampedPaths } from './routes.js';
import { furnish, querySamples, sampleSettings, submitSamples } from './samples.js';
import { startTenants } from './tenants.js';

let coordinator: TestCoordinator;
let organizationId: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: { ...sampleSettings, PASSKEY_COUNTERS: 'strict' } });
  organizationId = coordinator.organizationId;
});

afterAll(() => coordinator.close());

const whoami = () => JSON.stringify({ organizationId });
const whoamiUrl = () => `${coordinator.url}/public/v1/query/whoami`;
const keyOn = (curve: ApiKeyPair['curve']) =>
  generateApiKeyPair((count) => crypto.getRandomValues(new Uint8Array(count)), curve);

async function addKey(userId: string, key: ApiKeyPair, expirationSeconds?: string): Promise<string> {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId,
    apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve, expirationSeconds }],
  });
  return (result['createApiKeysResult'] as { apiKeyIds: string[] }).apiKeyIds[0]!;
}

describe('every scheme', () => {
  test.each<[StampScheme, ApiKeyPair['curve']]>([
    ['SIGNATURE_SCHEME_TK_API_P256', 'API_KEY_CURVE_P256'],
    ['SIGNATURE_SCHEME_TK_API_SECP256K1', 'API_KEY_CURVE_SECP256K1'],
    ['SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191', 'API_KEY_CURVE_SECP256K1'],
    ['SIGNATURE_SCHEME_TK_API_ED25519', 'API_KEY_CURVE_ED25519'],
  ])('%s: a key registered by create_api_keys asks and submits, and the vote names it', async (scheme, curve) => {
    const { userId } = await coordinator.createUser(`Signer ${scheme}`);
    const key = keyOn(curve);
    await addKey(userId, key);
    const stamped = <Body>(path: string, body: string) => {
      const { headerName, headerValue } = stampBody(body, key, scheme);
      return send<Body>(`${coordinator.url}${path}`, body, { [headerName]: headerValue });
    };

    const { body: me } = await stamped<{ userId: string }>('/public/v1/query/whoami', whoami());
    expect(me.userId).toBe(userId);

    // Its own credentials are a user's to manage, so no policy is needed.
    const type = 'ACTIVITY_TYPE_CREATE_API_KEYS_V2';
    const extra = keyOn(curve);
    const intent = coordinator.client.submitBody(type, {
      userId,
      apiKeys: [{ apiKeyName: 'second', publicKey: extra.publicKey, curveType: curve }],
    });
    const { body } = await stamped<{ activity: { status: string; votes: object[] } }>(submitPath(type), intent);
    expect(body.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(body.activity.votes).toEqual([objectWith({ userId, scheme, publicKey: key.publicKey, message: intent })]);
  });

  test('a key is taken with the scheme of its own curve only', async () => {
    const { userId } = await coordinator.createUser('Signer of one curve');
    const secp = keyOn('API_KEY_CURVE_SECP256K1');
    // The same 33 bytes can be a point on both curves: registered for P-256, they are no key for secp256k1.
    await addKey(userId, secp);
    const body = whoami();
    const { headerValue } = stampBody(body, secp, 'SIGNATURE_SCHEME_TK_API_SECP256K1');
    const stamp = JSON.parse(Buffer.from(headerValue, 'base64url').toString()) as Record<string, string>;
    const forged = JSON.stringify({ ...stamp, scheme: 'SIGNATURE_SCHEME_TK_API_P256' });
    const refused = await refusal(send(whoamiUrl(), body, { 'X-Stamp': Buffer.from(forged).toString('base64url') }));
    expect(refused).toMatchObject({ status: 401, code: 16, turnkeyErrorCode: 'SIGNATURE_INVALID' });
  });
});

describe('passkeys', () => {
  async function userWithPasskey(passkey: SoftwareAuthenticator, signCount = 0) {
    const user = await coordinator.createUser('Passkey owner');
    const authenticators = [{ authenticatorName: 'passkey', ...passkey.register({ signCount }) }];
    await user.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId: user.userId, authenticators });
    const ask = (options: Partial<AssertOptions> = {}) => {
      const body = whoami();
      const stamp = passkey.assert({ body, ...options });
      return send<{ userId: string }>(whoamiUrl(), body, { 'X-Stamp-WebAuthn': stamp });
    };
    const submit = (options: Partial<AssertOptions> = {}) => {
      const key = coordinator.newKey();
      const type = 'ACTIVITY_TYPE_CREATE_API_KEYS_V2';
      const body = coordinator.client.submitBody(type, {
        userId: user.userId,
        apiKeys: [
          { apiKeyName: 'k', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256', expirationSeconds: '60' },
        ],
      });
      const stamp = passkey.assert({ body, ...options });
      return send<{ activity: { votes: Record<string, unknown>[] } }>(`${coordinator.url}${submitPath(type)}`, body, {
        'X-Stamp-WebAuthn': stamp,
      });
    };
    return { ...user, ask, submit };
  }

  test.each(['ES256', 'EdDSA'] as const)('%s: asks, submits, and the vote can be verified again', async (algorithm) => {
    const passkey = new SoftwareAuthenticator({ algorithm });
    const { userId, ask, submit } = await userWithPasskey(passkey);
    expect((await ask()).body.userId).toBe(userId);
    const [vote] = (await submit()).body.activity.votes;
    expect(vote).toMatchObject({
      userId,
      scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN',
      publicKey: passkey.publicKey,
      authenticatorData: textLike(/^[\w-]+$/),
      clientDataJson: textLike(/^[\w-]+$/),
    });
  });

  test('a counter that does not go on refuses a submit and a question', async () => {
    const { ask, submit } = await userWithPasskey(new SoftwareAuthenticator(), 5);
    await submit({ signCount: 6 });
    for (const signCount of [6, 5, 0]) {
      for (const attempt of [submit, ask]) {
        const refused = await refusal(attempt({ signCount }));
        expect(refused).toMatchObject({ status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID' });
        expect(refused.message).toContain('counter');
      }
    }
    // A question is not recorded, so it does not use a count up: its stamp could be sent again anyway.
    await ask({ signCount: 7 });
    await submit({ signCount: 7 });
  });

  test('a rejection uses a count up, as every submit does', async () => {
    const passkey = new SoftwareAuthenticator();
    const { userId, submit } = await userWithPasskey(passkey, 5);
    const asker = await coordinator.createUser('Asker');
    await coordinator.createPolicy({
      policyName: 'both of them',
      condition: "activity.kind == 'CREATE_USER_TAG'",
      consensus: [userId, asker.userId].map((id) => `approvers.any(user, user.id == '${id}')`).join(' && '),
    });
    const asked = { userTagName: 'to be rejected', userIds: [] };
    const { fingerprint } = await asker.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', asked);
    const type = 'ACTIVITY_TYPE_REJECT_ACTIVITY';
    const body = coordinator.client.submitBody(type, { fingerprint });
    const stamp = passkey.assert({ body, signCount: 6 });
    const rejected = await send(`${coordinator.url}${submitPath(type)}`, body, { 'X-Stamp-WebAuthn': stamp });
    expect(rejected.body).toMatchObject({ activity: { status: 'ACTIVITY_STATUS_REJECTED' } });
    expect(await refusal(submit({ signCount: 6 }))).toMatchObject({ status: 401, message: textLike('counter') });
    await submit({ signCount: 7 });
  });

  test('two submits with one count in parallel: one is taken', async () => {
    const { submit } = await userWithPasskey(new SoftwareAuthenticator(), 1);
    const outcomes = await Promise.allSettled([submit({ signCount: 2 }), submit({ signCount: 2 })]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('the origins of the feature are the only ones, and all are allowed again without it', async () => {
    const passkey = new SoftwareAuthenticator({ origin: 'https://app.wallet.example.com' });
    const { ask } = await userWithPasskey(passkey);
    const name = 'FEATURE_NAME_WEBAUTHN_ORIGINS';
    const set = (value: string) => coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name, value });
    await ask();
    try {
      await set('https://wallet.example.com,https://other.example.com');
      const refused = await refusal(ask());
      expect(refused).toMatchObject({ status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID' });
      expect(refused.message).toContain('`https://app.wallet.example.com`');
      await ask({ origin: 'https://wallet.example.com' });
      await set('https://other.example.com, https://app.wallet.example.com');
      await ask();
    } finally {
      await coordinator.client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', { name });
    }
    await ask({ origin: 'https://wallet.example.com' });
  });

  test('a deleted passkey, a stranger, another body and a forged signature are refused', async () => {
    const passkey = new SoftwareAuthenticator();
    const { userId, client, ask } = await userWithPasskey(passkey);
    const stranger = new SoftwareAuthenticator();
    const stamp = stranger.assert({ body: whoami() });
    const unknown = await refusal(send(whoamiUrl(), whoami(), { 'X-Stamp-WebAuthn': stamp }));
    expect(unknown).toMatchObject({ status: 401, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' });
    expect(unknown.message).toContain(organizationId);
    expect(unknown.message).toContain(stranger.credentialId);

    for (const options of [{ body: `${whoami()} ` }, { signWith: stranger }, { userPresent: false }]) {
      expect(await refusal(ask(options))).toMatchObject({ status: 401, turnkeyErrorCode: 'SIGNATURE_INVALID' });
    }

    const { user } = await client.query<{ user: { authenticators: { authenticatorId: string }[] } }>('get_user', {
      userId,
    });
    const authenticatorIds = user.authenticators.map(({ authenticatorId }) => authenticatorId);
    await client.submit('ACTIVITY_TYPE_DELETE_AUTHENTICATORS', { userId, authenticatorIds });
    expect(await refusal(ask())).toMatchObject({ status: 401, turnkeyErrorCode: 'CREDENTIAL_NOT_FOUND' });
  });
});

describe('on every route', () => {
  test('there are as many as the lists say', () => {
    expect(stampedPaths.length).toBeGreaterThanOrEqual(40);
  });

  test.each(stampedPaths)('%s takes nothing without a good stamp', async (path) => {
    const body = whoami();
    const { headerValue } = stampBody(body, coordinator.client.key);
    const { headerValue: ofAnotherBody } = stampBody(`${body} `, coordinator.client.key);
    const members = JSON.parse(Buffer.from(headerValue, 'base64url').toString()) as Record<string, string>;
    const stampWith = (changes: object) =>
      Buffer.from(JSON.stringify({ ...members, ...changes })).toString('base64url');
    const attempts: readonly [string, Record<string, string>, string][] = [
      ['none', {}, 'SIGNATURE_MISSING'],
      ['empty', { 'x-stamp': '' }, 'SIGNATURE_INVALID'],
      ['garbled', { 'x-stamp': '%%%' }, 'SIGNATURE_INVALID'],
      ['half', { 'x-stamp': headerValue.slice(0, 40) }, 'SIGNATURE_INVALID'],
      ['without a signature', { 'x-stamp': stampWith({ signature: '' }) }, 'SIGNATURE_INVALID'],
      ['with a member more', { 'x-stamp': stampWith({ more: '' }) }, 'SIGNATURE_INVALID'],
      ['unknown scheme', { 'x-stamp': stampWith({ scheme: 'SIGNATURE_SCHEME_NONE' }) }, 'SIGNATURE_INVALID'],
      ['another key', { 'x-stamp': stampWith({ publicKey: coordinator.newKey().publicKey }) }, 'SIGNATURE_INVALID'],
      ['of another body', { 'x-stamp': ofAnotherBody }, 'SIGNATURE_INVALID'],
      ['both headers', { 'x-stamp': headerValue, 'x-stamp-webauthn': '{}' }, 'SIGNATURE_INVALID'],
      ['garbled passkey', { 'x-stamp-webauthn': '{' }, 'SIGNATURE_INVALID'],
    ];
    for (const [name, headers, category] of attempts) {
      const answer = await exchange(`${coordinator.url}${path}`, { method: 'POST', body, headers });
      expect({ name, status: answer.status, body: answer.body }).toEqual({
        name,
        status: 401,
        body: {
          code: 16,
          message: anyText,
          details: [{ '@type': 'type.googleapis.com/errors.v1.TurnkeyErrorDetail', turnkeyErrorCode: category }],
          turnkeyErrorCode: category,
        },
      });
    }
  });
});

describe('a good stamp of somebody who does not belong', () => {
  test('is refused on every route with the organization and the key it was looked for', async () => {
    const furnished = await furnish(coordinator);
    const foreign = coordinator.clientFor(coordinator.newKey());
    const requests: [string, () => Promise<unknown>][] = [
      ...Object.entries(submitSamples(furnished)).map(([type, parameters]): [string, () => Promise<unknown>] => [
        type,
        () => foreign.submit(type, parameters),
      ]),
      ...Object.entries(querySamples(furnished)).map(([path, request]): [string, () => Promise<unknown>] => [
        path,
        () => foreign.query(path, request),
      ]),
    ];
    expect(requests.length).toBe(stampedPaths.length);
    for (const [name, request] of requests) {
      const refused = await refusal(request());
      expect({ name, ...refused }).toMatchObject({ name, status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
      expect(refused.message).toBe(
        `could not find public key in organization: organizationId=${organizationId} publicKey=${foreign.key.publicKey}`,
      );
    }
  });

  test('of another organization is refused, whatever it asks, and of the parent reads but does not write', async () => {
    const { parent, child, stranger, close } = await startTenants();
    try {
      const target = { organizationId: child.organizationId };
      const tag = { userTagName: 'tag' };
      expect(await refusal(stranger.client.query('list_users', target))).toMatchObject({
        turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND',
        message: textLike('in organization or its parent organization'),
      });
      expect(await refusal(stranger.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag, target))).toMatchObject({
        status: 401,
        turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND',
      });
      // A child's credential is nobody in the parent.
      const up = { organizationId: parent.organizationId };
      expect(await refusal(child.client.query('list_users', up))).toMatchObject({ status: 401 });

      const { users } = await parent.client.query<{ users: { userName: string }[] }>('list_users', target);
      expect(users.map(({ userName }) => userName)).toEqual(['Root of Child']);
      expect(await parent.client.query('whoami', target)).toMatchObject({
        organizationId: parent.organizationId,
        userId: parent.userId,
      });
      const refused = await refusal(parent.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag, target));
      expect(refused).toMatchObject({ status: 400, code: 3, turnkeyErrorCode: 'ORGANIZATION_MISMATCH' });
      expect(refused.message).toContain(
        `organization mismatch: request is targeting organization ("${child.organizationId}"), but voters are in organization ("${parent.organizationId}")`,
      );
      expect(await child.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag)).toMatchObject({
        status: 'ACTIVITY_STATUS_COMPLETED',
      });
    } finally {
      await close();
    }
  });

  test('ids of another organization name nothing', async () => {
    const { child, stranger, close } = await startTenants();
    try {
      const { id, fingerprint } = await child.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag' });
      for (const path of ['get_activity', 'get_policy_evaluations', 'list_activity_events']) {
        const refused = await refusal(stranger.client.query(path, { activityId: id }));
        expect(refused).toMatchObject({ status: 404, code: 5 });
      }
      expect(await refusal(stranger.client.query('get_user', { userId: child.userId }))).toMatchObject({ status: 404 });
      expect(await refusal(stranger.client.approve(fingerprint))).toMatchObject({ status: 404 });
      const { activities } = await stranger.client.query<{ activities: unknown[] }>('list_activities');
      expect(activities).toEqual([]);
    } finally {
      await close();
    }
  });
});

describe('keys that are over', () => {
  test('an expired key is refused from its last millisecond on', async () => {
    const { userId } = await coordinator.createUser('Short-lived');
    const key = coordinator.newKey();
    await addKey(userId, key, '60');
    const client = coordinator.clientFor(key);
    coordinator.clock.advance(59_999);
    await client.query('whoami');
    coordinator.clock.advance(1);
    const type = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
    for (const attempt of [client.query('whoami'), client.submit(type, { userId, userName: 'Me' })]) {
      const refused = await refusal(attempt);
      expect(refused).toMatchObject({ status: 401, code: 16, turnkeyErrorCode: 'API_KEY_EXPIRED' });
      expect(refused.message).toContain('expired api key');
    }
  });

  test('a deleted key is refused in the same millisecond', async () => {
    const { userId, client } = await coordinator.createUser('Deleted');
    const key = coordinator.newKey();
    const apiKeyId = await addKey(userId, key);
    const spare = coordinator.clientFor(key);
    await spare.query('whoami');
    const now = coordinator.clock.now();
    await client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: [apiKeyId] });
    for (const attempt of [
      spare.query('whoami'),
      spare.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: 'Me' }),
      spare.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds: [apiKeyId] }),
    ]) {
      expect(await refusal(attempt)).toMatchObject({ status: 401, turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
    }
    expect(coordinator.clock.now()).toBe(now);
  });

  test('the keys of a deleted user go with the user', async () => {
    const { userId, client } = await coordinator.createUser('Leaver');
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [userId] });
    expect(await refusal(client.query('whoami'))).toMatchObject({ turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
  });
});
