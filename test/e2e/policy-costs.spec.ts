import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { mainThreadSteps } from '../../src/domain/steps.js';
import { exchange, refusal, textLike } from './exchange.js';

let coordinator: TestCoordinator;

beforeEach(async () => {
  coordinator = await startCoordinator();
});

afterEach(() => coordinator.close());

const renameType = 'ACTIVITY_TYPE_UPDATE_USER_NAME';

/** A condition of about so many characters that says no. */
const longCondition = (characters: number, salt: string) => {
  const addresses = Array.from(
    { length: Math.floor(characters / 46) },
    (_, index) => `'0x${salt}${String(index).padStart(40 - salt.length, '0')}'`,
  );
  return `eth.tx.to in [${addresses.join()}]`;
};

const createPolicies = (policies: readonly object[]) =>
  coordinator.client.submit('ACTIVITY_TYPE_CREATE_POLICIES', { policies });

/** Beside the root user, the auth proxy's and Alice. */
const mostUsers = 97;

async function createUsers(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < count; from += 100) {
    const users = Array.from({ length: Math.min(100, count - from) }, (_, index) => ({
      userName: `user ${from + index}`,
      apiKeys: [{ apiKeyName: 'key', publicKey: coordinator.newKey().publicKey, curveType: 'API_KEY_CURVE_P256' }],
      authenticators: [],
      oauthProviders: [],
      userTags: [],
    }));
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USERS_V3', { users });
    ids.push(...(result['createUsersResult'] as { userIds: string[] }).userIds);
  }
  return ids;
}

describe('the clauses of an organization', () => {
  test('have a length together, and what goes beyond is refused with the figures', async () => {
    const policies = Array.from({ length: 4 }, (_, index) => ({
      policyName: `long ${index}`,
      effect: 'EFFECT_DENY',
      condition: longCondition(60_000, String(index)),
      notes: '',
    }));
    const before = await coordinator.client.query<{ policies: object[] }>('list_policies');
    const refused = await refusal(createPolicies(policies));
    expect(refused).toMatchObject({
      status: 429,
      code: 8,
      message: textLike(/131072 characters.*have 328, and this request adds 234776/),
    });
    expect((await coordinator.client.query<{ policies: object[] }>('list_policies')).policies).toEqual(before.policies);

    await createPolicies(policies.slice(0, 2));
    const beyond = { policyName: 'one more', effect: 'EFFECT_DENY', condition: longCondition(30_000, 'f'), notes: '' };
    expect(await refusal(createPolicies([beyond]))).toMatchObject({ status: 429, code: 8 });
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      ...beyond,
      condition: "activity.type == 'ACTIVITY_TYPE_CREATE_USER_TAG'",
    });
    const { policyId } = result['createPolicyResult'] as { policyId: string };
    const longer = { policyId, policyCondition: longCondition(30_000, 'f') };
    expect(await refusal(coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', longer))).toMatchObject({
      status: 429,
      code: 8,
    });
  });

  test('may not relate so many lists that a request could use up its steps', async () => {
    const cubic = 'approvers.any(a, approvers.any(b, approvers.any(c, a.id != b.id && b.id != c.id && a.id != c.id)))';
    const refused = await refusal(coordinator.createPolicy({ policyName: 'three that differ', consensus: cubic }));
    expect(refused).toMatchObject({ status: 400, code: 3, message: textLike(/consensus.*\d+ steps.*100000/) });
  });
});

describe('a request', () => {
  const createWallet = 'ACTIVITY_TYPE_CREATE_WALLET';
  /** Steps of all requests so far. */
  const steps = async () => {
    const { text } = await exchange(`${coordinator.url}/metrics`);
    return [...text.matchAll(/^countersign_steps_sum\{.*\} (\S+)$/gm)].reduce((sum, [, one]) => sum + Number(one), 0);
  };

  test('that prepares something is decided on one meter, also where policies take nearly all of it', async () => {
    const alice = await coordinator.createUser('Alice');
    await coordinator.createPolicy({ policyName: 'Alice', condition: `activity.type == '${createWallet}'` });
    const costly = Array.from({ length: 9 }, (_, index) => ({
      policyName: `costly ${index}`,
      effect: 'EFFECT_DENY',
      condition: `${index}==9||${Array.from({ length: 1_900 }, () => '1==2').join('||')}`,
      notes: '',
    }));
    await createPolicies(costly);
    const before = await steps();
    const { status } = await alice.client.submit(createWallet, { walletName: 'costly', accounts: [] });
    expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
    const spent = (await steps()) - before;
    expect(spent).toBeGreaterThan(250_000);
    expect(spent).toBeLessThanOrEqual(mainThreadSteps);
  });
});

describe('a consensus', () => {
  test('of half of all users that an organization may have is decided, and answered in lists', async () => {
    await createUsers(mostUsers);
    const alice = await coordinator.createUser('Alice');
    await coordinator.createPolicy({
      policyName: 'half of all',
      condition: `activity.type == '${renameType}'`,
      consensus: "['x'].any(x, approvers.count() >= 50)",
    });
    const asked = await alice.client.submit(renameType, { userId: alice.userId, userName: 'Alicia' });
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const { activities } = await alice.client.query<{ activities: ActivityEnvelope[] }>('list_activities', {
      filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'],
    });
    expect(activities).toMatchObject([{ id: asked.id, canApprove: false, canReject: true }]);
    const read = await coordinator.client.query<{ activity: ActivityEnvelope }>('get_activity', {
      activityId: asked.id,
    });
    expect(read.activity).toMatchObject({ canApprove: true, canReject: true });
  }, 25_000);

  test('of users by their ids is decided for as many', async () => {
    const ids = await createUsers(mostUsers);
    const alice = await coordinator.createUser('Alice');
    const named = [alice.userId, ...ids.slice(0, 3)].map((userId) => `'${userId}'`).join();
    await coordinator.createPolicy({
      policyName: 'four by name',
      condition: `activity.type == '${renameType}'`,
      consensus: `[${named}].all(id, approvers.any(user, user.id == id))`,
    });
    const asked = await alice.client.submit(renameType, { userId: alice.userId, userName: 'Alicia' });
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  }, 25_000);
});

describe('a page of activities', () => {
  test('has one budget for the rights of its rows, and says where it ended', async () => {
    const alice = await coordinator.createUser('Alice');
    // Costly to read for each row, and within what may be written.
    const parts = (count: number) => Array.from({ length: 1_000 }, () => `requester.tags.count()==${count}`);
    await createPolicies([
      {
        policyName: 'two rename',
        effect: 'EFFECT_ALLOW',
        condition: `activity.type == '${renameType}'`,
        consensus: 'approvers.count() >= 2',
        notes: '',
      },
      ...Array.from({ length: 4 }, (_, index) => ({
        policyName: `costly ${index}`,
        effect: 'EFFECT_DENY',
        condition: `activity.type=='${renameType}'&&requester.alias=='nobody'&&(${parts(index + 1).join('||')})`,
        notes: '',
      })),
    ]);
    for (let index = 0; index < 40; index += 1) {
      await alice.client.submit(renameType, { userId: alice.userId, userName: `Alice ${index}` });
    }
    const bob = await coordinator.createUser('Bob');
    const { activities } = await bob.client.query<{
      activities: (ActivityEnvelope & { rightsNotComputed?: true })[];
    }>('list_activities', { paginationOptions: { limit: '40' }, filterByType: [renameType] });
    expect(activities).toHaveLength(40);
    const computed = activities.findIndex(({ rightsNotComputed }) => rightsNotComputed);
    expect(computed).toBeGreaterThan(1);
    const rights = activities.map(({ canApprove, canReject, rightsNotComputed }) => [
      canApprove,
      canReject,
      rightsNotComputed,
    ]);
    expect(rights).toEqual(
      activities.map((_, index) => (index < computed ? [true, true, undefined] : [false, false, true])),
    );
    const last = activities.at(-1)!;
    const read = await bob.client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId: last.id });
    expect(read.activity).toMatchObject({ canApprove: true, canReject: true });
    expect(read.activity).not.toHaveProperty('rightsNotComputed');
  });
});

test('what a request is about is not read for who could not be allowed it', async () => {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
    privateKeys: [
      {
        privateKeyName: 'hot',
        curve: 'CURVE_SECP256K1',
        addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        privateKeyTags: [],
      },
    ],
  });
  const { privateKeys } = result['createPrivateKeysResultV2'] as { privateKeys: { privateKeyId: string }[] };
  const signWith = privateKeys[0]!.privateKeyId;
  const alice = await coordinator.createUser('Alice');
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'signers',
    condition: "activity.resource == 'PRIVATE_KEY' && activity.action == 'SIGN' && eth.tx.value < 10",
    consensus: `approvers.any(user, user.id == '${alice.userId}')`,
  });
  // Neither can be decoded: who is told so had it read.
  const requests: [string, object][] = [
    [
      'ACTIVITY_TYPE_SIGN_TRANSACTION_V2',
      { signWith, type: 'TRANSACTION_TYPE_ETHEREUM', unsignedTransaction: 'c0ffee' },
    ],
    [
      'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
      { signWith, payload: '{"nope":', encoding: 'PAYLOAD_ENCODING_EIP712', hashFunction: 'HASH_FUNCTION_NO_OP' },
    ],
  ];
  for (const [type, parameters] of requests) {
    expect(await refusal(bob.client.submit(type, parameters))).toMatchObject({ status: 403, code: 7 });
    expect(await refusal(alice.client.submit(type, parameters))).toMatchObject({ status: 400, code: 3 });
    expect(await refusal(coordinator.client.submit(type, parameters))).toMatchObject({ status: 400, code: 3 });
  }
});
