import { OrganizationQueue } from '../../src/coordinator/organization-queue.js';
import { senderPath, type QueuePath, type Sender } from '../../src/fairness/fair-queue.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PreparePorts } from '../../src/ports/prepare.js';
import type { ActivityResponse } from '../../src/coordinator/activity-responses.js';
import { foundOrganization } from '../../src/decide/found-organization.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { mainThreadSteps } from '../../src/domain/steps.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import { GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import { RetryingDelivery } from '../../src/delivery/retrying.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { verifyRegistration } from '../../src/stamps/webauthn.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { CapturedMessages } from '../../src/testing/captured-messages.js';
import {
  BareCoordinator,
  organizationId,
  startedAt,
  type BareOptions,
  type Member,
  type Stamped,
} from './bare-coordinator.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import { SeededPasskey } from './seeded-passkey.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { until } from '../e2e/until.js';
import { pondered, testRegistry } from './test-verbs.js';

const stream = organizationStream(organizationId);
const denials = `denials-${organizationId}`;

const createTag = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const deletePolicy = 'ACTIVITY_TYPE_DELETE_POLICY';
const renameUser = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const createPasskeys = 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2';

const running: BareCoordinator[] = [];
async function started(options: BareOptions = {}): Promise<BareCoordinator> {
  const coordinator = await BareCoordinator.start(options);
  running.push(coordinator);
  return coordinator;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((coordinator) => coordinator.close()));
});

/** One coordinator on a store that can be steered. */
async function alone(options: BareOptions = {}) {
  const store = new SteeredStore();
  const coordinator = await started({ store, ...options });
  const tag = (userTagName: string, by: Member = coordinator.root) =>
    coordinator.stamp(by.key, createTag, { userTagName, userIds: [] });
  return { store, coordinator, tag };
}

/** Two coordinators on one store, as with a cluster; each has its own view of it. */
async function together(options: BareOptions = {}) {
  const inner = new InMemoryEventStore();
  const clock = new ManualClock(startedAt);
  const stores = [new SteeredStore(inner, false), new SteeredStore(inner, false)] as const;
  const one = await started({ ...options, store: stores[0], clock, seed: 'one' });
  const other = await started({ ...options, store: stores[1], clock, seed: 'other' });
  return { one, other, stores };
}

/** Sends requests so that they are one batch: they come in while an append before them is on its way. */
async function asOneBatch(
  coordinator: BareCoordinator,
  store: SteeredStore,
  requests: readonly Stamped[],
): Promise<PromiseSettledResult<ActivityResponse>[]> {
  const before = store.asked.length;
  store.hold();
  const blocker = coordinator.submit(coordinator.root.key, createTag, {
    userTagName: `blocker ${before}`,
    userIds: [],
  });
  await store.until(before + 1);
  const sent = driven(coordinator, requests);
  await sent.queued;
  store.release();
  await blocker;
  return sent.answers;
}

/** Sends requests, and says when the driver has all of them. */
function driven(coordinator: BareCoordinator, requests: readonly Stamped[]) {
  const goal = coordinator.counts.driven + requests.length;
  const answers = Promise.allSettled(requests.map((request) => coordinator.send(request)));
  const queued = (async () => {
    await until('the driver has all of them', () => coordinator.counts.driven >= goal);
  })();
  return { answers, queued };
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Everything that can go on without what is held has gone on: nothing here waits for time to pass. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await soon();
}

const statusOf = (one: PromiseSettledResult<ActivityResponse> | undefined): string => {
  if (one?.status === 'fulfilled') return one.value.activity.status.replace('ACTIVITY_STATUS_', '');
  const reason: unknown = one?.reason;
  return reason instanceof CoordinatorError ? reason.code : String(reason);
};

const refusalOf = async (request: Promise<unknown>): Promise<CoordinatorError> => {
  const error: unknown = await request.then(
    (answer) => new Error(`not refused: ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof CoordinatorError) return error;
  throw error;
};

const correlations = async (coordinator: BareCoordinator): Promise<string[]> =>
  (await coordinator.events()).map(({ metadata }) => (metadata as EventMetadata).$correlationId);

describe('a queue', () => {
  it('gives strangers and members turns, and each of them, however much one of them has sent before', async () => {
    const { store, coordinator, tag } = await alone();
    const sent = (name: string, count: number, sender: Partial<Sender>) => {
      const from = senderPath({ network: '203.0.113.1', isThroughProxy: false, credential: name, ...sender });
      return Array.from({ length: count }, (_, at) => ({ ...tag(`${name} ${at}`), from }));
    };
    const flood = { network: '203.0.113.66', isThroughProxy: true };
    await asOneBatch(coordinator, store, [
      ...sent('flood', 300, flood),
      ...sent('busy', 10, {}),
      ...sent('caller', 1, { network: '203.0.113.2', isThroughProxy: true }),
      ...sent('member', 1, {}),
      ...sent('elsewhere', 1, { network: '203.0.113.3' }),
    ]);
    const order = (await coordinator.events()).flatMap(({ type, data }) =>
      type === 'ActivitySubmitted'
        ? String(/"userTagName":"(\w+)/.exec(JSON.stringify(data).replaceAll('\\', ''))?.[1])
        : [],
    );
    const begun = order.indexOf('flood');
    expect(order.slice(begun, begun + 10)).toEqual([
      'flood',
      'busy',
      'caller',
      'elsewhere',
      'flood',
      'member',
      'flood',
      'busy',
      'flood',
      'busy',
    ]);
  });

  it('ends a batch where its bodies become too many, and nobody waits for ever', () => {
    const queue = new OrganizationQueue<{
      readonly name: string;
      readonly request: { body: Uint8Array; from: QueuePath };
    }>();
    const push = (name: string, kilobytes: number, from: QueuePath = [name]) =>
      queue.push({ name, request: { body: new Uint8Array(kilobytes * 1024), from } });
    const batch = () => queue.batch().map(({ name }) => name);
    push('small', 100);
    push('large', 2_000);
    push('small', 100);
    push('other', 1);
    expect(batch()).toEqual(['small']);
    push('small', 1);
    expect(batch()).toEqual(['large']);
    const left = queue.batch();
    expect(left.map(({ name }) => name)).toEqual(['other', 'small', 'small']);
    push('small', 2);
    queue.putBack(left.slice(1));
    expect(queue.size).toBe(3);
    expect(queue.batch().map(({ request }) => request.body.length / 1024)).toEqual([100, 1, 2]);
    expect(queue.size).toBe(0);
    for (let count = 0; count < 300; count++) push('tiny', 0);
    expect([batch().length, batch().length]).toEqual([256, 44]);
  });
});

describe('a batch', () => {
  it('puts everything that is waiting into one append, each decided on the state left by the previous one', async () => {
    const { store, coordinator, tag } = await alone();
    const answers = await asOneBatch(
      coordinator,
      store,
      Array.from({ length: 20 }, (_, number) => tag(`tag ${number}`)),
    );
    expect(answers.map(statusOf)).toEqual(Array.from({ length: 20 }, () => 'COMPLETED'));
    expect(coordinator.counts.appends).toEqual([1, 20]);
    expect(store.typesAsked(stream)[2]).toHaveLength(60);

    const events = await coordinator.events();
    const seen = events.flatMap(({ type, data, revision }) =>
      type === 'ActivitySubmitted'
        ? [[revision - 1, (data as { decision: { revision: number } }).decision.revision]]
        : [],
    );
    expect(seen).toHaveLength(21);
    for (const [before, decidedAt] of seen) expect(decidedAt).toBe(before);
    for (const { recorded, again } of redecide(events, coordinator.registry)) expect(again).toEqual(recorded);
  });

  it('lets one of two deletions of the same policy win, and tells the other that the policy was deleted', async () => {
    const { store, coordinator } = await alone();
    const policyId = await coordinator.createPolicy({ condition: 'true' });
    const requests = [0, 1].map(() => coordinator.stamp(coordinator.root.key, deletePolicy, { policyId }));
    const answers = await asOneBatch(coordinator, store, requests);
    expect(answers.map(statusOf)).toEqual(['COMPLETED', 'NOT_FOUND']);
    const deletions = (await coordinator.events()).filter(({ type }) => type === 'PolicyDeleted');
    expect(deletions).toHaveLength(1);
  });

  it('refuses one request without affecting the others, and nothing of it remains', async () => {
    const { store, coordinator, tag } = await alone();
    const nobody = await coordinator.createUser('Nobody');
    const gone = await coordinator.createUser('Gone');
    const deleteGone = coordinator.stamp(coordinator.root.key, 'ACTIVITY_TYPE_DELETE_USERS', {
      userIds: [gone.userId],
    });
    const requests = [tag('a'), tag('a'), tag('b', nobody), deleteGone, tag('c', gone), tag('c')];
    const before = (await coordinator.events()).length;
    const answers = await asOneBatch(coordinator, store, requests);
    expect(answers.map(statusOf)).toEqual([
      'COMPLETED',
      'INVALID_ARGUMENT',
      'PERMISSION_DENIED',
      'COMPLETED',
      'UNAUTHENTICATED',
      'COMPLETED',
    ]);
    const added = (await coordinator.events()).slice(before);
    const activities = new Set(added.map(({ metadata }) => (metadata as EventMetadata).$correlationId));
    expect(added.filter(({ type }) => type === 'ActivitySubmitted')).toHaveLength(4);
    expect(activities.size).toBe(4);
    expect(
      [...(await coordinator.loader.load(organizationId)).organization.userTags.values()].map(({ tagName }) => tagName),
    ).toEqual([expect.stringMatching('blocker'), 'a', 'c']);
  });

  it('keeps nothing of what was decided beside a request that ran into a defect', async () => {
    const { store, coordinator, tag } = await alone({ registry: testRegistry });
    const requests = [
      tag('before'),
      coordinator.stamp(coordinator.root.key, 'ACTIVITY_TYPE_STUMBLE', { amount: '1' }),
      tag('after'),
    ];
    const answers = await asOneBatch(coordinator, store, requests);
    expect(statusOf(answers[1])).toBe('Error: a defect');
    for (const request of [requests[0]!, requests[2]!]) {
      expect((await coordinator.send(request)).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    }
    const recorded = (await coordinator.events()).flatMap(({ type, data }) =>
      type === 'UserTagCreated' ? [(data as { tagName: string }).tagName] : [],
    );
    expect(recorded.slice(1).toSorted()).toEqual(['after', 'before']);
    const { organization } = await coordinator.loader.load(organizationId);
    expect([...organization.userTags.values()].map(({ tagName }) => tagName)).toEqual(recorded);
  });

  it('has at most 256 requests', async () => {
    const { store, coordinator, tag } = await alone();
    const stamped = tag('once');
    await coordinator.send(stamped);
    const user = await coordinator.createUser('Ann');
    const rename = (number: number) =>
      coordinator.stamp(coordinator.root.key, renameUser, { userId: user.userId, userName: `Ann ${number}` });
    await asOneBatch(
      coordinator,
      store,
      Array.from({ length: 260 }, (_, number) => rename(number)),
    );
    expect(coordinator.counts.appends.slice(-3)).toEqual([1, 256, 4]);
  });

  it('of one organization does not wait for that of another', async () => {
    const { store, coordinator, tag } = await alone();
    const neighbour = organizationId.replace(/1$/, '9');
    await foundOrganization(store, {
      organizationId: neighbour,
      organizationName: 'Neighbour',
      userId: coordinator.root.userId,
      userName: 'Root user',
      apiPublicKey: coordinator.root.key.publicKey,
      curve: coordinator.root.key.curve,
      at: startedAt,
    });
    store.hold((name) => name === stream);
    const held = coordinator.send(tag('held'));
    const { path, body } = tag('free');
    const request = coordinator.stampAgain(coordinator.root, path, body.replace(organizationId, neighbour));
    expect((await coordinator.send(request)).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    store.release();
    expect((await held).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('two organizations', () => {
  test('take turns: what waits in one does not hold up the other, and is recorded together all the same', async () => {
    const { coordinator } = await alone({ registry: testRegistry });
    const other = '0f9d5a5e-0000-4000-8000-00000000000a';
    await foundOrganization(coordinator.store, {
      organizationId: other,
      organizationName: 'Other',
      userId: '0f9d5a5e-0000-4000-8000-00000000000b',
      userName: 'Root user',
      apiPublicKey: coordinator.root.key.publicKey,
      curve: coordinator.root.key.curve,
      at: startedAt,
    });
    const type = 'ACTIVITY_TYPE_PONDER';
    const costly = Array.from({ length: 60 }, (_, number) =>
      coordinator.stamp(coordinator.root.key, type, { amount: String(number) }),
    );
    const parameters = { amount: 'the other one' };
    const body = JSON.stringify({ type, timestampMs: String(startedAt), organizationId: other, parameters });
    const one = coordinator.stampAgain(coordinator.root, 'ponder', body);
    pondered.length = 0;
    const before = coordinator.counts.appends.length;
    await Promise.all([...costly, one].map((request) => coordinator.send(request)));
    expect(pondered).toHaveLength(61);
    expect(pondered.indexOf('the other one')).toBeLessThan(30);
    expect(coordinator.counts.appends.length - before).toBeLessThan(30);
  });

  it('is decided for half a second; what is left of it goes into the next', async () => {
    const { store, coordinator } = await alone({ registry: testRegistry });
    const before = coordinator.counts.appends.length;
    const costly = Array.from({ length: 120 }, (_, number) =>
      coordinator.stamp(coordinator.root.key, 'ACTIVITY_TYPE_PONDER', { amount: String(number) }),
    );
    const answers = await asOneBatch(coordinator, store, costly);
    expect(answers.map(statusOf)).toEqual(costly.map(() => 'COMPLETED'));
    const [blocker, ...appends] = coordinator.counts.appends.slice(before);
    expect([blocker, appends.reduce((sum, count) => sum + count, 0)]).toEqual([1, 120]);
    // Seven milliseconds each, on any machine: 72 of them take half a second.
    expect(Math.max(...appends)).toBeLessThanOrEqual(72);
  });
});

describe('the same bytes', () => {
  it('are one activity, also while its append is on its way', async () => {
    const { store, coordinator, tag } = await alone();
    const request = tag('once');
    store.hold();
    const first = coordinator.send(request);
    await store.until(2);
    const rest = driven(
      coordinator,
      Array.from({ length: 10 }, () => request),
    );
    await rest.queued;
    store.release();
    const { activity } = await first;
    expect(activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    for (const answer of await rest.answers) expect(answer).toMatchObject({ value: { activity } });
    expect((await coordinator.events()).filter(({ type }) => type === 'UserTagCreated')).toHaveLength(1);
    expect(coordinator.counts.appends).toEqual([1]);
  });

  it('are one activity within one batch, and every answer comes', async () => {
    const { store, coordinator, tag } = await alone();
    const request = tag('once');
    const answers = await asOneBatch(
      coordinator,
      store,
      Array.from({ length: 5 }, () => request),
    );
    expect(answers.map(statusOf)).toEqual(Array.from({ length: 5 }, () => 'COMPLETED'));
    const ids = answers.map((one) => (one.status === 'fulfilled' ? one.value.activity.id : ''));
    expect(new Set(ids).size).toBe(1);
    expect((await coordinator.events()).filter(({ type }) => type === 'UserTagCreated')).toHaveLength(2);
  });

  it('are one activity with another stamp, of the same user or of another who could have asked', async () => {
    const { coordinator, tag } = await alone();
    const colleague = await coordinator.createUser('Colleague');
    await coordinator.createPolicy({ condition: 'true' });
    const request = tag('once');
    const first = await coordinator.send(request);
    const again = await coordinator.send(coordinator.stampAgain(colleague, request.path, request.body));
    expect(again.activity.id).toBe(first.activity.id);
    expect(again.activity.votes).toHaveLength(1);
  });

  it('are one activity after a restart, and after the read model has taken it over', async () => {
    const { store, coordinator, tag } = await alone();
    const request = tag('once');
    const { activity } = await coordinator.send(request);
    await coordinator.projected();
    await coordinator.send(tag('another'));
    expect((await coordinator.loader.load(organizationId)).recent.has(activity.fingerprint)).toBe(false);
    expect((await coordinator.send(request)).activity).toEqual(activity);

    const restarted = await started({ store });
    expect((await restarted.send(request)).activity).toEqual(activity);
    expect((await coordinator.events()).filter(({ type }) => type === 'UserTagCreated')).toHaveLength(2);
  });

  it('do not happen again where the row of their activity was lost', async () => {
    const { coordinator, tag } = await alone();
    const request = tag('once');
    await coordinator.send(request);
    await coordinator.projected();
    await coordinator.send(tag('another'));
    coordinator.projecting.rows.run('DELETE FROM activities');
    await expect(coordinator.send(request)).rejects.toThrow('an activity is missing whose request is known');
    expect((await coordinator.events()).filter(({ type }) => type === 'UserTagCreated')).toHaveLength(2);
  });

  it('are known from folded state alone as long as the read model has not seen them', async () => {
    const { coordinator, tag } = await alone({ readModels: false });
    const colleague = await coordinator.createUser('Colleague');
    const ann = await coordinator.createUser('Ann');
    await coordinator.createPolicy({ condition: 'true', consensus: 'approvers.count() >= 2' });
    const request = tag('once', colleague);
    const { activity } = await coordinator.send(request);
    expect(activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await coordinator.send(request)).activity).toEqual(activity);
    const approval = coordinator.stamp(ann.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', {
      fingerprint: activity.fingerprint,
    });
    expect((await coordinator.send(approval)).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('two coordinators on one store', () => {
  it('decide again after the other was first: one of two deletions wins', async () => {
    const { one, other, stores } = await together();
    const policyId = await one.createPolicy({ condition: 'true' });
    stores[0].hold();
    const late = one.send(one.stamp(one.root.key, deletePolicy, { policyId }));
    await stores[0].until(stores[0].asked.length + 1);
    await other.submit(other.root.key, deletePolicy, { policyId });
    stores[0].release();
    expect((await refusalOf(late)).code).toBe('NOT_FOUND');
    expect(one.counts.conflicts).toBe(1);
    const events = await one.events();
    expect(events.filter(({ type }) => type === 'PolicyDeleted')).toHaveLength(1);
    for (const { recorded, again } of redecide(events, one.registry)) expect(again).toEqual(recorded);
  });

  it('never act on a policy that was deleted meanwhile', async () => {
    const { one, other, stores } = await together();
    const ann = await one.createUser('Ann');
    const policyId = await one.createPolicy({ condition: "activity.resource == 'USER'" });
    const asked = stores[0].asked.length;
    stores[0].hold((name) => name === stream);
    const late = one.submit(ann.key, createTag, { userTagName: 'late', userIds: [] });
    await stores[0].until(asked + 1);
    await other.submit(other.root.key, deletePolicy, { policyId });
    stores[0].release();
    expect((await refusalOf(late)).code).toBe('PERMISSION_DENIED');
    expect((await one.events()).filter(({ type }) => type === 'UserTagCreated')).toEqual([]);
  });

  it('ask again what was refused on a state that the other has left behind', async () => {
    const { one, other, stores } = await together();
    const ann = await one.createUser('Ann');
    const create = one.stamp(one.root.key, createTag, { userTagName: 'tag', userIds: [] });
    const denied = one.stamp(ann.key, createTag, { userTagName: 'by Ann', userIds: [] });
    const asked = stores[0].asked.length;
    stores[0].hold((name) => name === stream);
    const blocker = one.submit(one.root.key, createTag, { userTagName: 'blocker', userIds: [] });
    await stores[0].until(asked + 1);
    const batch = driven(one, [create, denied]);
    await batch.queued;
    stores[0].release();
    stores[0].hold((name) => name === stream);
    await stores[0].until(asked + 2);
    await other.createPolicy({ condition: "activity.resource == 'USER'" });
    stores[0].release();
    await blocker;
    expect((await batch.answers).map(statusOf)).toEqual(['COMPLETED', 'COMPLETED']);
    expect(await one.events(denials)).toEqual([]);
  });

  it('make one activity of the same bytes', async () => {
    const { one, other } = await together();
    const request = one.stamp(one.root.key, createTag, { userTagName: 'once', userIds: [] });
    const answers = await Promise.all([one, other, one, other].map((coordinator) => coordinator.send(request)));
    expect(new Set(answers.map(({ activity }) => activity.id)).size).toBe(1);
    expect((await one.events()).filter(({ type }) => type === 'UserTagCreated')).toHaveLength(1);
  });

  it('serve a reader while an append that will lose is on its way', async () => {
    const { one, other, stores } = await together();
    const asked = stores[0].asked.length;
    stores[0].hold();
    const late = one.submit(one.root.key, createTag, { userTagName: 'late', userIds: [] });
    await stores[0].until(asked + 1);
    for (const userTagName of ['a', 'b', 'c'])
      await other.submit(other.root.key, createTag, { userTagName, userIds: [] });
    const reading = one.loader.load(organizationId).then(({ organization }) => organization.userTags.size);
    await reading.catch(() => undefined);
    stores[0].release();
    expect(await reading).toBe(3);
    expect((await late).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('do their work under steady conflict, and the stream is as if there had been one', async () => {
    const { one, other } = await together();
    const requests = Array.from({ length: 10 }, (_, number) => {
      const coordinator = number % 2 ? one : other;
      return coordinator.submit(coordinator.root.key, createTag, { userTagName: `tag ${number}`, userIds: [] });
    });
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual(
      Array.from({ length: 10 }, () => 'ACTIVITY_STATUS_COMPLETED'),
    );
    const events = await one.events();
    expect(events.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
    expect(events.filter(({ type }) => type === 'UserTagCreated')).toHaveLength(10);
  });

  it('get their turn beside one that writes all the time, also over a longer way to the store', async () => {
    const { one: busy, other: rare, stores } = await together();
    const { userId, key } = busy.root;
    let isOver = false;
    stores[0].overtake = () => new Promise((resolve) => setImmediate(resolve));
    // Ten of its appends take as long as one of these is on its way.
    stores[1].overtake = () => sleep(20);
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let turn = 0; !isOver; turn++) await busy.submit(key, renameUser, { userId, userName: `${writer} ${turn}` });
    });
    try {
      for (const userTagName of ['first', 'second']) {
        const { status } = await rare.submit(key, createTag, { userTagName, userIds: [] });
        expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
      }
    } finally {
      isOver = true;
      await Promise.all(writers);
    }
    expect((await busy.events()).reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
  });

  it('get through, with everything that waits, although the other is first a dozen times', async () => {
    const { one, other, stores } = await together();
    const ann = await one.createUser('Ann');
    await one.createPolicy({ condition: "activity.resource == 'USER'" });
    const asked = stores[0].typesAsked(stream).length;
    const tags = ['a', 'b', 'c'].map((name) =>
      one.stamp(ann.key, 'ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: `Ann ${name}` }),
    );
    let ahead = 0;
    stores[0].overtake = async (name) => {
      if (name === stream && ahead < 12) {
        await other.submit(other.root.key, createTag, { userTagName: `ahead ${ahead++}`, userIds: [] });
      }
    };
    const answers = await Promise.all(tags.map((request) => one.send(request)));
    expect(answers.map(({ activity }) => activity.status)).toEqual(tags.map(() => 'ACTIVITY_STATUS_COMPLETED'));
    expect(one.counts.conflicts).toBe(12);
    expect(stores[0].typesAsked(stream).length).toBeGreaterThanOrEqual(asked + 13);
    const events = await one.events();
    expect(events.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
    expect(events.filter(({ type }) => type === 'UserTagCreated')).toHaveLength(12);
    const names = events.flatMap(({ type, data }) =>
      type === 'UserUpdated' ? [(data as { userName?: string }).userName] : [],
    );
    expect(names.toSorted()).toEqual(['Ann a', 'Ann b', 'Ann c']);
    for (const { recorded, again } of redecide(events, one.registry)) expect(again).toEqual(recorded);
  });

  it('see what is recorded while the one that has lost reads the stream anew', async () => {
    const { one, other, stores } = await together();
    let ahead = 0;
    stores[0].overtake = async (name) => {
      if (name !== stream || ahead > 0) return;
      await other.createUserTag(`ahead ${ahead++}`);
      stores[0].holdReads();
    };
    const late = one.submit(one.root.key, createTag, { userTagName: 'late', userIds: [] });
    await until('a read is held', () => stores[0].heldReads > 0);
    await other.createUserTag(`ahead ${ahead++}`);
    stores[0].releaseReads();
    expect((await late).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(one.counts.conflicts).toBe(1);
  });

  it('give up when the other is first for too long, with nothing written, and succeed when asked again', async () => {
    const { one, other, stores } = await together({ patienceMs: 50 });
    const request = one.stamp(one.root.key, createTag, { userTagName: 'patient', userIds: [] });
    let ahead = 0;
    stores[0].overtake = async (name) => {
      if (name === stream) await other.createUserTag(`ahead ${ahead++}`);
    };
    const refusal = await refusalOf(one.send(request));
    expect([refusal.code, refusal.message]).toEqual([
      'ABORTED',
      `organization \`${organizationId}\` changed ${ahead} times while this was being decided; send the same request again`,
    ]);
    expect(one.counts.conflicts).toBe(ahead - 1);
    expect((await one.events()).filter(({ type }) => type === 'UserTagCreated')).toHaveLength(ahead);
    stores[0].overtake = () => Promise.resolve();
    expect((await one.send(request)).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('get another attempt when the first one took long, as it does in a process that has just started', async () => {
    const { one, other, stores } = await together({ patienceMs: 50 });
    let ahead = 0;
    stores[0].overtake = async (name) => {
      if (name !== stream || ahead > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
      await other.createUserTag(`ahead ${ahead++}`);
    };
    const late = await one.submit(one.root.key, createTag, { userTagName: 'late', userIds: [] });
    expect(late.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('are not blamed for the time that the store took', async () => {
    const { one, other, stores } = await together({ patienceMs: 50 });
    let ahead = 0;
    stores[0].overtake = async (name) => {
      if (name !== stream) return;
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      await other.createUserTag(`ahead ${ahead++}`);
    };
    const refusal = await refusalOf(one.submit(one.root.key, createTag, { userTagName: 'slow', userIds: [] }));
    expect([refusal.code, refusal.message]).toEqual([
      'UNAVAILABLE',
      expect.stringMatching(
        /^the event store took \d\.\d s, in which organization `.*` changed; send the same request/,
      ),
    ]);
  });
});

describe('a store that cannot be read', () => {
  it('refuses requests as unavailable until it can', async () => {
    const { store, tag } = await alone();
    const fresh = await started({ store });
    store.isUnreadable = true;
    expect((await refusalOf(fresh.send(tag('a')))).code).toBe('UNAVAILABLE');
    store.isUnreadable = false;
    expect((await fresh.send(tag('a'))).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  it('is not trusted when its chain is broken', async () => {
    const { store, coordinator, tag } = await alone();
    await coordinator.createUserTag('a tag');
    store.tamper = ({ revision, ...event }) =>
      revision === 5 ? { ...event, revision, data: { tagId: 'forged', tagName: 'forged' } } : { ...event, revision };
    const fresh = await started({ store });
    await expect(fresh.send(tag('b'))).rejects.toThrow(/the event at revision 5 of stream .* cannot be read/);
    expect(store.typesAsked(stream)).toHaveLength(3);
  });
});

describe('prepare', () => {
  const counting = () => {
    const calls: string[] = [];
    const prepare: Partial<PreparePorts> = {
      verifyRegistration(input) {
        calls.push(input.attestation.credentialId);
        return verifyRegistration(input);
      },
    };
    return { calls, prepare };
  };
  const passkey = new SeededPasskey('phone');
  const registration = (userId: string) => ({ userId, authenticators: [passkey.register('phone')] });

  it('runs once, however often the append is tried', async () => {
    const { calls, prepare } = counting();
    const { store, coordinator } = await alone({ prepare });
    for (const number of [1, 2, 3]) store.faults.set(number, 'wrong-revision');
    const { root } = coordinator;
    const { status } = await coordinator.submit(root.key, createPasskeys, registration(root.userId));
    expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(coordinator.counts.conflicts).toBe(3);
    expect(calls).toEqual([passkey.credentialId]);
  });

  it('comes between two looks at one decision, which is asked of policies once as long as nothing else is recorded', async () => {
    const meanwhile: (() => Promise<unknown>)[] = [];
    const prepare: Partial<PreparePorts> = {
      async verifyRegistration(input) {
        await meanwhile.shift()?.();
        return verifyRegistration(input);
      },
    };
    const { coordinator } = await alone({ prepare });
    const ann = await coordinator.createUser('Ann');
    await coordinator.createPolicy({ condition: `activity.type == '${createPasskeys}'` });
    // 270 000 steps: too many to be asked twice.
    const policies = Array.from({ length: 9 }, (_, index) => ({
      policyName: `costly ${index}`,
      effect: 'EFFECT_DENY',
      condition: `${index}==9${'||1==2'.repeat(1_900)}`,
      notes: '',
    }));
    await coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_CREATE_POLICIES', { policies });
    const request = coordinator.stamp(ann.key, createPasskeys, registration(ann.userId));

    meanwhile.push(() => coordinator.createUserTag('meanwhile'));
    expect(await refusalOf(coordinator.send(request))).toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/changed while this was being decided.*send the same request again/s) as string,
    });
    // A while later, as `prepare` may take one: it is decided by the time at which it was.
    meanwhile.push(() => Promise.resolve(coordinator.clock.advance(3_000)));
    const { meter, record } = await coordinator.execute(request);
    expect(record?.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(meter.spent).toBeGreaterThan(250_000);
    expect(meter.spent).toBeLessThanOrEqual(mainThreadSteps);
    const [made] = redecide(await coordinator.events(), coordinator.registry).slice(-1);
    expect(made).toMatchObject({ outcomeAgain: 'allow', recorded: made!.again });
    const { metadata } = (await coordinator.events()).at(-1)!;
    expect(coordinator.clock.now() - (metadata as EventMetadata).at).toBe(3_000);
  });

  it('is followed by another decision where something was recorded meanwhile, with what is left of the meter', async () => {
    const meanwhile: (() => Promise<unknown>)[] = [];
    const prepare: Partial<PreparePorts> = {
      async verifyRegistration(input) {
        await meanwhile.shift()?.();
        return verifyRegistration(input);
      },
    };
    const { coordinator } = await alone({ prepare });
    const ann = await coordinator.createUser('Ann');
    const policyId = await coordinator.createPolicy({ condition: `activity.type == '${createPasskeys}'` });
    const request = () => coordinator.stamp(ann.key, createPasskeys, registration(ann.userId));
    meanwhile.push(() => coordinator.createUserTag('meanwhile'));
    const { record } = await coordinator.execute(request());
    expect(record?.status).toBe('ACTIVITY_STATUS_COMPLETED');
    const { authenticators } = (await coordinator.loader.load(organizationId)).organization.users.get(ann.userId)!;
    await coordinator.submit(ann.key, 'ACTIVITY_TYPE_DELETE_AUTHENTICATORS', {
      userId: ann.userId,
      authenticatorIds: authenticators.map(({ authenticatorId }) => authenticatorId),
    });
    const deny = { effect: 'EFFECT_DENY', condition: `activity.type == '${createPasskeys}'` } as const;
    meanwhile.push(() =>
      Promise.all([
        coordinator.submit(coordinator.root.key, deletePolicy, { policyId }),
        coordinator.createPolicy(deny),
      ]),
    );
    expect((await refusalOf(coordinator.send(request()))).code).toBe('PERMISSION_DENIED');
  });

  it('does not run for what is denied, nor before the last vote that is needed', async () => {
    const { calls, prepare } = counting();
    const { coordinator } = await alone({ prepare });
    const ann = await coordinator.createUser('Ann');
    const bob = await coordinator.createUser('Bob');
    const denied = coordinator.submit(ann.key, createPasskeys, registration(bob.userId));
    expect((await refusalOf(denied)).code).toBe('PERMISSION_DENIED');

    await coordinator.createPolicy({ consensus: 'approvers.count() >= 2' });
    const { fingerprint, status } = await coordinator.submit(ann.key, createPasskeys, registration(bob.userId));
    expect([status, calls]).toEqual(['ACTIVITY_STATUS_CONSENSUS_NEEDED', []]);
    const voted = await coordinator.submit(bob.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    expect([voted.status, calls]).toEqual(['ACTIVITY_STATUS_COMPLETED', [passkey.credentialId]]);
  });

  it('refuses a submit, and fails an activity that was voted on', async () => {
    const refusing: Partial<PreparePorts> = {
      verifyRegistration: () => Promise.reject(new CoordinatorError('INVALID_ARGUMENT', 'no such passkey')),
    };
    const { coordinator } = await alone({ prepare: refusing });
    const { root } = coordinator;
    const refusal = await refusalOf(coordinator.submit(root.key, createPasskeys, registration(root.userId)));
    expect([refusal.code, refusal.message]).toEqual(['INVALID_ARGUMENT', expect.stringContaining('no such passkey')]);
    expect(await coordinator.events()).toHaveLength(4);

    const ann = await coordinator.createUser('Ann');
    await coordinator.createPolicy({ consensus: 'approvers.count() >= 2' });
    const { fingerprint } = await coordinator.submit(ann.key, createPasskeys, registration(root.userId));
    const voted = await coordinator.submit(root.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    expect([voted.status, voted.failure]).toEqual([
      'ACTIVITY_STATUS_FAILED',
      { code: 3, message: expect.stringContaining('no such passkey') as string, details: [] },
    ]);
  });

  it('is not disturbed by the fate of the batch that asked for it', async () => {
    const { calls, prepare } = counting();
    const { store, coordinator, tag } = await alone({ prepare });
    const { root } = coordinator;
    const passkeys = coordinator.stamp(root.key, createPasskeys, registration(root.userId));
    store.faults.set(store.asked.length + 1, 'unavailable-before');
    store.hold();
    const blocker = coordinator.send(tag('blocker'));
    await store.until(2);
    const batch = driven(coordinator, [passkeys, tag('lost')]);
    await batch.queued;
    store.release();
    // The batch is on its way, and what it has asked for is ready and waits again, before the batch fails.
    store.hold();
    await blocker;
    await store.until(3);
    // It was asked once, sent away to prepare, and has come back: the driver has been given it twice by then.
    await until('it has prepared', () => calls.length > 0);
    await settled();
    store.release();
    expect((await batch.answers).map(statusOf)).toEqual(['COMPLETED', 'UNAVAILABLE']);
    expect((await coordinator.events()).filter(({ type }) => type === 'AuthenticatorCreated')).toHaveLength(1);
  });

  it('of something thrown that is no refusal fails the request and leaves nothing', async () => {
    const broken: Partial<PreparePorts> = { verifyRegistration: () => Promise.reject(new Error('a defect')) };
    const { coordinator } = await alone({ prepare: broken });
    const { root } = coordinator;
    await expect(coordinator.submit(root.key, createPasskeys, registration(root.userId))).rejects.toThrow('a defect');
    expect(await coordinator.events()).toHaveLength(4);
    await coordinator.createUserTag('works on');
  });
});

describe('afterwards', () => {
  const tell = 'ACTIVITY_TYPE_TELL';
  async function telling() {
    const kept = new CapturedMessages();
    const delivery = new RetryingDelivery({ email: kept, sms: kept }, () => undefined);
    const { store, coordinator } = await alone({ registry: testRegistry, prepare: { delivery } });
    const { root } = coordinator;
    return {
      store,
      coordinator,
      told: () => kept.messages.map(({ text }) => text),
      /** Everything that was handed over so far has reached the carrier. */
      arrived: async () => {
        await until('it has all arrived', () => delivery.open === 0);
      },
      ask: (amount: string, memo?: string, by: Member = root) =>
        coordinator.stamp(by.key, tell, { amount, ...(memo === undefined ? {} : { memo }) }),
    };
  }

  it('runs when the events are recorded and not before, once for the same bytes', async () => {
    const { store, coordinator, told, arrived, ask } = await telling();
    const request = ask('1');
    store.hold();
    const answers = Promise.all([coordinator.send(request), coordinator.send(request)]);
    await store.until(2);
    await soon();
    expect(told()).toEqual([]);
    store.release();
    const activities = (await answers).map(({ activity }) => activity.id);
    await coordinator.send(request);
    await arrived();
    expect([new Set(activities).size, told()]).toEqual([1, ['1']]);
  });

  it('does not run for what was not recorded, and runs when that is tried again', async () => {
    const { store, coordinator, told, arrived, ask } = await telling();
    const request = ask('1');
    store.faults.set(store.asked.length, 'unavailable-before');
    expect((await refusalOf(coordinator.send(request))).code).toBe('UNAVAILABLE');
    await arrived();
    expect(told()).toEqual([]);
    store.faults.set(store.asked.length, 'wrong-revision');
    await coordinator.send(request);
    await arrived();
    expect(told()).toEqual(['1']);
  });

  it('does not run for what failed', async () => {
    const { coordinator, told, arrived, ask } = await telling();
    expect((await refusalOf(coordinator.send(ask('1', 'fail')))).message).toBe('told to fail');
    await arrived();
    expect(told()).toEqual([]);
  });

  it('runs for an activity that was voted on, when the last vote is recorded', async () => {
    const { coordinator, told, arrived, ask } = await telling();
    const ann = await coordinator.createUser('Ann');
    await coordinator.createPolicy({ consensus: 'approvers.count() >= 2' });
    const { fingerprint } = (await coordinator.send(ask('1', undefined, ann))).activity;
    await arrived();
    expect(told()).toEqual([]);
    await coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    await arrived();
    expect(told()).toEqual(['1']);
  });

  it('tells the caller when it could not be done; what was decided stands, and the others are not disturbed', async () => {
    const { store, coordinator, told, arrived, ask } = await telling();
    const requests = [ask('1', 'nobody'), ask('2')];
    expect((await asOneBatch(coordinator, store, requests)).map(statusOf)).toEqual(['INVALID_ARGUMENT', 'COMPLETED']);
    await arrived();
    expect(told()).toEqual(['2']);
    expect((await coordinator.send(requests[0]!)).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('a denial', () => {
  it('is an answer with every policy outcome, no activity, and a record of who tried what', async () => {
    const { coordinator, tag } = await alone();
    const ann = await coordinator.createUser('Ann');
    const policyId = await coordinator.createPolicy({ condition: "activity.resource == 'POLICY'" });
    const before = await coordinator.events();
    const request = tag('denied', ann);
    const refusal = await refusalOf(coordinator.send(request));
    const detail = {
      '@type': 'type.googleapis.com/errors.v1.PolicyEnginePermissionError',
      message: 'No policies evaluated to outcome: Allow',
      policyEvaluations: [
        {
          policyId,
          policyName: 'policy 1',
          outcome: 'OUTCOME_DENY_IMPLICIT',
          clause: { name: 'condition', text: "activity.resource == 'POLICY'", outcome: 'false' },
        },
      ],
    };
    expect(await coordinator.events()).toEqual(before);

    const recorded = await coordinator.events(denials);
    const { id: denialId } = recorded[0]!;
    expect([refusal.code, refusal.details]).toEqual(['PERMISSION_DENIED', [{ ...detail, denialId }]]);
    expect(recorded.map(({ type, data }) => ({ type, data }))).toEqual([
      {
        type: 'ActivityDenied',
        data: {
          type: createTag,
          userId: ann.userId,
          revision: before.length - 1,
          rules: 1,
          fingerprint: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string,
          timestampMs: (JSON.parse(request.body) as { timestampMs: string }).timestampMs,
          message: request.body,
          scheme: 'SIGNATURE_SCHEME_TK_API_P256',
          publicKey: ann.key.publicKey,
          signature: expect.stringMatching(/^[0-9a-f]+$/) as string,
          reason: refusal.message,
          details: [detail],
        },
      },
    ]);
    // Recorded nowhere as an activity, so that the same bytes are asked anew.
    expect((await refusalOf(coordinator.send(request))).code).toBe('PERMISSION_DENIED');
    await coordinator.createPolicy({ condition: "activity.resource == 'USER'" });
    expect((await coordinator.send(request)).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await correlations(coordinator)).not.toContain((recorded[0]!.metadata as EventMetadata).$correlationId);
  });

  it('is recorded one by one up to 60 a minute, and counted beyond', async () => {
    const { coordinator, tag } = await alone();
    const ann = await coordinator.createUser('Ann');
    const deny = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, number) => refusalOf(coordinator.send(tag(`tag ${number}`, ann)))));
    expect(new Set((await deny(63)).map(({ code }) => code))).toEqual(new Set(['PERMISSION_DENIED']));
    expect(await coordinator.events(denials)).toHaveLength(60);
    coordinator.clock.advance('59s');
    await deny(1);
    expect(await coordinator.events(denials)).toHaveLength(60);
    coordinator.clock.advance('1s');
    await deny(2);
    const recorded = await coordinator.events(denials);
    expect(recorded).toHaveLength(62);
    expect(recorded.map(({ data }) => (data as { omittedBefore?: number }).omittedBefore).slice(59)).toEqual([
      undefined,
      4,
      undefined,
    ]);
  });

  it('continues the chain of its stream over restarts, and beside another coordinator', async () => {
    const { one, other, stores } = await together();
    const ann = await one.createUser('Ann');
    const deny = (coordinator: BareCoordinator) =>
      refusalOf(coordinator.submit(ann.key, createTag, { userTagName: 'denied', userIds: [] }));
    await deny(one);
    await Promise.all([deny(other), deny(one), deny(one)]);
    await deny(other);
    const restarted = await started({ store: stores[0].inner, clock: one.clock });
    await deny(restarted);
    const recorded = await one.events(denials);
    expect(recorded.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(recorded.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
  });

  it('of a vote is recorded too, and the activity stays as it is', async () => {
    const { coordinator } = await alone();
    const ann = await coordinator.createUser('Ann');
    const bob = await coordinator.createUser('Bob');
    const only = `approvers.any(user, user.id == '${ann.userId}') && approvers.any(user, user.id == '${coordinator.root.userId}')`;
    await coordinator.createPolicy({ consensus: only });
    const { fingerprint, id } = await coordinator.submit(ann.key, createTag, { userTagName: 'tag', userIds: [] });
    const vote = coordinator.submit(bob.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    expect((await refusalOf(vote)).code).toBe('PERMISSION_DENIED');
    expect(await coordinator.events(denials)).toHaveLength(1);
    const { organization } = await coordinator.loader.load(organizationId);
    expect(organization.openActivities.get(id)?.votes).toHaveLength(1);
  });

  it('does not stay unrecorded in silence: when the record fails, the request fails as unavailable', async () => {
    const { store, coordinator, tag } = await alone();
    const ann = await coordinator.createUser('Ann');
    store.failTwice(store.asked.length, 'unavailable-before');
    expect((await refusalOf(coordinator.send(tag('denied', ann)))).code).toBe('UNAVAILABLE');
    expect((await refusalOf(coordinator.send(tag('denied', ann)))).code).toBe('PERMISSION_DENIED');
    expect(await coordinator.events(denials)).toHaveLength(1);
  });
});

describe('drain', () => {
  it('resolves once everything accepted has a response', async () => {
    const { store, coordinator, tag } = await alone();
    store.hold();
    const answered: string[] = [];
    const send = (name: string) => coordinator.send(tag(name)).then(() => answered.push(name));
    const sent = [send('a')];
    await store.until(2);
    // Waits behind the append that is held.
    sent.push(send('b'));
    await until('both are accepted', () => coordinator.counts.driven >= 2);
    const drained = coordinator.driver.drain().then(() => answered.push('drained'));
    await settled();
    expect(answered).toEqual([]);
    store.release();
    await Promise.all([...sent, drained]);
    expect(store.typesAsked(stream)).toHaveLength(3);
  });
});
