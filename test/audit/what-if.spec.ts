import fc from 'fast-check';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { EventStore } from '../../src/ledger/event-store.js';
import { ApiError } from '../../src/client/stamping-client.js';
import { readDraft } from '../../src/audit/simulate/parse-draft.js';
import { whatIf } from '../../src/audit/simulate/what-if.js';
import type { Otherwise, WhatIf } from '../../src/audit/simulate/what-if-report.js';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { storeOf } from './store-of.js';
import { isLong } from '../long.js';

const registry = buildRegistry(activities);
const tag = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const wallet = 'ACTIVITY_TYPE_CREATE_WALLET';

const drafted = (plain: object) => readDraft(plain, registry.policyEnvironment);

describe('a draft over a history', () => {
  let coordinator: TestCoordinator;
  let store: EventStore;
  let alice: TestUser;
  let bob: TestUser;
  let waitingId: string;
  /** Number of events that found the organization. */
  let founding: number;

  beforeAll(async () => {
    coordinator = await startCoordinator({ seed: 'what if' });
    const { client, clock } = coordinator;
    founding = (await coordinator.events()).length;
    alice = await coordinator.createUser('Alice');
    bob = await coordinator.createUser('Bob');
    const policyId = await coordinator.createPolicy({
      policyName: 'two make wallets',
      condition: "activity.kind == 'CREATE_WALLET'",
      consensus: 'approvers.count() >= 2',
    });
    clock.advance('1m');
    await expect(alice.client.submit(tag, { userTagName: 'Treasury', userIds: [] })).rejects.toThrow();
    clock.advance('1m');
    await client.submit(tag, { userTagName: 'Treasury', userIds: [] });
    clock.advance('1m');
    const { fingerprint } = await alice.client.submit(wallet, { walletName: 'Vault', accounts: [] });
    clock.advance('1m');
    await bob.client.approve(fingerprint);
    clock.advance('1m');
    ({ id: waitingId } = await bob.client.submit(wallet, { walletName: 'Other', accounts: [] }));
    await client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyConsensus: 'approvers.count() >= 4' });
    store = await storeOf(await coordinator.recorded());
  });
  afterAll(() => coordinator.close());

  const asked = (plain: object, from?: number): Promise<WhatIf> =>
    whatIf(store, {
      organizationId: coordinator.organizationId,
      registry,
      draft: drafted(plain),
      now: coordinator.clock.now(),
      ...(from === undefined ? {} : { from }),
    });
  const told = ({ divergences }: WhatIf) =>
    divergences.map(({ kind, isFirst, userName, is }: Otherwise) => [kind, isFirst, userName, is.slice(0, 40)]);

  test('says what would have been allowed, and what follows from that', async () => {
    const found = await asked({
      policies: [{ policyName: 'tags', effect: 'EFFECT_ALLOW', condition: "activity.kind == 'CREATE_USER_TAG'" }],
    });
    expect(told(found)).toEqual([
      ['newly-allowed', true, 'Alice', 'done'],
      // Nothing is wrong with it but that Alice has taken the name.
      ['otherwise', false, 'Root user', expect.stringMatching(/^refused: INVALID_ARGUMENT/)],
    ]);
    expect(found.divergences[0]!.because).toEqual(["policy 'tags' not there → OUTCOME_ALLOW"]);
    expect(found.counts).toMatchObject({ 'newly-allowed': 1, 'newly-denied': 0, otherwise: 1 });
    expect(found.differences).toContain("policy 'tags' was created");
  });

  test('says what would have waited for longer, and what has another prospect in the end', async () => {
    const found = await asked({
      changedPolicies: [{ policy: 'two make wallets', consensus: 'approvers.count() >= 3' }],
    });
    expect(told(found)).toEqual([['now-waits', true, 'Bob', 'approved; more votes are needed']]);
    expect(found.waiting).toMatchObject([{ was: 'not-there', is: 'needs-votes' }]);
    // The draft stays, whatever the history does to the policy later.
    expect(found.differences).toContain(
      "policy 'two make wallets' was changed: consensus 'approvers.count() >= 4' → 'approvers.count() >= 3'",
    );
    expect((await asked({ withoutPolicies: ['two make wallets'] })).waiting).toEqual([
      { activityId: waitingId, activityType: wallet, was: 'needs-votes', is: 'not-there' },
    ]);
  });

  test('lets a removed user ask for nothing', async () => {
    const found = await asked({ withoutUsers: ['Bob'] });
    expect(told(found).map(([kind, isFirst, userName]) => [kind, isFirst, userName])).toEqual([
      ['otherwise', true, 'Bob'],
      ['otherwise', true, 'Bob'],
    ]);
    expect(found.waiting.map(({ was, is }) => [was, is])).toEqual(
      expect.arrayContaining([
        ['needs-votes', 'not-there'],
        // No policy lets it pass, and the root quorum may.
        ['not-there', 'needs-votes'],
      ]),
    );
  });

  test('takes another quorum as soon as its members are there', async () => {
    const found = await asked({ rootQuorum: { threshold: 2, users: [coordinator.root.userId, 'Bob'] } });
    // Whatever the root user did alone once there is Bob.
    expect(found.divergences.every(({ isFirst }) => isFirst)).toBe(false);
    expect(found.counts['now-waits']).toBeGreaterThan(1);
    expect(found.neverHeld).toEqual([]);
    expect((await asked({ rootQuorum: { threshold: 1, users: ['Nobody'] } })).neverHeld).toEqual([
      'a root quorum of 1 of `Nobody`',
    ]);
  });

  test('gives a tag to whom it says, and holds from a revision on if asked to', async () => {
    const policy = {
      policyName: 'treasury',
      effect: 'EFFECT_ALLOW',
      consensus: 'approvers.any(user, user.tags.count() > 0)',
    };
    const both = { policies: [policy], userTags: [{ tag: 'Treasury', users: ['Alice'] }] };
    const found = await asked(both);
    expect(told(found)).toEqual([
      ['newly-allowed', true, 'Alice', 'cannot be judged: it is allowed, and wha'],
      // There is nothing to approve any more.
      ['otherwise', false, 'Bob', 'refused: NOT_FOUND: no activity found wi'],
    ]);
    // It is in the history, and only could not be judged on the branch.
    expect(found.differences.join()).not.toContain('Vault');
    const { last, from } = found;
    // Behind the founding, and before all that was asked for.
    expect(from).toBe(founding);
    const late = await asked(both, last);
    expect(late.divergences).toEqual([]);
    // A decision and its effects are one: within them nothing begins.
    expect(late.from).toBe(last + 1);
    await expect(asked(both, last + 2)).rejects.toThrow(`has no event at revision \`${last + 2}\``);
  });

  test('changes nothing where it says what was so anyway', async () => {
    const found = await asked({ changedPolicies: [{ policy: 'two make wallets', effect: 'EFFECT_ALLOW' }] });
    expect(found).toMatchObject({ divergences: [], more: 0, waiting: [], differences: [], neverHeld: [] });
    expect(found.unchanged.decisions).toBeGreaterThan(4);
    expect(found.unchanged.denials).toBe(1);
  });

  test.each<[string, object, string]>([
    ['that says nothing', {}, 'the draft changes nothing'],
    ['with a member that there is not', { policy: [] }, 'policy'],
    [
      'with a clause that cannot be read',
      { policies: [{ policyName: 'x', effect: 'EFFECT_ALLOW', condition: 'activity.kin == 1' }] },
      'policies[0].condition',
    ],
    [
      'with a name twice',
      { policies: ['EFFECT_ALLOW', 'EFFECT_DENY'].map((effect) => ({ policyName: 'x', effect })) },
      'policies[1].policyName: `x` appears twice',
    ],
    ['whose quorum can never approve', { rootQuorum: { threshold: 2, users: ['a', 'a'] } }, 'rootQuorum.threshold'],
  ])('refuses a draft %s', (_what, plain, message) => {
    expect(() => drafted(plain)).toThrow(message);
  });
});

/** What a policy can say here: names, as ids are others in another organization. */
const clauses = fc.record(
  {
    condition: fc.constantFrom(
      "activity.kind == 'CREATE_USER_TAG'",
      "activity.resource == 'POLICY'",
      "activity.kind in ['CREATE_USER_TAG', 'CREATE_WALLET']",
      "activity.action == 'DELETE'",
    ),
    consensus: fc.constantFrom(
      'approvers.count() >= 2',
      'approvers.count() >= 3',
      'approvers.any(user, user.id != requester.id)',
      'approvers.all(user, user.id == requester.id)',
    ),
  },
  { requiredKeys: [] },
);
const policyOf = fc.record({
  effect: fc.constantFrom('EFFECT_ALLOW' as const, 'EFFECT_ALLOW' as const, 'EFFECT_DENY' as const),
  clauses,
});
const actor = fc.constantFrom('Root', 'Alice', 'Bob', 'Carol');
const step = fc.oneof(
  fc.record({ does: fc.constant('tag' as const), actor }),
  fc.record({ does: fc.constant('wallet' as const), actor }),
  fc.record({ does: fc.constant('policy' as const), actor, policy: policyOf }),
  fc.record({ does: fc.constant('vote' as const), actor, on: fc.nat(8), isFor: fc.boolean() }),
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;
type Outcome = 'allowed' | 'waits' | 'denied' | 'rejected' | 'refused' | 'not sent';

interface Played {
  readonly outcomes: readonly Outcome[];
  readonly coordinator: TestCoordinator;
}

/** Plays steps; of those that another organization has refused, or has not sent, none. */
async function play(
  steps: readonly Step[],
  before: (coordinator: TestCoordinator) => Promise<unknown>,
  sent: (index: number) => boolean,
): Promise<Played> {
  const coordinator = await startCoordinator({ seed: 'having had it' });
  await before(coordinator);
  const users = new Map<string, Pick<TestUser, 'client'>>([['Root', coordinator]]);
  for (const name of ['Alice', 'Bob', 'Carol']) users.set(name, await coordinator.createUser(name));
  const fingerprints = new Map<number, string>();
  const outcomes: Outcome[] = [];
  for (const [index, one] of steps.entries()) {
    coordinator.clock.advance('1s');
    const { length } = await coordinator.recorded();
    const outcome = sent(index) ? await playStep(one, index) : 'not sent';
    // A vote on what is over is answered, and recorded nowhere.
    const isRecorded = one.does !== 'vote' || (await coordinator.recorded()).length > length;
    outcomes.push(isRecorded ? outcome : 'not sent');
  }
  return { outcomes, coordinator };

  async function playStep(one: Step, index: number): Promise<Outcome> {
    const { client } = users.get(one.actor)!;
    try {
      if (one.does === 'vote') {
        const fingerprint = fingerprints.get(one.on);
        if (fingerprint === undefined) return 'not sent';
        return outcomeOf((await (one.isFor ? client.approve(fingerprint) : client.reject(fingerprint))).status);
      }
      const asked =
        one.does === 'tag'
          ? await client.submit(tag, { userTagName: `tag ${index}`, userIds: [] })
          : one.does === 'wallet'
            ? await client.submit(wallet, { walletName: `wallet ${index}`, accounts: [] })
            : await client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
                policyName: `policy ${index}`,
                effect: one.policy.effect,
                ...one.policy.clauses,
                notes: '',
              });
      fingerprints.set(index, asked.fingerprint);
      return outcomeOf(asked.status);
    } catch (error) {
      return error instanceof ApiError && error.body.code === 7 ? 'denied' : 'refused';
    }
  }
}

function outcomeOf(status: string): Outcome {
  if (status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED') return 'waits';
  return status === 'ACTIVITY_STATUS_REJECTED' ? 'rejected' : 'allowed';
}

const words: readonly [RegExp, Outcome][] = [
  [/^denied:/, 'denied'],
  [/^refused:/, 'refused'],
  [/^(waits|approved; more)/, 'waits'],
  [/^rejected/, 'rejected'],
  [/^(done|failed|cannot be judged: it is allowed)/, 'allowed'],
];

test('a draft over a history is as having had its policy from the start', async () => {
  await fc.assert(
    fc.asyncProperty(
      policyOf,
      fc.array(step, { minLength: 6, maxLength: 12 }),
      async ({ effect, clauses: written }, steps) => {
        const policy = { policyName: 'the draft', effect, ...written };
        const without = await play(
          steps,
          () => Promise.resolve(),
          () => true,
        );
        const isSent = (index: number) => !['refused', 'not sent'].includes(without.outcomes[index]!);
        const having = await play(steps, (coordinator) => coordinator.createPolicy(policy), isSent);
        const recorded = await without.coordinator.recorded();
        const found = await whatIf(await storeOf(recorded), {
          organizationId: without.coordinator.organizationId,
          registry,
          draft: drafted({ policies: [policy] }),
          now: without.coordinator.clock.now(),
        });
        // Denials are in a stream of their own, and each stream has the steps in their order.
        const deciding = recorded.filter(({ type }) => /^Activity(Submitted|Approved|Rejected|Denied)$/.test(type));
        const sentBefore = deciding.filter(({ type }) => type !== 'ActivityDenied').length;
        const denials = deciding.filter(({ type }) => type === 'ActivityDenied');
        const isDecided = (index: number) => isSent(index) && without.outcomes[index] !== 'denied';
        const decisions = deciding
          .filter(({ type }) => type !== 'ActivityDenied')
          .slice(sentBefore - steps.filter((_, index) => isDecided(index)).length);
        const came = new Map<number, Outcome>();
        for (const index of steps.keys()) {
          if (!isSent(index)) continue;
          const isDenial = without.outcomes[index] === 'denied';
          const { revision } = (isDenial ? denials : decisions).shift()!;
          const other = found.divergences.find((one) => one.revision === revision && one.isDenial === isDenial);
          came.set(index, other ? words.find(([start]) => start.test(other.is))![1] : without.outcomes[index]!);
        }
        // A vote on what is over there is not sent: it would be refused.
        const had = (index: number) => (having.outcomes[index] === 'not sent' ? 'refused' : having.outcomes[index]);
        const expected = [...came.keys()].map((index) => [index, had(index)]);
        await Promise.all([without, having].map(({ coordinator }) => coordinator.close()));
        expect([...came]).toEqual(expected);
      },
    ),
    { numRuns: isLong ? 150 : 5 },
  );
});
