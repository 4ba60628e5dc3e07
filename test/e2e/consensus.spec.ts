import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { rulesNumber } from '../../src/domain/activity/rules.js';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { anyText, denial, refusal, textLike } from './exchange.js';

const renameType = 'ACTIVITY_TYPE_UPDATE_USER_NAME';

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
let carol: TestUser;
let policyId: string;
/** The policy of the auth proxy, which every organization begins with. */
let builtIn: string;

beforeEach(async () => {
  coordinator = await startCoordinator();
  alice = await coordinator.createUser('Alice');
  bob = await coordinator.createUser('Bob');
  carol = await coordinator.createUser('Carol');
  policyId = await coordinator.createPolicy({
    policyName: 'three rename',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: `approvers.count() >= 3`,
  });
  const { config } = await coordinator.client.query<{ config: { policyId: string } }>('get_auth_proxy_config');
  builtIn = config.policyId;
});

afterEach(() => coordinator.close());

const ask = (client: StampingClient = alice.client, userName = 'Alicia') =>
  client.submit(renameType, { userId: alice.userId, userName });

const read = async (client: StampingClient, activityId: string) =>
  (await client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId })).activity;

const rights = ({ canApprove, canReject }: ActivityEnvelope) => ({ canApprove, canReject });
const nameOf = async (user: TestUser) =>
  (await coordinator.client.query<{ user: { userName: string } }>('get_user', { userId: user.userId })).user.userName;

async function secondKey({ userId }: TestUser): Promise<{ client: StampingClient; apiKeyId: string }> {
  const key = coordinator.newKey();
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId,
    apiKeys: [{ apiKeyName: 'second', publicKey: key.publicKey, curveType: key.curve }],
  });
  const { apiKeyIds } = result['createApiKeysResult'] as { apiKeyIds: string[] };
  return { client: coordinator.clientFor(key), apiKeyId: apiKeyIds[0]! };
}

describe('votes', () => {
  test('the last one needed completes it, and only then has it an effect', async () => {
    const asked = await ask();
    expect(asked).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', result: {}, failure: null });
    const second = await bob.client.approve(asked.fingerprint);
    expect(second).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', result: {} });
    expect(await nameOf(alice)).toBe('Alice');
    const third = await carol.client.approve(asked.fingerprint);
    expect(third).toMatchObject({
      id: asked.id,
      status: 'ACTIVITY_STATUS_COMPLETED',
      result: { updateUserNameResult: { userId: alice.userId } },
    });
    expect(third.votes.map(({ userId, selection }) => [userId, selection])).toEqual(
      [alice, bob, carol].map(({ userId }) => [userId, 'VOTE_SELECTION_APPROVED']),
    );
    expect(await nameOf(alice)).toBe('Alicia');
  });

  test('two of the same millisecond are two, though their bodies are alike', async () => {
    const asked = await ask();
    const type = 'ACTIVITY_TYPE_APPROVE_ACTIVITY';
    const body = bob.client.submitBody(type, { fingerprint: asked.fingerprint });
    const path = '/public/v1/submit/approve_activity';
    const votes = await Promise.all([bob.client.post(path, body), carol.client.post(path, body)]);
    expect(votes.map(({ status }) => status)).toEqual([200, 200]);
    const { status, votes: recorded } = await read(alice.client, asked.id);
    expect([status, recorded.length]).toEqual(['ACTIVITY_STATUS_COMPLETED', 3]);
  });

  test('of one user through two credentials count once', async () => {
    const asked = await ask();
    await bob.client.approve(asked.fingerprint);
    const spare = await secondKey(bob);
    coordinator.clock.advance(1);
    const again = await refusal(spare.client.approve(asked.fingerprint));
    expect(again).toMatchObject({ status: 400, code: 9, message: textLike('has already approved') });
    // The submitter has voted by submitting.
    const own = await refusal(alice.client.approve(asked.fingerprint));
    expect(own).toMatchObject({ status: 400, code: 9, message: textLike('has already approved') });
    expect((await read(alice.client, asked.id)).votes).toHaveLength(2);
    expect((await read(alice.client, asked.id)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  });

  test('one user through two credentials at the same time counts once', async () => {
    const asked = await ask();
    const spare = await secondKey(bob);
    const type = 'ACTIVITY_TYPE_APPROVE_ACTIVITY';
    const now = coordinator.clock.now();
    const outcomes = await Promise.allSettled(
      [bob.client, spare.client].map((client, index) =>
        client.submit(type, { fingerprint: asked.fingerprint }, { timestampMs: String(now + index) }),
      ),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect((await read(alice.client, asked.id)).votes).toHaveLength(2);
  });

  test('one rejection ends it; approving afterwards, by anybody, does not bring it back', async () => {
    const asked = await ask();
    const rejected = await bob.client.reject(asked.fingerprint);
    expect(rejected).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_REJECTED', result: {} });
    for (const { client } of [bob, carol, alice]) {
      const refused = await refusal(client.approve(asked.fingerprint));
      expect(refused).toMatchObject({ status: 400, code: 9, message: textLike(`\`${asked.id}\`.*finished`) });
    }
    expect((await read(alice.client, asked.id)).status).toBe('ACTIVITY_STATUS_REJECTED');
    expect(await nameOf(alice)).toBe('Alice');
  });

  test('users who have approved may still reject', async () => {
    const asked = await ask();
    await bob.client.approve(asked.fingerprint);
    expect(rights(await read(bob.client, asked.id))).toEqual({ canApprove: false, canReject: true });
    expect((await bob.client.reject(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('on finished or unknown activities are refused', async () => {
    const done = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'done' });
    const votes = ['approve', 'reject'] as const;
    for (const vote of votes) {
      expect(await refusal(bob.client[vote](done.fingerprint))).toMatchObject({ status: 400, code: 9 });
    }
    const unknown = `sha256:${'0'.repeat(64)}`;
    for (const vote of votes) {
      expect(await refusal(bob.client[vote](unknown))).toMatchObject({
        status: 404,
        code: 5,
        message: `no activity found with fingerprint \`${unknown}\`: consensus activities must target an existing activity by fingerprint`,
      });
    }
  });

  test('of a user who cannot count are refused, and recorded as a denial', async () => {
    await coordinator.createPolicy({
      policyName: 'Alice and Bob mail',
      condition: "activity.kind == 'UPDATE_USER_EMAIL'",
      consensus: [alice, bob].map(({ userId }) => `approvers.any(user, user.id == '${userId}')`).join(' && '),
    });
    const intent = { userId: alice.userId, userEmail: 'alice@example.com' };
    const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', intent);
    for (const vote of ['approve', 'reject'] as const) {
      const refused = await refusal(carol.client[vote](asked.fingerprint));
      expect(refused).toMatchObject({ status: 403, code: 7, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' });
    }
    expect((await bob.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    const denials = await coordinator.events(`denials-${coordinator.organizationId}`);
    expect(denials.map(({ data }) => (data as { type: string }).type)).toEqual([
      'ACTIVITY_TYPE_APPROVE_ACTIVITY',
      'ACTIVITY_TYPE_REJECT_ACTIVITY',
    ]);
  });
});

describe('canApprove and canReject', () => {
  test('are the caller’s own, in the answer of a submit, in get_activity and in list_activities', async () => {
    const asked = await ask();
    expect(rights(asked)).toEqual({ canApprove: false, canReject: true });
    const mine = { canApprove: false, canReject: true };
    const theirs = { canApprove: true, canReject: true };
    for (const [user, expected] of [
      [alice, mine],
      [bob, theirs],
      [carol, theirs],
    ] as const) {
      expect(rights(await read(user.client, asked.id))).toEqual(expected);
      const { activities } = await user.client.query<{ activities: ActivityEnvelope[] }>('list_activities');
      expect(activities.find(({ id }) => id === asked.id)).toMatchObject(expected);
    }
    expect(rights(await bob.client.approve(asked.fingerprint))).toEqual(mine);
    const done = await carol.client.approve(asked.fingerprint);
    expect(rights(done)).toEqual({ canApprove: false, canReject: false });
    expect(rights(await read(bob.client, asked.id))).toEqual({ canApprove: false, canReject: false });
  });

  test('predict the response to a vote', async () => {
    await coordinator.createPolicy({
      policyName: 'Alice and Bob mail',
      condition: "activity.kind == 'UPDATE_USER_EMAIL'",
      consensus: [alice, bob].map(({ userId }) => `approvers.any(user, user.id == '${userId}')`).join(' && '),
    });
    const intent = { userId: alice.userId, userEmail: 'alice@example.com' };
    const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', intent);
    expect(rights(await read(carol.client, asked.id))).toEqual({ canApprove: false, canReject: false });
    expect(rights(await read(bob.client, asked.id))).toEqual({ canApprove: true, canReject: true });
  });
});

describe('time', () => {
  test('approvals lapse after 24 hours, the activity does not, and they can be given again', async () => {
    const asked = await ask();
    coordinator.clock.advance('12h');
    await bob.client.approve(asked.fingerprint);
    coordinator.clock.advance(12 * 60 * 60 * 1000 - 1);
    expect(rights(await read(alice.client, asked.id)).canApprove).toBe(false);
    coordinator.clock.advance(1);
    // Alice's is 24 hours old now, Bob's 12.
    expect(rights(await read(alice.client, asked.id)).canApprove).toBe(true);
    expect(await carol.client.approve(asked.fingerprint)).toMatchObject({
      status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
    });
    const done = await alice.client.approve(asked.fingerprint);
    expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(done.votes.map(({ userId }) => userId)).toEqual([alice, bob, carol, alice].map(({ userId }) => userId));
  });

  test('after 24 hours without a vote everybody has to approve again', async () => {
    const asked = await ask();
    await bob.client.approve(asked.fingerprint);
    coordinator.clock.advance('7d');
    expect((await carol.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await bob.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await alice.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('what changes between the votes', () => {
  test('a deleted user no longer counts', async () => {
    const asked = await ask();
    await bob.client.approve(asked.fingerprint);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [bob.userId] });
    expect((await carol.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(await refusal(bob.client.approve(asked.fingerprint))).toMatchObject({ status: 401 });
    const dave = await coordinator.createUser('Dave');
    expect((await dave.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('an approval goes with the key that gave it, and another key can give it again', async () => {
    const asked = await ask();
    const spare = await secondKey(bob);
    await spare.client.approve(asked.fingerprint);
    await bob.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: bob.userId, apiKeyIds: [spare.apiKeyId] });
    expect((await carol.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect(rights(await read(bob.client, asked.id)).canApprove).toBe(true);
    expect((await bob.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('a policy that asks for less completes it at the next vote, not by itself', async () => {
    const asked = await ask();
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', {
      policyId,
      policyConsensus: 'approvers.count() >= 2',
    });
    expect((await read(alice.client, asked.id)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await bob.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('a policy that asks for more is asked', async () => {
    const asked = await ask();
    await bob.client.approve(asked.fingerprint);
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', {
      policyId,
      policyConsensus: 'approvers.count() >= 4',
    });
    expect((await carol.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    const dave = await coordinator.createUser('Dave');
    expect((await dave.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('without its policy it stays open, and nobody can count any more', async () => {
    const asked = await ask();
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    expect(rights(await read(bob.client, asked.id))).toEqual({ canApprove: false, canReject: false });
    expect(await refusal(bob.client.approve(asked.fingerprint))).toMatchObject({ status: 403, code: 7 });
    // Who has approved may take it back.
    expect((await alice.client.reject(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('a policy that forbids it refuses the vote and leaves the activity open', async () => {
    const asked = await ask();
    await bob.client.approve(asked.fingerprint);
    const forbidding = await coordinator.createPolicy({
      policyName: 'nobody renames',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'UPDATE_USER_NAME'",
    });
    const refused = await refusal(carol.client.approve(asked.fingerprint));
    expect(refused).toMatchObject({ status: 403, code: 7, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' });
    // The policy is named, and the outcomes are those that this vote would have led to.
    const { message, policyEvaluations } = denial(refused);
    expect(message).toBe(`The following policies denied this action: ${forbidding}`);
    expect(policyEvaluations?.map((one) => [one.policyId, one.outcome])).toEqual([
      [builtIn, 'OUTCOME_DENY_IMPLICIT'],
      [policyId, 'OUTCOME_ALLOW'],
      [forbidding, 'OUTCOME_DENY_EXPLICIT'],
    ]);
    expect((await read(alice.client, asked.id)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await read(alice.client, asked.id)).votes).toHaveLength(2);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId: forbidding });
    expect((await carol.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('a denied submit leaves no activity, and returns the outcome of each policy', async () => {
    const forbidding = await coordinator.createPolicy({
      policyName: 'nobody renames',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'UPDATE_USER_NAME'",
    });
    const before = await coordinator.events();
    const refused = await refusal(ask());
    expect(denial(refused)).toEqual({
      message: `The following policies denied this action: ${forbidding}`,
      policyEvaluations: [
        {
          policyId: builtIn,
          policyName: anyText,
          outcome: 'OUTCOME_DENY_IMPLICIT',
          clause: { name: 'condition', text: textLike(/^\(activity.resource == 'AUTH'.{170,}…$/), outcome: 'false' },
        },
        {
          policyId,
          policyName: 'three rename',
          outcome: 'OUTCOME_REQUIRES_CONSENSUS',
          clause: { name: 'consensus', text: 'approvers.count() >= 3', outcome: 'false' },
        },
        {
          policyId: forbidding,
          policyName: 'nobody renames',
          outcome: 'OUTCOME_DENY_EXPLICIT',
          clause: { name: 'condition', text: "activity.kind == 'UPDATE_USER_NAME'", outcome: 'true' },
        },
      ],
    });
    expect(await coordinator.events()).toEqual(before);
  });

  test('what can no longer be done when all have approved has failed, with the reason', async () => {
    const asked = await coordinator.createUser('Dave').then(async (dave) => {
      const activity = await alice.client.submit(renameType, { userId: dave.userId, userName: 'David' });
      await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [dave.userId] });
      return activity;
    });
    await bob.client.approve(asked.fingerprint);
    const failed = await carol.client.approve(asked.fingerprint);
    expect(failed).toMatchObject({
      id: asked.id,
      status: 'ACTIVITY_STATUS_FAILED',
      result: {},
      failure: { code: 5, message: textLike('^no user `'), details: [] },
    });
    expect(await read(alice.client, asked.id)).toEqual(failed);
    expect(await refusal(carol.client.reject(asked.fingerprint))).toMatchObject({ status: 400, code: 9 });
  });

  test('what could not be done at once is refused before anybody votes on it', async () => {
    const nobody = { userId: '00000000-0000-4000-8000-000000000000', userName: 'Nobody' };
    expect(await refusal(alice.client.submit(renameType, nobody))).toMatchObject({ status: 404, code: 5 });
  });
});

describe('the root quorum', () => {
  test('of three members takes two', async () => {
    const { root } = coordinator;
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
      threshold: 2,
      userIds: [root.userId, alice.userId, bob.userId],
    });
    const asked = await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', {
      organizationName: 'Acme',
    });
    expect(asked).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', canApprove: false });
    expect(rights(await read(carol.client, asked.id))).toEqual({ canApprove: false, canReject: false });
    expect(await refusal(carol.client.approve(asked.fingerprint))).toMatchObject({ status: 403 });
    expect(await coordinator.client.query('whoami')).toMatchObject({ organizationName: 'Root organization' });
    expect(await bob.client.approve(asked.fingerprint)).toMatchObject({
      status: 'ACTIVITY_STATUS_COMPLETED',
      result: {
        updateOrganizationNameResult: { organizationId: coordinator.organizationId, organizationName: 'Acme' },
      },
    });
    expect(await coordinator.client.query('whoami')).toMatchObject({ organizationName: 'Acme' });

    const denied = await refusal(
      carol.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Carol & Co' }),
    );
    expect(denied).toMatchObject({ status: 403, code: 7 });
    const other = await alice.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Other' });
    expect((await bob.client.reject(other.fingerprint)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('stands above a policy that forbids', async () => {
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
      threshold: 2,
      userIds: [coordinator.root.userId, alice.userId],
    });
    const asked = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
      policyName: 'no tags',
      effect: 'EFFECT_DENY',
      condition: "activity.resource == 'USER'",
      notes: '',
    });
    expect((await alice.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    const tag = await alice.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag' });
    expect(tag.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await coordinator.client.approve(tag.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

test('get_policy_evaluations returns every policy’s outcome for every vote, and never changes', async () => {
  const asked = await ask();
  await bob.client.approve(asked.fingerprint);
  const done = await carol.client.approve(asked.fingerprint);
  const evaluations = () =>
    coordinator.client.query<{ policyEvaluations: Record<string, unknown>[] }>('get_policy_evaluations', {
      activityId: asked.id,
    });
  const { policyEvaluations } = await evaluations();
  const { organizationId } = coordinator;
  const expected = (index: number, outcome: string, decidedBy: string, of: string) => ({
    id: done.votes[index]!.id,
    activityId: asked.id,
    organizationId,
    voteId: done.votes[index]!.id,
    policyEvaluations: [
      {
        policyId: builtIn,
        policyName: 'Auth proxy',
        outcome: 'OUTCOME_DENY_IMPLICIT',
        clause: { name: 'condition', text: textLike("activity.resource == 'AUTH'"), outcome: 'false' },
      },
      {
        policyId,
        policyName: 'three rename',
        outcome: of,
        ...(outcome === 'allow'
          ? {}
          : { clause: { name: 'consensus', text: 'approvers.count() >= 3', outcome: 'false' } }),
      },
    ],
    outcome,
    decidedBy,
    revision: textLike(/^\d+$/),
    rules: rulesNumber,
    createdAt: { seconds: anyText, nanos: '0' },
  });
  expect(policyEvaluations).toEqual([
    expected(0, 'consensus-needed', 'none', 'OUTCOME_REQUIRES_CONSENSUS'),
    expected(1, 'consensus-needed', 'none', 'OUTCOME_REQUIRES_CONSENSUS'),
    expected(2, 'allow', 'policy', 'OUTCOME_ALLOW'),
  ]);
  const revisions = policyEvaluations.map(({ revision }) => Number(revision));
  expect([...revisions].sort((one, other) => one - other)).toEqual(revisions);

  // A part of them, by the ids of their votes.
  const ids = policyEvaluations.map(({ id }) => id as string);
  const part = async (paginationOptions: object) =>
    coordinator.client
      .query<{ policyEvaluations: { id: string }[] }>('get_policy_evaluations', {
        activityId: asked.id,
        paginationOptions,
      })
      .then((answer) => answer.policyEvaluations.map(({ id }) => id));
  expect(await part({ limit: '2' })).toEqual(ids.slice(0, 2));
  expect(await part({ after: ids[0] })).toEqual(ids.slice(1));
  expect(await part({ after: ids[0], limit: '1' })).toEqual(ids.slice(1, 2));
  expect(await part({ before: ids[2] })).toEqual(ids.slice(0, 2));
  expect(await part({ before: ids[2], limit: '1' })).toEqual(ids.slice(1, 2));
  expect(await part({ after: ids[0], before: ids[2] })).toEqual(ids.slice(1, 2));
  await expect(part({ after: asked.id })).rejects.toThrow('is not an element of this list');
  await expect(part({ limit: '0' })).rejects.toThrow('paginationOptions.limit');

  // What was decided stays what it was, whatever becomes of the policy.
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  expect((await evaluations()).policyEvaluations).toEqual(policyEvaluations);
});
