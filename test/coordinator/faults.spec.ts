import type { ActivityResponse } from '../../src/coordinator/activity-responses.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import { BareCoordinator, organizationId, type Stamped } from './bare-coordinator.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { SeededPasskey } from './seeded-passkey.js';
import { SteeredStore, type Fault } from '../ledger/steered-store.js';

const stream = organizationStream(organizationId);
const denials = `denials-${organizationId}`;

/**
 * Plays a story in which every kind of request comes up once, with a client that sends the same bytes again after every
 * answer that is not one. What it sees is held against the store at once.
 */
async function playWith(faults: ReadonlyMap<number, Fault>) {
  const store = new SteeredStore();
  const coordinator = await BareCoordinator.start({ store });
  const founding = store.asked.length;
  for (const [number, fault] of faults) {
    if (fault === 'wrong-revision') store.faults.set(founding + number, fault);
    else store.failTwice(founding + number, fault);
  }
  const refusals: string[] = [];

  const check = async ({ activity }: ActivityResponse): Promise<void> => {
    const types = (await coordinator.events())
      .filter(({ data }) => (data as { activityId?: string }).activityId === activity.id)
      .map(({ type }) => type);
    expect([activity.status, types]).toEqual([
      activity.status,
      expect.arrayContaining(['ActivitySubmitted']) as unknown,
    ]);
    expect([activity.id, types.includes('ActivityCompleted')]).toEqual([
      activity.id,
      activity.status === 'ACTIVITY_STATUS_COMPLETED',
    ]);
  };
  /** Until there is an answer; a refusal that is not the store's is an answer too. */
  const persist = async (request: Stamped): Promise<ActivityResponse | string> => {
    for (let attempt = 1; attempt <= 8; attempt++) {
      try {
        const answer = await coordinator.send(request);
        await check(answer);
        return answer;
      } catch (error) {
        if (!(error instanceof CoordinatorError)) throw error;
        refusals.push(error.code);
        if (error.code !== 'UNAVAILABLE' && error.code !== 'ABORTED') return error.code;
      }
    }
    throw new Error('no answer after eight attempts');
  };
  const { root } = coordinator;
  const submitted = async (signer: Stamped): Promise<ActivityResponse['activity']> => {
    const answer = await persist(signer);
    if (typeof answer === 'string') throw new Error(`refused: ${answer}`);
    return answer.activity;
  };

  const [ann, bob] = [coordinator.newKey(), coordinator.newKey()];
  const users = [ann, bob].map((key, index) => ({
    userName: `user ${index}`,
    apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
    authenticators: [],
    oauthProviders: [],
    userTags: [],
  }));
  const { result } = await submitted(coordinator.stamp(root.key, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users }));
  const { userIds } = result['createUsersResult'] as { userIds: [string, string] };
  const policy = { policyName: 'policy', effect: 'EFFECT_ALLOW', notes: '' };
  const two = { ...policy, condition: "activity.resource != 'POLICY'", consensus: 'approvers.count() >= 2' };
  await submitted(coordinator.stamp(root.key, 'ACTIVITY_TYPE_CREATE_POLICY_V3', two));

  const asked = await submitted(
    coordinator.stamp(ann, 'ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: userIds[1], userName: 'Robert' }),
  );
  const approval = coordinator.stamp(bob, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: asked.fingerprint });
  await persist(approval);

  const authenticators = [new SeededPasskey('fault').register('phone')];
  await persist(
    coordinator.stamp(root.key, 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId: root.userId, authenticators }),
  );

  const rejected = await submitted(coordinator.stamp(ann, 'ACTIVITY_TYPE_DELETE_USERS', { userIds: [userIds[1]] }));
  await persist(coordinator.stamp(bob, 'ACTIVITY_TYPE_REJECT_ACTIVITY', { fingerprint: rejected.fingerprint }));

  const denied = coordinator.stamp(ann, 'ACTIVITY_TYPE_DELETE_POLICY', { policyId: userIds[0] });
  expect(await persist(denied)).toBe('PERMISSION_DENIED');

  const tags = ['a', 'b', 'a', 'c'].map((userTagName) =>
    coordinator.stamp(root.key, 'ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] }),
  );
  const answers = await Promise.all(tags.map(persist));
  expect(answers.map((answer) => (typeof answer === 'string' ? answer : answer.activity.status)).toSorted()).toEqual([
    'ACTIVITY_STATUS_COMPLETED',
    'ACTIVITY_STATUS_COMPLETED',
    'ACTIVITY_STATUS_COMPLETED',
    'INVALID_ARGUMENT',
  ]);

  const events = await coordinator.events();
  const told = events.map(({ type }) => type);
  expect(events.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
  for (const { recorded, again } of redecide(events, coordinator.registry)) expect(again).toEqual(recorded);
  const appends = store.asked.length - founding;
  const streams = new Set(store.asked.slice(founding).map((one) => one.stream));
  store.faults.clear();
  const restarted = await BareCoordinator.start({ store });
  const live = await coordinator.loader.load(organizationId);
  const replayed = await restarted.loader.load(organizationId);
  expect({ ...live.organization }).toStrictEqual({ ...replayed.organization });
  // The same bytes, long after: the same activities, and nothing new.
  for (const answer of answers) if (typeof answer !== 'string') await check(answer);
  for (const request of [...tags, approval]) {
    const again = await restarted.send(request).catch((error: unknown) => error);
    if (!(again instanceof CoordinatorError)) await check(again as ActivityResponse);
  }
  expect(await coordinator.events()).toHaveLength(events.length);

  const denialCount = (await coordinator.events(denials)).length;
  await restarted.close();
  await coordinator.close();
  return { told, refusals, denialCount, appends, streams };
}

describe('an append that fails', () => {
  let calm: Awaited<ReturnType<typeof playWith>>;
  beforeAll(async () => {
    calm = await playWith(new Map());
  });

  it('is what the story has enough of', () => {
    expect(calm.refusals).toEqual(['PERMISSION_DENIED', 'INVALID_ARGUMENT']);
    expect(calm.told.filter((type) => type === 'UserTagCreated')).toHaveLength(3);
    expect(calm.streams).toEqual(new Set([stream, denials]));
    expect(calm.appends).toBeGreaterThanOrEqual(9);
  });

  const numbers = Array.from({ length: 9 }, (_, number) => number);

  it.each(numbers)('number %i, with nothing written: sent again, it is as if nothing had happened', async (number) => {
    const story = await playWith(new Map([[number, 'unavailable-before']]));
    expect(story.told.toSorted()).toEqual(calm.told.toSorted());
    expect(story.refusals).toContain('UNAVAILABLE');
    expect(story.denialCount).toBe(1);
  });

  it.each(numbers)('number %i, with everything written: sent again, it has one effect', async (number) => {
    const story = await playWith(new Map([[number, 'unavailable-after']]));
    expect(story.told.toSorted()).toEqual(calm.told.toSorted());
    expect(story.refusals).toContain('UNAVAILABLE');
    // A denial may be recorded twice, as it was tried twice.
    expect(story.denialCount).toBeLessThanOrEqual(2);
  });

  it.each(numbers)('number %i, because another writer was first: nobody notices', async (number) => {
    const story = await playWith(new Map([[number, 'wrong-revision']]));
    expect(story.told.toSorted()).toEqual(calm.told.toSorted());
    expect(story.refusals).toEqual(calm.refusals);
  });

  it('does no harm when every second one does', async () => {
    const faults: readonly Fault[] = ['unavailable-after', 'wrong-revision', 'unavailable-before'];
    const story = await playWith(new Map(numbers.map((number) => [number * 2, faults[number % 3]!] as const)));
    expect(story.told.toSorted()).toEqual(calm.told.toSorted());
  });
});
