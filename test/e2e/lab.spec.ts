import type { PartProofShape, ProofShape } from '../../src/read-models/explanations.js';
import {
  ApiError,
  startCoordinator,
  type StampingClient,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { activities } from '../../src/activities/index.js';
import { submittersOf } from '../../src/decide/submitters.js';
import { stampBody } from '../../src/stamps/sign.js';
import { exchange, refusal } from './exchange.js';
import { furnish, sampleSettings, submitSamples } from './samples.js';

/** What the lab answers about decisions, to whom, and that asking changes nothing. */

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
let treasury: string;
let policyId: string;

interface Explained {
  readonly proof?: ProofShape;
  readonly notExplained?: string;
}

beforeAll(async () => {
  coordinator = await startCoordinator();
  treasury = await coordinator.createTag('treasury');
  alice = await coordinator.createUser('Alice', { userTags: [treasury] });
  bob = await coordinator.createUser('Bob', { userTags: [treasury] });
  policyId = await coordinator.createPolicy({
    policyName: 'two make tags',
    condition: "activity.kind == 'CREATE_USER_TAG' && requester.tags.contains('" + treasury + "')",
    consensus: `approvers.count() >= 2 && approvers.all(user, user.tags.contains('${treasury}'))`,
  });
  await coordinator.createPolicy({
    policyName: 'not while asleep',
    effect: 'EFFECT_DENY',
    condition: "activity.kind == 'CREATE_WALLET'",
  });
});
afterAll(() => coordinator.close());

const newTag = (client: StampingClient, userTagName: string) =>
  client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
const explain = (activityId: string, client: StampingClient = coordinator.client) =>
  client.query<Explained>('explain_activity', { activityId });
const inTreasury = ({ userId }: TestUser, isIn: boolean) =>
  coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_TAG', {
    userTagId: treasury,
    addUserIds: isIn ? [userId] : [],
    removeUserIds: isIn ? [] : [userId],
  });

/** Whose event set what a part of a clause was read from. */
const setters = ({ policies }: PartProofShape) =>
  policies.flatMap(({ clauses }) => clauses.flatMap(({ parts }) => parts.flatMap(({ from = [] }) => from)));

describe('explain_activity', () => {
  test('of an activity that waits: how it would be decided now, from which events, and what would let it pass', async () => {
    const { id } = await newTag(alice.client, 'waits');
    const { proof } = await explain(id);
    expect(proof).toMatchObject({ outcome: 'consensus-needed', decidedBy: 'none' });
    expect(proof!.text).toBe('It waits for votes: “two make tags”.');
    const [part] = proof!.parts;
    const policy = part!.policies.find((one) => one.policyId === policyId)!;
    expect(policy).toMatchObject({ outcome: 'OUTCOME_REQUIRES_CONSENSUS', isAsked: true, isDeciding: true });
    expect(policy.clauses.map(({ clause, value, isMet }) => [clause, value, isMet])).toEqual([
      ['condition', 'true', undefined],
      ['consensus', 'false', false],
    ]);
    expect(policy.clauses[1]!.parts.map(({ depth, text, value }) => [depth, text, value])).toEqual([
      [0, `approvers.count() >= 2 && approvers.all(user, user.tags.contains('${treasury}'))`, 'false'],
      [1, 'approvers.count() >= 2', 'false'],
      [2, 'approvers.count()', '1'],
      [3, 'approvers', expect.stringContaining(alice.userId)],
      [1, `approvers.all(user, user.tags.contains('${treasury}'))`, 'true'],
      [2, 'approvers', expect.stringContaining(alice.userId)],
      [2, `user.tags.contains('${treasury}')`, 'true'],
      [3, 'user.tags', `['${treasury}']`],
    ]);

    const events = await coordinator.events();
    for (const { setBy } of [...setters(part!), policy]) {
      if (!setBy) continue;
      expect(events[Number(setBy.revision)]).toMatchObject({ id: setBy.eventId, type: setBy.type });
    }
    const tags = setters(part!).find(({ of, setBy }) => of === 'user' && setBy?.type === 'UserCreated');
    expect(tags).toMatchObject({ id: alice.userId, name: 'Alice' });

    const told = (flips: ProofShape['flips']) =>
      flips.map(({ outcome, changes }) => `${outcome}: ${changes.map(({ text }) => text).join(', ')}`);
    expect(told(proof!.flips)).toEqual([
      'allow: “Root user” approves',
      'allow: “Bob” approves',
      'allow: “Root user” asks for it',
      'allow: policy “two make tags” has no consensus',
      'allow: “Alice” is in the root quorum',
    ]);

    // It goes on waiting: only the root quorum could let it pass now.
    await inTreasury(bob, false);
    const now = (await explain(id)).proof!;
    expect(now.outcome).toBe('consensus-needed');
    expect(told(now.flips)).toContain('allow: “Root user” approves');
    await inTreasury(bob, true);
  });

  test('of one that is decided: by what was there then, with the events of its votes', async () => {
    const waiting = await newTag(alice.client, 'decided');
    const { fingerprint, id } = waiting;
    await bob.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    const { proof } = await explain(id);
    expect(proof).toMatchObject({
      outcome: 'allow',
      decidedBy: 'policy',
      text: 'Allowed by “two make tags”.',
      flips: [],
    });
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyName: 'renamed' });
    expect((await explain(id)).proof).toEqual(proof);
    const votes = setters(proof!.parts[0]!).filter(({ of }) => of === 'vote');
    expect(votes.map(({ name, setBy }) => [name, setBy?.type])).toContainEqual(['Bob', 'ActivityApproved']);
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyName: 'two make tags' });
  });

  test('is for the root quorum, and for those who may vote while the activity waits', async () => {
    const { id, fingerprint } = await newTag(alice.client, 'not told');
    expect((await explain(id, bob.client)).proof).toMatchObject({ outcome: 'consensus-needed' });
    await bob.client.reject(fingerprint);
    expect(await refusal(explain(id, bob.client))).toMatchObject({ status: 403 });
    const unknown = await refusal(explain(alice.userId));
    expect(unknown).toMatchObject({
      status: 404,
      message: `no activity \`${alice.userId}\` in organization \`${coordinator.organizationId}\``,
    });
  });

  test('of what the root quorum decided: that no policy was asked', async () => {
    const { id } = await newTag(coordinator.client, 'by the root');
    const { proof } = await explain(id);
    expect(proof).toMatchObject({
      outcome: 'allow',
      decidedBy: 'root-quorum',
      parts: [],
      rootQuorum: { threshold: 1, isMet: true, setBy: { type: 'RootQuorumUpdated' } },
    });
  });
});

interface Tried {
  readonly outcome: string;
  readonly policyEvaluations: readonly { readonly policyId: string; readonly policyName?: string }[];
  readonly refusal?: { readonly code: string; readonly message: string };
  readonly needsWorld?: true;
  readonly waitsFor?: { readonly text: string };
  readonly proof?: ProofShape;
}

describe('dry_run', () => {
  const tried = (client: StampingClient, type: string, parameters: object, more: object = {}, at = coordinator) =>
    client.query<Tried>('dry_run', { timestampMs: String(at.clock.now()), activity: { type, parameters }, ...more });

  test('comes to what the submit comes to, for a sample of every verb, and leaves nothing behind', async () => {
    const world = await startCoordinator({ settings: sampleSettings });
    const furnished = await furnish(world);
    const votesOrGuests = activities.filter((one) => one.kind === 'vote' || submittersOf(one).is === 'invited');
    const skipped = new Set<string>(votesOrGuests.map(({ type }) => type));
    const seen = new Map<string, number>();
    // A sample is an endpoint of webhooks: how the deliveries to it end is recorded whenever they do.
    const recorded = async () =>
      (await world.recorded()).filter(({ stream }) => !stream.startsWith('webhook-deliveries-')).length;
    for (const [type, parameters] of Object.entries(submitSamples(furnished) as Record<string, object>)) {
      if (skipped.has(type)) {
        expect(await refusal(tried(world.client, type, parameters, {}, world))).toMatchObject({ status: 400 });
        continue;
      }
      for (const client of [furnished.alice.client, world.client]) {
        const before = await recorded();
        const { length: sent } = world.messages();
        const dry = await tried(client, type, parameters, {}, world).catch((error: unknown) => error);
        expect(await recorded()).toBe(before);
        expect(world.messages()).toHaveLength(sent);
        const real = await client.submit(type, parameters).catch((error: unknown) => error);
        if (dry instanceof ApiError) {
          expect([type, real]).toEqual([type, expect.any(ApiError)]);
          expect([type, dry.status]).toEqual([type, (real as ApiError).status]);
          seen.set('error', (seen.get('error') ?? 0) + 1);
          continue;
        }
        const { outcome, needsWorld, refusal: why } = dry as Tried;
        const came =
          real instanceof ApiError ? (real.status === 403 ? 'denied' : 'refused') : (real as { status: string }).status;
        const said = outcome.startsWith('deny')
          ? ['denied']
          : why
            ? ['refused']
            : outcome === 'consensus-needed'
              ? ['ACTIVITY_STATUS_CONSENSUS_NEEDED']
              : ['ACTIVITY_STATUS_COMPLETED', ...(needsWorld ? ['refused', 'ACTIVITY_STATUS_FAILED'] : [])];
        expect([type, said]).toEqual([type, expect.arrayContaining([came])]);
        seen.set(said[0]!, (seen.get(said[0]!) ?? 0) + 1);
        if (needsWorld) seen.set('world', (seen.get('world') ?? 0) + 1);
      }
    }
    await world.close();
    for (const kind of ['denied', 'ACTIVITY_STATUS_COMPLETED', 'world'])
      expect([kind, seen.get(kind)! > 5]).toEqual([kind, true]);
  });

  test('tells what a denial would, what it would wait for, and proves it to the root quorum only', async () => {
    const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
    const parameters = { userTagName: 'tried', userIds: [] };
    const waits = await tried(alice.client, type, parameters);
    expect(waits).toMatchObject({
      outcome: 'consensus-needed',
      waitsFor: { text: expect.stringMatching(/Bob/) as string },
    });
    const carol = await coordinator.createUser('Carol');
    const denied = await tried(carol.client, type, parameters);
    const { details } = (await refusal(carol.client.submit(type, parameters))) as { details: readonly unknown[] };
    expect(denied).toMatchObject({ outcome: 'deny-implicit' });
    expect(details[0]).toMatchObject({ policyEvaluations: denied.policyEvaluations });
    expect(denied.policyEvaluations.some(({ policyName }) => policyName === 'two make tags')).toBe(true);

    expect(await refusal(tried(carol.client, type, parameters, { withProof: true }))).toMatchObject({ status: 403 });
    const { outcome, proof } = await tried(coordinator.client, type, parameters, { withProof: true });
    expect([outcome, proof!.outcome, proof!.decidedBy]).toEqual(['allow', 'allow', 'root-quorum']);
    const taken = await tried(coordinator.client, type, { userTagName: 'treasury', userIds: [] });
    expect(taken).toMatchObject({
      outcome: 'allow',
      refusal: { message: expect.stringMatching(/must be unique/) as string },
    });
  });

  test('of what only a member of the root quorum may change is denied, whatever policies allow, as the submit is', async () => {
    const dora = await coordinator.createUser('Dora');
    await coordinator.createPolicy({
      policyName: 'Dora names people',
      condition: `activity.resource == 'USER' && requester.id == '${dora.userId}'`,
    });
    const type = 'ACTIVITY_TYPE_UPDATE_USER_EMAIL';
    const parameters = { userId: coordinator.root.userId, userEmail: 'dora@example.com' };
    const { outcome, refusal: why } = await tried(dora.client, type, parameters);
    expect(outcome).toBe('deny-implicit');
    const { status, message } = await refusal(dora.client.submit(type, parameters));
    expect([status, why!.message]).toEqual([403, `${type}: ${message}`]);
    expect(await tried(dora.client, type, { ...parameters, userId: bob.userId })).toMatchObject({ outcome: 'allow' });
  });

  test('is no submit, and a submit is no dry run: neither endpoint takes the other’s body', async () => {
    const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
    const parameters = { userTagName: 'either', userIds: [] };
    const { organizationId } = coordinator;
    const timestampMs = String(coordinator.clock.now());
    const dry = JSON.stringify({ organizationId, timestampMs, activity: { type, parameters } });
    const real = alice.client.submitBody(type, parameters);
    const stamped = (body: string) => {
      const { headerName, headerValue } = stampBody(body, alice.key);
      return { 'content-type': 'application/json', [headerName]: headerValue };
    };
    const post = (path: string, body: string) =>
      exchange(`${coordinator.url}/public/v1/${path}`, {
        method: 'POST',
        headers: stamped(body),
        body,
      });
    const before = await coordinator.events();
    for (const path of ['submit/create_user_tag', 'submit/approve_activity']) {
      expect(await post(path, dry)).toMatchObject({ status: 400 });
    }
    expect(await post('query/dry_run', real)).toMatchObject({ status: 400 });
    expect(await post('query/dry_run', dry)).toMatchObject({ status: 200 });
    expect(await coordinator.events()).toEqual(before);

    // A read-only session submits nothing.
    const { result } = await alice.client.submit('ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {});
    const { session } = result['createReadOnlySessionResult'] as { readonly session: string };
    const headers = { 'content-type': 'application/json', 'x-session': session };
    const bySession = await exchange(`${coordinator.url}/public/v1/query/dry_run`, {
      method: 'POST',
      headers,
      body: dry,
    });
    expect(bySession).toMatchObject({ status: 403 });
    const stale = { timestampMs: '1' };
    expect(await refusal(tried(alice.client, type, parameters, stale))).toMatchObject({ status: 400 });
  });
});
