import { activityMachine } from '../../src/domain/activity/machine.js';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { denial, refusal, textLike } from './exchange.js';
import { WebhookReceiver } from './webhook-receiver.js';

const renameType = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const forbidden = "activity.kind == 'UPDATE_USER_NAME'";

let receiver: WebhookReceiver;
let coordinator: TestCoordinator;
let ann: TestUser, bob: TestUser, cat: TestUser, dan: TestUser;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
});
afterAll(() => receiver.close());

/** Cat, Dan and the root user are the quorum, of whom two decide. Renaming needs Ann and Bob. */
beforeEach(async () => {
  coordinator = await startCoordinator({ settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
  [ann, bob, cat, dan] = [
    await coordinator.createUser('Ann'),
    await coordinator.createUser('Bob'),
    await coordinator.createUser('Cat'),
    await coordinator.createUser('Dan'),
  ];
  const approvedBy = ({ userId }: TestUser) => `approvers.any(user, user.id == '${userId}')`;
  await coordinator.createPolicy({
    policyName: 'two rename',
    condition: forbidden,
    consensus: `${approvedBy(ann)} && ${approvedBy(bob)}`,
  });
});
afterEach(() => coordinator.close());

const foundQuorum = (threshold = 2) =>
  coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
    threshold,
    userIds: [coordinator.root.userId, cat.userId, dan.userId],
  });
const deny = () => coordinator.createPolicy({ policyName: 'no renaming', effect: 'EFFECT_DENY', condition: forbidden });
const rename = (by = ann.client) => by.submit(renameType, { userId: ann.userId, userName: 'Anna' });
const rightsIn = ({ canApprove, canReject }: ActivityEnvelope) => ({ canApprove, canReject });
const read = async (client: StampingClient, activityId: string) =>
  (await client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId })).activity;
const listed = async (client: StampingClient, activityId: string) =>
  (await client.query<{ activities: ActivityEnvelope[] }>('list_activities', {})).activities.find(
    ({ id }) => id === activityId,
  )!;

describe('every right is what the machine says', () => {
  const { guards } = activityMachine.implementations;
  const before = { ...guards };
  afterEach(() => void Object.assign(guards, before));

  let places = 0;

  async function everywhere() {
    const path = `/rights/${++places}`;
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
      url: `${receiver.url}${path}`,
      name: path,
      subscriptions: [{ eventType: 'ACTIVITY_UPDATES', filtersJson: JSON.stringify({ types: [renameType] }) }],
    });
    const asked = await rename();
    const [delivery] = await receiver.count(path, 1);
    const accepts = async (vote: Promise<unknown>) =>
      vote.then(
        () => true,
        () => false,
      );
    const shown = {
      submitted: rightsIn(asked),
      read: rightsIn(await read(bob.client, asked.id)),
      listed: rightsIn(await listed(bob.client, asked.id)),
      webhook: rightsIn(JSON.parse(delivery!.body) as ActivityEnvelope),
    };
    // Bob's approval would complete it.
    return {
      ...shown,
      enforced: {
        canReject: await accepts(bob.client.reject(asked.fingerprint)),
        canApprove: await accepts(bob.client.approve((await rename(ann.client)).fingerprint)),
      },
    };
  }

  const both = { canApprove: true, canReject: true };
  test.each([
    ['neither', {}, both, { canApprove: false, canReject: true }],
    [
      'mayApprove',
      { canApprove: false },
      { canApprove: false, canReject: true },
      { canApprove: false, canReject: true },
    ],
    [
      'mayReject',
      { canReject: false },
      { canApprove: true, canReject: false },
      { canApprove: false, canReject: false },
    ],
  ] as const)('with the guard %s forced to false', async (guard, _off, bobs, submitters) => {
    if (guard !== 'neither') guards[guard] = () => false;
    expect(await everywhere()).toEqual({
      submitted: submitters,
      read: bobs,
      listed: bobs,
      webhook: bobs,
      enforced: bobs,
    });
  });
});

describe('members of the root quorum', () => {
  test('vote on what anybody submitted, and enough of their approvals allow it', async () => {
    await foundQuorum();
    const asked = await rename();
    expect(rightsIn(await read(cat.client, asked.id))).toEqual({ canApprove: true, canReject: true });
    expect(rightsIn(await listed(cat.client, asked.id))).toEqual({ canApprove: true, canReject: true });
    expect((await cat.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await dan.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('reject it too', async () => {
    await foundQuorum();
    const asked = await rename();
    expect((await cat.client.reject(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('approve while a DENY applies, which others cannot; a submit under a DENY stays denied', async () => {
    const asked = await rename();
    await deny();
    await foundQuorum();
    const refused = await refusal(bob.client.approve(asked.fingerprint));
    expect(denial(refused).message).toContain('denied this action');
    expect(rightsIn(await read(bob.client, asked.id))).toEqual({ canApprove: false, canReject: false });
    expect((await cat.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await dan.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(denial(await refusal(rename())).message).toContain('denied this action');
  });

  test('are told which policies their approval would override', async () => {
    const asked = await rename();
    await deny();
    await foundQuorum();
    const { waitsFor } = await read(cat.client, asked.id);
    expect(waitsFor!.text).toMatch(
      /from the root quorum \(.*\); this would override the denial of policy "no renaming"\.$/,
    );
    expect(waitsFor!.overrides).toEqual([{ policyId: textLike('-'), policyName: 'no renaming' }]);
    expect((await read(bob.client, asked.id)).waitsFor?.policies ?? []).toEqual([]);
  });

  test('allow what no policy allows any more', async () => {
    const asked = await rename();
    const { policies } = await coordinator.client.query<{ policies: { policyId: string; condition?: string }[] }>(
      'list_policies',
      {},
    );
    const { policyId } = policies.find(({ condition }) => condition === forbidden)!;
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    await foundQuorum(1);
    expect((await cat.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

test('who may vote on an activity may ask about it, and nobody else', async () => {
  const outsider = await coordinator.createUser('Eve');
  await foundQuorum();
  const { id: activityId } = await rename();
  const queries = [
    ['explain_activity', { activityId }],
    ['list_minimal_approvers', { activityId }],
    ['what_if', { activityId, draft: { withoutUsers: ['nobody'] } }],
  ] as const;
  for (const [path, parameters] of queries) {
    for (const { client } of [ann, bob, cat]) expect(await client.query(path, parameters)).toBeDefined();
    expect(await refusal(outsider.client.query(path, parameters))).toMatchObject({ status: 403, code: 7 });
  }
  const draft = { withoutUsers: ['nobody'] };
  expect(await refusal(bob.client.query('what_if', { draft }))).toMatchObject({ status: 403, code: 7 });
  // About others, voters learn nothing: without Ann, this activity is all that would be different for them.
  const withoutAnn = await bob.client.query('what_if', { activityId, draft: { withoutUsers: [ann.userId] } });
  expect(withoutAnn).toMatchObject({ differences: [], unchanged: { decisions: 0, denials: 0 } });
  const { divergences } = withoutAnn as { divergences: readonly { activityId: string }[] };
  expect(divergences.filter((one) => one.activityId !== activityId)).toEqual([]);
  expect(divergences.length).toBeLessThanOrEqual(1);
});

describe('nobody can veto a change about themselves', () => {
  beforeEach(() => foundQuorum());

  const without = ({ userId }: TestUser, threshold = 2) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
      threshold,
      userIds: [coordinator.root, cat, dan].map((one) => one.userId).filter((one) => one !== userId),
    });

  test('a member cannot keep the quorum from removing them', async () => {
    const asked = await without(dan);
    expect(rightsIn(await read(dan.client, asked.id))).toEqual({ canApprove: true, canReject: true });
    const rejected = await dan.client.reject(asked.fingerprint);
    expect(rejected).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', canApprove: true, canReject: false });
    expect(rejected.votes.at(-1)).toMatchObject({ userId: dan.userId, selection: 'VOTE_SELECTION_REJECTED' });
    expect(rightsIn(await listed(dan.client, asked.id))).toEqual({ canApprove: true, canReject: false });
    coordinator.clock.advance(1);
    const again = await refusal(dan.client.reject(asked.fingerprint));
    expect(again).toMatchObject({ status: 400, code: 9, message: textLike('has already rejected') });
    expect((await cat.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('nor from changing their name, tags or credentials', async () => {
    const { result } = await coordinator.client
      .submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
        userTagName: 'staff',
        userIds: [],
      })
      .then(async ({ fingerprint }) => cat.client.approve(fingerprint));
    const { userTagId } = result['createUserTagResult'] as { userTagId: string };
    const key = coordinator.newKey();
    const requests: readonly [string, Record<string, unknown>][] = [
      [renameType, { userId: dan.userId, userName: 'Daniel' }],
      ['ACTIVITY_TYPE_UPDATE_USER_TAG', { userTagId, addUserIds: [dan.userId], removeUserIds: [] }],
      [
        'ACTIVITY_TYPE_CREATE_API_KEYS_V2',
        { userId: dan.userId, apiKeys: [{ apiKeyName: 'new', publicKey: key.publicKey, curveType: key.curve }] },
      ],
    ];
    for (const [type, parameters] of requests) {
      const asked = await coordinator.client.submit(type, parameters);
      const { status, canReject } = await dan.client.reject(asked.fingerprint);
      expect([type, status, canReject]).toEqual([type, 'ACTIVITY_STATUS_CONSENSUS_NEEDED', false]);
      expect([type, (await cat.client.approve(asked.fingerprint)).status]).toEqual([type, 'ACTIVITY_STATUS_COMPLETED']);
    }
  });

  test.each([
    [
      'a change that is also about somebody else',
      () =>
        coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
          threshold: 2,
          userIds: [coordinator.root.userId, cat.userId, ann.userId],
        }),
    ],
    ['another threshold', () => without(dan, 1)],
    ['a change about another user', () => without(cat)],
  ])('they still end %s', async (_what, submit) => {
    const asked = await submit();
    expect((await dan.client.reject(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('and who requested it may take it back', async () => {
    const asked = await rename();
    expect((await ann.client.reject(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_REJECTED');
  });

  test('their earlier approval no longer counts', async () => {
    await coordinator.client
      .submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', {
        threshold: 3,
        userIds: [coordinator.root.userId, cat.userId, dan.userId],
      })
      .then(async ({ fingerprint }) => cat.client.approve(fingerprint));
    const asked = await coordinator.client.submit(renameType, { userId: dan.userId, userName: 'Daniel' });
    await dan.client.approve(asked.fingerprint);
    expect((await dan.client.reject(asked.fingerprint)).canReject).toBe(false);
    expect((await cat.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    coordinator.clock.advance(1);
    expect((await dan.client.approve(asked.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});
