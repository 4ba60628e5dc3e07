import { readFileSync } from 'node:fs';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { createActivityPoller, TurnkeyActivityError, TurnkeyClient, TurnkeyRequestError } from '@turnkey/http';
import type { Turnkey } from '@turnkey/sdk-server';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { anyText, listWith, objectWith, textLike } from './exchange.js';
import { startCoordinator, type ApiKeyPair, type TestCoordinator, type TestUser } from '../../src/testing/index.js';

// The published packages as they come; only the address is ours. They stamp with the wall clock.

// The package's index also loads its browser actions, which need a peer package (viem) that nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

let coordinator: TestCoordinator;
let organizationId: string;
let alice: TestUser;
let bob: TestUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ at: new Date() });
  organizationId = coordinator.organizationId;
  alice = await coordinator.createUser('Alice', { userEmail: 'alice@example.com' });
  bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'names take two',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: 'approvers.count() >= 2',
  });
});

afterAll(() => coordinator.close());

const rootKey = (): ApiKeyPair => coordinator.client.key;

function httpClient(key: ApiKeyPair): TurnkeyClient {
  const stamper = new ApiKeyStamper({ apiPublicKey: key.publicKey, apiPrivateKey: key.privateKey });
  return new TurnkeyClient({ baseUrl: coordinator.url }, stamper);
}

function sdkClient(key: ApiKeyPair) {
  return new TurnkeyServerSDK({
    apiBaseUrl: coordinator.url,
    apiPublicKey: key.publicKey,
    apiPrivateKey: key.privateKey,
    defaultOrganizationId: organizationId,
    activityPoller: { intervalMs: 10, numRetries: 3 },
  }).apiClient();
}

let last = 0;
const timestampMs = (): string => String((last = Math.max(Date.now(), last + 1)));
const rename = (userName: string) =>
  ({
    type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
    timestampMs: timestampMs(),
    organizationId,
    parameters: { userId: alice.userId, userName },
  }) as const;
const vote = <Type extends string>(type: Type, fingerprint: string) => ({
  type,
  timestampMs: timestampMs(),
  organizationId,
  parameters: { fingerprint },
});

async function thrown(attempt: Promise<unknown>): Promise<unknown> {
  try {
    await attempt;
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe('@turnkey/http with @turnkey/api-key-stamper', () => {
  test('asks who it is, and lists', async () => {
    const client = httpClient(rootKey());
    expect(await client.getWhoami({ organizationId })).toEqual({
      organizationId,
      organizationName: 'Root organization',
      userId: coordinator.root.userId,
      username: 'Root user',
    });
    const { users } = await client.getUsers({ organizationId });
    expect(users.map(({ userName }) => userName)).toEqual(listWith(...['Root user', 'Alice', 'Bob']));
    const { user } = await client.getUser({ organizationId, userId: alice.userId });
    expect(user).toMatchObject({ userName: 'Alice', userEmail: 'alice@example.com', userTags: [], authenticators: [] });
    const { policies } = await client.getPolicies({ organizationId });
    expect(policies).toContainEqual(objectWith({ policyName: 'names take two', effect: 'EFFECT_ALLOW' }));
    const { apiKeys } = await client.getApiKeys({ organizationId, userId: alice.userId });
    expect(apiKeys.map(({ credential }) => credential.publicKey)).toEqual([alice.key.publicKey]);
  });

  test.each(['node', 'purejs'] as const)('the stamper of the %s runtime is understood', async (runtimeOverride) => {
    const { publicKey: apiPublicKey, privateKey: apiPrivateKey } = rootKey();
    const stamper = new ApiKeyStamper({ apiPublicKey, apiPrivateKey, runtimeOverride });
    const client = new TurnkeyClient({ baseUrl: coordinator.url }, stamper);
    // Some of their signatures have a high s, which must not matter.
    for (let count = 0; count < 8; count++) await client.getWhoami({ organizationId });
  });

  test('creates policies and users, and reads the results where it looks for them', async () => {
    const client = httpClient(rootKey());
    const one = await client.createPolicy({
      type: 'ACTIVITY_TYPE_CREATE_POLICY_V3',
      timestampMs: timestampMs(),
      organizationId,
      parameters: {
        policyName: 'http one',
        effect: 'EFFECT_DENY',
        condition: "activity.kind == 'RECOVER_USER'",
        notes: '',
      },
    });
    expect(one.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const policyId = one.activity.result.createPolicyResult!.policyId;
    expect(one.activity.intent.createPolicyIntentV3).toMatchObject({ policyName: 'http one' });
    expect((await client.getPolicy({ organizationId, policyId })).policy.policyName).toBe('http one');

    const many = await client.createPolicies({
      type: 'ACTIVITY_TYPE_CREATE_POLICIES',
      timestampMs: timestampMs(),
      organizationId,
      parameters: {
        policies: [
          { policyName: 'http two', effect: 'EFFECT_DENY', condition: "activity.kind == 'RECOVER_USER'", notes: '' },
          { policyName: 'http three', effect: 'EFFECT_DENY', consensus: 'approvers.count() > 99', notes: 'n' },
        ],
      },
    });
    expect(many.activity.result.createPoliciesResult!.policyIds).toHaveLength(2);

    const users = await client.createUsers({
      type: 'ACTIVITY_TYPE_CREATE_USERS_V4',
      timestampMs: timestampMs(),
      organizationId,
      parameters: {
        users: [
          {
            userName: 'Http user',
            userEmail: 'http@example.com',
            apiKeys: [
              {
                apiKeyName: 'key',
                publicKey: coordinator.newKey().publicKey,
                curveType: 'API_KEY_CURVE_P256',
                expirationSeconds: '3600',
              },
            ],
            authenticators: [],
            oauthProviders: [],
            userTags: [],
          },
        ],
      },
    });
    expect(users.activity.type).toBe('ACTIVITY_TYPE_CREATE_USERS_V4');
    const [userId] = users.activity.result.createUsersResult!.userIds;
    expect((await client.getUser({ organizationId, userId: userId! })).user.userEmail).toBe('http@example.com');
  });

  test('creates users who have API keys only', async () => {
    const key = coordinator.newKey();
    const apiOnlyUsers = [
      { userName: 'Machine', userTags: [], apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey }] },
    ];
    const { activity } = await httpClient(rootKey()).createApiOnlyUsers({
      type: 'ACTIVITY_TYPE_CREATE_API_ONLY_USERS',
      timestampMs: timestampMs(),
      organizationId,
      parameters: { apiOnlyUsers },
    });
    const { userIds } = activity.result.createApiOnlyUsersResult!;
    expect(await httpClient(key).getWhoami({ organizationId })).toMatchObject({
      userId: userIds[0],
      username: 'Machine',
    });
  });

  test('the poller gives the finished activity, and get_activity and list_activities the same one', async () => {
    const client = httpClient(rootKey());
    const poll = createActivityPoller({ client, requestFn: client.createUserTag, refreshIntervalMs: 10 });
    const activity = await poll({
      type: 'ACTIVITY_TYPE_CREATE_USER_TAG',
      timestampMs: timestampMs(),
      organizationId,
      parameters: { userTagName: 'polled', userIds: [] },
    });
    expect(activity.result.createUserTagResult!.userTagId).toMatch(/^[0-9a-f-]{36}$/);
    const { activity: read } = await client.getActivity({ organizationId, activityId: activity.id });
    expect(read).toEqual(activity);
    const { activities } = await client.getActivities({
      organizationId,
      filterByType: ['ACTIVITY_TYPE_CREATE_USER_TAG'],
    });
    expect(activities).toEqual([activity]);
  });

  test('one user asks, the poller reports that consensus is needed, and the other approves', async () => {
    const client = httpClient(alice.key);
    const poll = createActivityPoller({ client, requestFn: client.updateUserName, refreshIntervalMs: 10 });
    const request = rename('Alice by http');
    const error = await thrown(poll(request));
    expect(error).toBeInstanceOf(TurnkeyActivityError);
    const { activityId, activityStatus, message } = error as TurnkeyActivityError;
    expect(activityStatus).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(message).toContain('Consensus needed for activity');
    const { activity: waiting } = await client.getActivity({ organizationId, activityId: activityId! });
    expect(waiting).toMatchObject({ canApprove: false, canReject: true, result: {} });

    // The poller posts nothing twice; posting the same request again shows the same activity.
    const { activity: again } = await client.updateUserName(request);
    expect(again.id).toBe(activityId);

    const approved = await httpClient(bob.key).approveActivity(
      vote('ACTIVITY_TYPE_APPROVE_ACTIVITY', waiting.fingerprint),
    );
    expect(approved.activity).toMatchObject({
      id: activityId,
      type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
      status: 'ACTIVITY_STATUS_COMPLETED',
      result: { updateUserNameResult: { userId: alice.userId } },
    });
    expect(approved.activity.votes.map(({ selection, userId }) => [selection, userId])).toEqual([
      ['VOTE_SELECTION_APPROVED', alice.userId],
      ['VOTE_SELECTION_APPROVED', bob.userId],
    ]);
    expect((await poll(request)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('a rejection ends it, and the poller says so', async () => {
    const client = httpClient(alice.key);
    const request = rename('Never');
    const { activity } = await client.updateUserName(request);
    const rejected = await httpClient(bob.key).rejectActivity(
      vote('ACTIVITY_TYPE_REJECT_ACTIVITY', activity.fingerprint),
    );
    expect(rejected.activity.status).toBe('ACTIVITY_STATUS_REJECTED');
    const poll = createActivityPoller({ client, requestFn: client.updateUserName, refreshIntervalMs: 10 });
    const error = await thrown(poll(request));
    expect(error).toBeInstanceOf(TurnkeyActivityError);
    expect((error as TurnkeyActivityError).activityStatus).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('a denial is a request error with code 7 and the outcome of each policy', async () => {
    const error = await thrown(
      httpClient(bob.key).deleteUsers({
        type: 'ACTIVITY_TYPE_DELETE_USERS',
        timestampMs: timestampMs(),
        organizationId,
        parameters: { userIds: [alice.userId] },
      }),
    );
    expect(error).toBeInstanceOf(TurnkeyRequestError);
    const { code, message, details } = error as TurnkeyRequestError;
    expect(code).toBe(7);
    expect(message).toMatch(
      /^Turnkey error 7: You don't have sufficient permissions to take this action\. Please add a policy granting this user permissions\. \(Details: \[/,
    );
    expect(details).toContainEqual(
      objectWith({
        '@type': 'type.googleapis.com/errors.v1.PolicyEnginePermissionError',
        message: 'No policies evaluated to outcome: Allow',
        policyEvaluations: listWith({
          policyId: anyText,
          policyName: 'names take two',
          outcome: 'OUTCOME_DENY_IMPLICIT',
          clause: { name: 'condition', text: "activity.kind == 'UPDATE_USER_NAME'", outcome: 'false' },
        }),
      }),
    );
  });

  test.each([
    ['an unknown user', { userId: '00000000-0000-4000-8000-000000000000' }, 5],
    ['no UUID', { userId: 'alice' }, 3],
  ])('%s is a request error with its code', async (_name, { userId }, code) => {
    const error = await thrown(httpClient(rootKey()).getUser({ organizationId, userId }));
    expect(error).toBeInstanceOf(TurnkeyRequestError);
    expect((error as TurnkeyRequestError).code).toBe(code);
    expect((error as TurnkeyRequestError).message).toContain(userId);
  });

  test('a stranger is a request error with code 16', async () => {
    const error = await thrown(httpClient(coordinator.newKey()).getWhoami({ organizationId }));
    expect(error).toBeInstanceOf(TurnkeyRequestError);
    expect((error as TurnkeyRequestError).code).toBe(16);
    expect((error as TurnkeyRequestError).message).toContain('could not find public key in organization');
  });
});

describe.each(['core', 'sdk-server'])('@turnkey/%s', (name) => {
  const file = new URL(`../../node_modules/@turnkey/${name}/dist/__generated__/sdk-client-base.js`, import.meta.url);
  const { versions } = buildRegistry(activities);

  test('finds the result of every activity that is here under the name that it reads', () => {
    const sent = [...readFileSync(file, 'utf8').matchAll(/type: "(ACTIVITY_TYPE_\w+)",?\s*\}, "(\w+)"/g)];
    const known = sent.flatMap(([, type, read]) => {
      const { keys } = versions.get(type!) ?? {};
      return keys ? [{ type, read: read!, named: keys.resultKeys }] : [];
    });
    expect(known.length).toBeGreaterThan(60);
    expect(known.filter(({ read, named }) => !named.includes(read))).toEqual([]);
  });
});

test('a result with two names is answered, and listed, under both', async () => {
  const target = coordinator.newKey().publicKey;
  const { id, result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2', {
    targetPublicKey: target,
  });
  const { createReadWriteSessionResultV2: second, createReadWriteSessionResult: first } = result;
  expect(first).toMatchObject({ organizationId, credentialBundle: anyText });
  expect(second).toEqual(first);
  const read = await coordinator.client.query<{ activity: { result: object } }>('get_activity', { activityId: id });
  expect(Object.keys(read.activity.result).sort()).toEqual(Object.keys(result).sort());
});

describe('@turnkey/sdk-server', () => {
  test('asks who it is, and lists', async () => {
    const client = sdkClient(rootKey());
    expect(await client.getWhoami()).toMatchObject({ organizationId, userId: coordinator.root.userId });
    expect((await client.getUsers()).users.length).toBeGreaterThanOrEqual(3);
    expect((await client.getUser({ userId: bob.userId })).user.userName).toBe('Bob');
    expect((await client.getPolicies()).policies.length).toBeGreaterThanOrEqual(1);
    expect((await client.getActivities({ paginationOptions: { limit: '2' } })).activities).toHaveLength(2);
  });

  test('results are merged into what it returns', async () => {
    const client = sdkClient(rootKey());
    const created = await client.createPolicy({
      policyName: 'sdk one',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'RECOVER_USER'",
      notes: '',
    });
    expect(created.policyId).toMatch(/^[0-9a-f-]{36}$/);
    expect(created.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await client.getPolicy({ policyId: created.policyId })).policy.policyName).toBe('sdk one');

    const { policyIds } = await client.createPolicies({
      policies: [
        {
          policyName: 'sdk two',
          effect: 'EFFECT_DENY',
          condition: "activity.kind == 'RECOVER_USER'",
          consensus: 'true',
          notes: '',
        },
      ],
    });
    expect(policyIds).toHaveLength(1);

    const { userIds } = await client.createUsers({
      users: [{ userName: 'Sdk user', apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] }],
    });
    expect((await client.getUser({ userId: userIds[0]! })).user.userName).toBe('Sdk user');
    const { userId } = await client.updateUserName({ userId: userIds[0]!, userName: 'Sdk renamed' });
    expect(userId).toBe(userIds[0]);
    expect((await client.deletePolicy({ policyId: created.policyId })).policyId).toBe(created.policyId);
  });

  test('consensus is no end for its poller: it returns the envelope, and the vote gives the result', async () => {
    const client = sdkClient(alice.key);
    const asked = await client.updateUserName({ userId: alice.userId, userName: 'Alice by sdk' });
    expect(asked.activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const approved = await sdkClient(bob.key).approveActivity({ fingerprint: asked.activity.fingerprint });
    expect(approved.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const { activity } = await client.getActivity({ activityId: asked.activity.id });
    expect(activity.result).toEqual({ updateUserNameResult: { userId: alice.userId } });

    const again = await client.updateUserName({ userId: alice.userId, userName: 'Not this' });
    const rejected = await sdkClient(bob.key).rejectActivity({ fingerprint: again.activity.fingerprint });
    expect(rejected.activity.status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('a denial is thrown with its code, details and message', async () => {
    const error = await thrown(sdkClient(bob.key).deleteUsers({ userIds: [alice.userId] }));
    // The package has a class of its own for this, from another package than the one of `@turnkey/http`.
    expect(error).toMatchObject({
      name: 'TurnkeyRequestError',
      code: 7,
      message: textLike(/^Turnkey error 7: You don't have sufficient permissions/),
      details: listWith(...[objectWith({ '@type': 'type.googleapis.com/errors.v1.PolicyEnginePermissionError' })]),
    });
  });
});
