import { exchange, refusal, textLike } from './exchange.js';
import { IdentityProvider } from './identity-provider.js';
import { resultOf, target } from './login-world.js';
import { codeOf } from './one-time-codes.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { startCoordinator, type ApiKeyPair, type TestCoordinator, type TestUser } from '../../src/testing/index.js';

let coordinator: TestCoordinator;
let provider: IdentityProvider;

beforeAll(async () => {
  provider = await IdentityProvider.start();
  coordinator = await startCoordinator({
    settings: {
      ...provider.settings,
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
});

afterAll(async () => {
  await coordinator.close();
  await provider.close();
});

let count = 0;

/** A member who may do what the condition says, and nothing else. */
async function grantee(condition: string): Promise<TestUser> {
  const name = `Mallory ${++count}`;
  const member = await coordinator.createUser(name);
  const policyId = await coordinator.createPolicy({
    policyName: `what ${name} may do`,
    condition,
    consensus: `approvers.any(user, user.id == '${member.userId}')`,
  });
  grants.push(policyId);
  return member;
}

const grants: string[] = [];

/** Takes all grants back: while one stands, it also says that others may not manage their own credentials. */
async function revoke(): Promise<void> {
  for (const policyId of grants.splice(0)) await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
}

afterEach(revoke);

async function proxy(path: string, body: object): Promise<Record<string, string>> {
  const answer = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as Record<string, string>;
}

/** What the public proxy gives to whoever receives what is sent to a contact. */
async function proved(contact: string, otpType = 'OTP_TYPE_EMAIL') {
  const key = coordinator.newKey();
  const { otpId } = await proxy('otp_init', { otpType, contact });
  const otpCode = await codeOf(coordinator, otpId!);
  const { verificationToken } = await proxy('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
  return { key, verificationToken: verificationToken! };
}

const apiKey = ({ publicKey }: ApiKeyPair, more: object = {}) => ({
  apiKeyName: 'a key',
  publicKey,
  curveType: 'API_KEY_CURVE_P256',
  ...more,
});

/** The refusal that tells whose credentials they are. */
const theirs = (userId: string) => ({
  status: 403,
  turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED',
  message: textLike(new RegExp(`user \`${userId}\` is a member of the root quorum`)),
});

/** What a user has to log in with. */
async function waysInOf(userId: string): Promise<unknown> {
  const { user } = await coordinator.client.query<{ user: Record<string, unknown> }>('get_user', { userId });
  const { apiKeys, authenticators, oauthProviders, userEmail, userPhoneNumber } = user;
  return { apiKeys, authenticators, oauthProviders, userEmail, userPhoneNumber };
}

describe('a narrow grant does not become root', () => {
  let before: unknown;
  beforeEach(async () => {
    before = await waysInOf(coordinator.root.userId);
  });
  afterEach(async () => {
    expect(await waysInOf(coordinator.root.userId)).toEqual(before);
  });

  test("by the member's own proved mailbox, set as the root user's", async () => {
    const { userId } = coordinator.root;
    const mallory = await grantee("activity.kind == 'UPDATE_USER_EMAIL'");
    const { verificationToken } = await proved('mallory@example.com');
    const asked = { userId, userEmail: 'mallory@example.com', verificationToken };
    expect(await refusal(mallory.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', asked))).toMatchObject(
      theirs(userId),
    );
  });

  test("by the member's own proved telephone", async () => {
    const { userId } = coordinator.root;
    const mallory = await grantee("activity.kind == 'UPDATE_USER_PHONE_NUMBER'");
    const { verificationToken } = await proved('+12025550111', 'OTP_TYPE_SMS');
    const asked = { userId, userPhoneNumber: '+12025550111', verificationToken };
    const attempt = mallory.client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', asked);
    expect(await refusal(attempt)).toMatchObject(theirs(userId));
  });

  test.each([
    ['an address', { userEmail: 'mallory@example.com' }],
    ['a number', { userPhoneNumber: '+12025550111' }],
  ])('by %s that update_user only writes down', async (_what, contact) => {
    const { userId } = coordinator.root;
    const mallory = await grantee("activity.kind == 'UPDATE_USER'");
    const attempt = mallory.client.submit('ACTIVITY_TYPE_UPDATE_USER', { userId, ...contact });
    expect(await refusal(attempt)).toMatchObject(theirs(userId));
  });

  test('by an API key, a passkey or an identity of the member', async () => {
    const { userId } = coordinator.root;
    const mallory = await grantee("activity.resource == 'CREDENTIAL' && activity.action == 'CREATE'");
    const apiKeys = [apiKey(coordinator.newKey())];
    const oidcToken = await provider.idToken({ subject: 'mallory', at: coordinator.clock.now() });
    const attempts = [
      mallory.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId, apiKeys }),
      mallory.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
        userId,
        authenticators: [{ authenticatorName: 'mine', ...new SoftwareAuthenticator().register() }],
      }),
      mallory.client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
        userId,
        oauthProviders: [{ providerName: 'mine', oidcToken }],
      }),
    ];
    // All at once: whichever is refused first must have somebody who waits for it.
    const refusals = await Promise.all(attempts.map(refusal));
    for (const one of refusals) expect(one).toMatchObject(theirs(userId));
  });
});

describe('what policies allow about a member of the root quorum', () => {
  test('waits for the member, however many others approve', async () => {
    const { userId } = coordinator.root;
    const [mallory, trent] = [await coordinator.createUser('Mallory'), await coordinator.createUser('Trent')];
    const ids = [mallory.userId, trent.userId].map((id) => `user.id == '${id}'`);
    await coordinator.createPolicy({
      policyName: 'two of us',
      condition: `activity.kind == 'CREATE_API_KEYS' && activity.params.user_id == '${userId}'`,
      consensus: ids.map((id) => `approvers.any(user, ${id})`).join(' && '),
    });
    const asked = { userId, apiKeys: [apiKey(coordinator.newKey())] };
    const activity = await mallory.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', asked);
    expect(activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const both = await trent.client.approve(activity.fingerprint);
    expect(both).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', votes: { length: 2 } });
    const own = await coordinator.client.approve(activity.fingerprint);
    expect(own.status).toBe('ACTIVITY_STATUS_COMPLETED');
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { ...resultOf(own), userId });
  });

  test('may be read by them as activity.params.user_id, whichever credential it is', async () => {
    const [ann, bob] = [await coordinator.createUser('Ann'), await coordinator.createUser('Bob')];
    const helper = await grantee(`activity.resource == 'CREDENTIAL' && activity.params.user_id == '${ann.userId}'`);
    const authenticators = () => [{ authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() }];
    const type = 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2';
    const allowed = await helper.client.submit(type, { userId: ann.userId, authenticators: authenticators() });
    expect(allowed.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const denied = helper.client.submit(type, { userId: bob.userId, authenticators: authenticators() });
    expect(await refusal(denied)).toMatchObject({ status: 403, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' });
  });

  test('logs nobody in by a contact that was never verified', async () => {
    const ann = await coordinator.createUser('Ann', { userEmail: 'ann@example.com' });
    const quorum = (userIds: readonly string[]) =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 1, userIds });
    await quorum([coordinator.root.userId, ann.userId]);
    const service = await grantee("activity.resource == 'AUTH' && activity.action == 'CREATE'");
    const login = () =>
      service.client.submit('ACTIVITY_TYPE_EMAIL_AUTH_V3', {
        email: 'ann@example.com',
        targetPublicKey: target().publicKey,
        emailCustomization: { appName: 'App' },
      });
    expect(await refusal(login())).toMatchObject({
      status: 403,
      message: textLike(/e-mail address of user `[^`]+`, who is a member of the root quorum, was never verified/),
    });
    expect(coordinator.messages().filter(({ to }) => to === 'ann@example.com')).toEqual([]);
    const { verificationToken } = await proved('ann@example.com');
    const change = { userId: ann.userId, userEmail: 'ann@example.com', verificationToken };
    await ann.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change);
    expect((await login()).status).toBe('ACTIVITY_STATUS_COMPLETED');
    await quorum([coordinator.root.userId]);
  });
});

describe('nobody becomes a member of the root quorum with what others have added', () => {
  const quorum = (...userIds: readonly string[]) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
      threshold: 1,
      userIds: [coordinator.root.userId, ...userIds],
    });
  afterEach(() => quorum());

  test('be it a key, until it is gone', async () => {
    const ann = await coordinator.createUser('Ann');
    const mallory = await grantee("activity.kind == 'CREATE_API_KEYS'");
    const asked = { userId: ann.userId, apiKeys: [apiKey(coordinator.newKey())] };
    const { apiKeyIds } = resultOf<{ apiKeyIds: string[] }>(
      await mallory.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', asked),
    );
    await revoke();
    expect(await refusal(quorum(ann.userId))).toMatchObject({
      status: 400,
      message: textLike(
        `user \`${ann.userId}\` cannot become a member of the root quorum with the API key \`${apiKeyIds[0]}\`, ` +
          `which user \`${mallory.userId}\` added`,
      ),
    });
    await ann.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: ann.userId, apiKeyIds });
    await ann.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', asked);
    expect((await quorum(ann.userId)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('be it a key that was made with such a key', async () => {
    const ann = await coordinator.createUser('Ann');
    const mallory = await grantee("activity.kind == 'CREATE_API_KEYS'");
    const [first, second] = [coordinator.newKey(), coordinator.newKey()];
    const added = await mallory.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: ann.userId,
      apiKeys: [apiKey(first)],
    });
    await revoke();
    const asAnn = coordinator.clientFor(first);
    await asAnn.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: ann.userId, apiKeys: [apiKey(second)] });
    const session = coordinator.newKey();
    await asAnn.submit('ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: session.publicKey });
    const { apiKeyIds } = resultOf<{ apiKeyIds: string[] }>(added);
    await asAnn.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: ann.userId, apiKeyIds });
    const { apiKeys } = (await waysInOf(ann.userId)) as {
      apiKeys: readonly { apiKeyId: string; credential: { publicKey: string } }[];
    };
    for (const { publicKey } of [second, session]) {
      const { apiKeyId } = apiKeys.find(({ credential }) => credential.publicKey === publicKey)!;
      expect(await refusal(quorum(ann.userId))).toMatchObject({
        status: 400,
        message: textLike(`API key \`${apiKeyId}\``),
      });
      await ann.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: ann.userId, apiKeyIds: [apiKeyId] });
    }
    expect((await quorum(ann.userId)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('be it an address, which the root quorum can vouch for', async () => {
    const ann = await coordinator.createUser('Ann', { userEmail: 'ann@example.org' });
    const mallory = await grantee("activity.kind == 'UPDATE_USER_EMAIL'");
    const change = (userEmail: string) => ({ userId: ann.userId, userEmail });
    await mallory.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change('mallory@example.com'));
    await mallory.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change('ann@example.org'));
    expect(await refusal(quorum(ann.userId))).toMatchObject({
      status: 400,
      message: textLike('with the e-mail address, which'),
    });
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change('ann@example.org'));
    expect((await quorum(ann.userId)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('a root quorum stays in reach', () => {
  const outOfReach = { status: 400, message: textLike(/only 0 of them would have a credential without expiry/) };

  test('when a key that soon ends is all that would be left', async () => {
    const { userId } = coordinator.root;
    const { apiKeys } = (await waysInOf(userId)) as { apiKeys: readonly { apiKeyId: string }[] };
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId,
      apiKeys: [apiKey(coordinator.newKey(), { expirationSeconds: '2' })],
    });
    const attempt = coordinator.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', {
      userId,
      apiKeyIds: apiKeys.map(({ apiKeyId }) => apiKeyId),
    });
    expect(await refusal(attempt)).toMatchObject(outOfReach);
  });

  test('when the only way in is a contact: it stays, and so does the login by it', async () => {
    const key = coordinator.newKey();
    const founded = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'By mail only',
      rootQuorumThreshold: 1,
      disableEmailAuth: true,
      rootUsers: [
        { userName: 'Ann', userEmail: 'ann@example.net', apiKeys: [apiKey(key, { expirationSeconds: '60' })] },
      ],
    });
    const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: string[] }>(founded);
    const ann = coordinator.clientFor(key, subOrganizationId);
    const removals = [
      ann.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId: rootUserIds[0], userEmail: '' }),
      ann.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId: rootUserIds[0], userEmail: 'typo@example.net' }),
      ann.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', { name: 'FEATURE_NAME_OTP_EMAIL_AUTH' }),
    ];
    for (const refused of await Promise.all(removals.map((removal) => refusal(removal)))) {
      expect(refused).toMatchObject(outOfReach);
    }
  });
});

describe('what is voted on by a key that another added stays the doing of the other', () => {
  /** Mallory adds a key to somebody, and as that user asks for something that waits for a second vote. */
  async function asked(type: string, parameters: (userId: string) => object) {
    const mallory = await grantee("activity.resource == 'CREDENTIAL' || activity.resource == 'USER'");
    const two = `activity.type == '${type}'`;
    grants.push(
      await coordinator.createPolicy({
        policyName: `two for ${type} ${++count}`,
        condition: two,
        consensus: 'approvers.count() >= 2',
      }),
    );
    const target = await coordinator.createUser(`Target ${count}`);
    const added = coordinator.newKey();
    const { result } = await mallory.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: target.userId,
      apiKeys: [apiKey(added)],
    });
    const { apiKeyIds } = result['createApiKeysResult'] as { apiKeyIds: string[] };
    const waits = await coordinator.clientFor(added).submit(type, parameters(target.userId));
    expect(waits.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    return { mallory, target, apiKeyIds, fingerprint: waits.fingerprint };
  }

  const intoQuorum = (userId: string) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
      threshold: 1,
      userIds: [coordinator.root.userId, userId],
    });

  test('a key, when the one that asked for it is deleted before the last vote', async () => {
    const own = coordinator.newKey();
    const { mallory, target, apiKeyIds, fingerprint } = await asked('ACTIVITY_TYPE_CREATE_API_KEYS_V2', (userId) => ({
      userId,
      apiKeys: [apiKey(own)],
    }));
    await mallory.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: target.userId, apiKeyIds });
    const done = await mallory.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const { message } = await refusal(intoQuorum(target.userId));
    expect(message).toContain(`cannot become a member of the root quorum with the API key`);
    expect(message).toContain(`which user \`${mallory.userId}\``);
  });

  test('an e-mail address, when that key is gone', async () => {
    const { mallory, target, apiKeyIds, fingerprint } = await asked('ACTIVITY_TYPE_UPDATE_USER_EMAIL', (userId) => ({
      userId,
      userEmail: 'mallory@example.com',
    }));
    await mallory.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: target.userId, apiKeyIds });
    await mallory.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    const { message } = await refusal(intoQuorum(target.userId));
    expect(message).toContain('cannot become a member of the root quorum with the e-mail address');
  });
});

test('a user who takes the address of a member of the root quorum does not keep the member from logging in by it', async () => {
  const key = coordinator.newKey();
  const { subOrganizationId, rootUserIds } = resultOf<{ subOrganizationId: string; rootUserIds: [string] }>(
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'Reached by mail',
      rootUsers: [
        {
          userName: 'Owner',
          userEmail: 'owner@example.com',
          apiKeys: [apiKey(key)],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    }),
  );
  const owner = coordinator.clientFor(key, subOrganizationId);
  const parent = coordinator.clientFor(coordinator.client.key, subOrganizationId);
  await owner.submit('ACTIVITY_TYPE_CREATE_USERS_V3', {
    users: [
      {
        userName: 'Helper',
        userEmail: 'owner@example.com',
        apiKeys: [],
        authenticators: [],
        oauthProviders: [],
        userTags: [],
      },
    ],
  });
  const { publicKey: targetPublicKey } = target();
  const reached = await parent.submit('ACTIVITY_TYPE_EMAIL_AUTH_V2', { email: 'owner@example.com', targetPublicKey });
  expect(resultOf(reached)).toMatchObject({ userId: rootUserIds[0] });
});
