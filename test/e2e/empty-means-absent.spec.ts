import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';

// Clients of proto3 cannot leave a text out. Closing a coordinator verifies every decision from the signed bytes again.

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator();
});

afterAll(() => coordinator.close());

const always = "time.now > Timestamp('2020-01-01T00:00:00Z')";

async function policyOf(policyId: string) {
  const { policy } = await coordinator.client.query<{ policy: Record<string, unknown> }>('get_policy', { policyId });
  return policy;
}

const submit = (type: string, parameters: object) => coordinator.client.submit(type, parameters);
const resultOf = ({ result }: { readonly result: object }) => Object.values(result)[0] as Record<string, string>;

test('the clauses of a new policy', async () => {
  const created = await submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: 'empty',
    effect: 'EFFECT_DENY',
    condition: "activity.kind == 'DELETE_WALLETS'",
    consensus: '',
    time: '',
    notes: '',
  });
  const policy = await policyOf(resultOf(created)['policyId']!);
  expect(policy).toMatchObject({ condition: "activity.kind == 'DELETE_WALLETS'", consensus: '', notes: '' });
  expect(policy).not.toHaveProperty('time');
  await submit('ACTIVITY_TYPE_CREATE_POLICIES', {
    policies: [
      { policyName: 'of several', effect: 'EFFECT_DENY', condition: 'false', consensus: '', time: '', notes: '' },
    ],
  });
});

test('on an update absent means unchanged, and `true` is for always', async () => {
  const policyId = await coordinator.createPolicy({ policyName: 'window', condition: 'false', time: always });
  const update = async (changes: object) => {
    await submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, ...changes });
    return policyOf(policyId);
  };
  const unchanged = { policyName: 'window', condition: 'false', time: always };
  expect(await update({ policyNotes: 'noted' })).toMatchObject({ ...unchanged, notes: 'noted' });
  const none = { policyName: '', policyEffect: '', policyCondition: '', policyConsensus: '', time: '' };
  expect(await update({ ...none, policyNotes: 'again' })).toMatchObject({ ...unchanged, notes: 'again' });
  expect(await update({ ...none, time: 'true' })).toMatchObject({ ...unchanged, time: 'true', notes: 'again' });
});

test('cursors and filters of lists', async () => {
  for (const [query, parameters] of [
    ['list_activities', { paginationOptions: { limit: '5', before: '', after: '' } }],
    ['list_policies', { paginationOptions: { limit: '', before: '', after: '' } }],
    ['list_suborgs', { filterType: '', filterValue: '', paginationOptions: { before: '' } }],
    ['list_verified_suborgs', { filterType: '', filterValue: '' }],
    ['list_wallet_accounts', { walletId: '', paginationOptions: { after: '' } }],
  ] as const) {
    await expect(coordinator.client.query(query as 'list_policies', parameters as object)).resolves.toBeDefined();
  }
});

test('optional texts inside lists, and what waits for votes is executed without them', async () => {
  const member = await coordinator.createUser('Member');
  const other = await coordinator.createUser('Other');
  const by = (userId: string) => `approvers.any(user, user.id == '${userId}')`;
  await coordinator.createPolicy({
    policyName: 'two',
    condition: "activity.kind == 'CREATE_USERS' || activity.kind == 'CREATE_API_KEYS'",
    consensus: `${by(member.userId)} && ${by(other.userId)}`,
  });
  const { fingerprint, status } = await member.client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [
      {
        userName: 'Made by two',
        userEmail: '',
        userPhoneNumber: '',
        userTags: [],
        authenticators: [],
        oauthProviders: [],
        apiKeys: [
          {
            apiKeyName: 'key',
            publicKey: coordinator.newKey().publicKey,
            curveType: 'API_KEY_CURVE_P256',
            expirationSeconds: '',
          },
        ],
      },
    ],
  } as never);
  expect(status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  const approved = await other.client.approve(fingerprint);
  expect(approved.status).toBe('ACTIVITY_STATUS_COMPLETED');
  const [userId] = (Object.values(approved.result)[0] as { userIds: string[] }).userIds;
  const { user } = await coordinator.client.query<{ user: { apiKeys: object[] } }>('get_user', { userId });
  expect(user.apiKeys[0]).not.toHaveProperty('expirationSeconds');
});

test('a required text may still not be empty', async () => {
  const { userId } = coordinator.root;
  const refused = { status: 400, message: textLike('userName') };
  expect(await refusal(submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: '' }))).toMatchObject(refused);
});

describe('generateAppProofs among the parameters', () => {
  const tag = (userTagName: string, more: object) =>
    submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [], ...more });

  test('asks for proofs, as in the envelope', async () => {
    expect((await tag('proved', { generateAppProofs: true })).appProofs).toHaveLength(1);
    expect((await tag('not proved', { generateAppProofs: false })).appProofs).toBeUndefined();
  });

  test('is refused if it is no boolean', async () => {
    const refused = { status: 400, message: textLike('parameters.generateAppProofs: must be true or false') };
    expect(await refusal(tag('bad', { generateAppProofs: 'yes' }))).toMatchObject(refused);
  });
});
