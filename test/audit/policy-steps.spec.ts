import fc from 'fast-check';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { authorize } from '../../src/domain/policy/authorize.js';
import type { Approval, Policy, PolicyUser } from '../../src/domain/policy/types.js';
import { decidedActivities } from '../../src/audit/lint/decided-activities.js';
import {
  isNothing,
  policyChanges,
  type HeldPolicy,
  type HeldSet,
  type PolicyChanges,
  type PolicySaid,
  type WantedSet,
} from '../../src/audit/policies/policy-changes.js';
import { afterStep } from '../../src/audit/policies/policy-after.js';
import { reachesUsers } from '../../src/audit/lint/policy-reach.js';
import { policySteps, unsafeQuorum, type PolicyStep } from '../../src/audit/policies/policy-steps.js';

/* Whatever passes while policies are applied would pass under those from before, or under those that there are to be. */

const registry = buildRegistry(activities);
const { policyEnvironment: environment } = registry;
const all = decidedActivities(registry);

const users: readonly PolicyUser[] = ['ann', 'ben', 'tom'].map((userId) => ({
  userId,
  userName: userId,
  tags: [],
  credentials: [{ id: `key of ${userId}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '' }],
}));

const kinds = [
  { type: 'ACTIVITY_TYPE_CREATE_WALLET', resource: 'WALLET', action: 'CREATE', ownCredentials: false },
  { type: 'ACTIVITY_TYPE_CREATE_API_KEYS_V2', resource: 'CREDENTIAL', action: 'CREATE', ownCredentials: true },
] as const;

/** Every request of this small world, with every set of approvals that has the submitter's. */
const requests = kinds.flatMap(({ ownCredentials, ...activity }) =>
  users.flatMap(({ userId: submitterId }) =>
    [[], ['ann'], ['ben'], ['tom'], ['ann', 'ben', 'tom']].map((others) => ({
      request: {
        activity: { ...activity, kind: activity.type.replace(/^ACTIVITY_TYPE_|_V2$/g, ''), params: {} },
        submitterId,
        rootQuorumOnly: false,
        ownCredentials,
      },
      approvals: [...new Set([submitterId, ...others])].map((userId): Approval => ({
        userId,
        credential: users.find((one) => one.userId === userId)!.credentials[0]!,
      })),
    })),
  ),
);

/** Which of the requests pass. */
function passing({ policies, quorum }: Pick<HeldSet, 'policies' | 'quorum'>): readonly boolean[] {
  const whole = policies.map((policy): Policy => ({ ...policy, createdAt: 0, updatedAt: 0 }));
  const context = { policies: whole, rootQuorum: quorum, users, environment, now: 0 };
  return requests.map(({ request, approvals }) => authorize(request, approvals, context).outcome === 'allow');
}

const clause = <Text extends string>(...texts: readonly Text[]) =>
  fc.constantFrom<Text | undefined>(undefined, ...texts);
const said = fc.record({
  effect: fc.constantFrom('EFFECT_ALLOW' as const, 'EFFECT_DENY' as const),
  condition: clause(
    "activity.kind == 'CREATE_WALLET'",
    "activity.kind == 'CREATE_API_KEYS'",
    "activity.resource == 'CREDENTIAL'",
    "activity.action == 'SIGN'",
  ),
  consensus: clause(
    "approvers.any(user, user.id == 'ann')",
    "approvers.any(user, user.id == 'tom')",
    'approvers.count() >= 2',
    'approvers.count() == 1',
  ),
  notes: fc.constantFrom('', 'a note'),
});
const someSet = fc
  .uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 4 })
  .chain((names) => fc.tuple(...names.map((policyName) => said.map((one) => withoutAbsent({ policyName, ...one })))));
const quorum = fc
  .constantFrom(['ann'], ['ann', 'ben'], ['ben'])
  .map((userIds) => ({ threshold: userIds.length, userIds }));

function withoutAbsent(policy: object): PolicySaid {
  return Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined)) as unknown as PolicySaid;
}

let lastId = 0;

/** What an organization has after an activity, by the ids that it gives. */
function performed(held: HeldSet, step: PolicyStep): HeldSet {
  return afterStep(
    held,
    step,
    step.names.map(() => `made ${++lastId}`),
  );
}

const holds = (policies: readonly PolicySaid[]): readonly HeldPolicy[] =>
  policies.map((policy, index) => ({ ...policy, policyId: `held ${index}` }));

/** Applies a folder as the command does: the first group, then whatever the steps are from there. */
function applied(before: HeldSet, wanted: WantedSet, passed: (held: HeldSet, step: PolicyStep) => void): HeldSet {
  let held = before;
  for (let rounds = 0; ; rounds++) {
    const changes = policyChanges(held, wanted);
    if (isNothing(changes)) return held;
    if (rounds > 12) throw new Error(`it goes round in circles: ${JSON.stringify(changes)}`);
    for (const step of policySteps(changes, () => false)[0]!) {
      held = performed(held, step);
      passed(held, step);
    }
  }
}

test('no moment allows what neither the old nor the new policies allow', () => {
  let intermediate = 0;
  fc.assert(
    fc.property(someSet, someSet, quorum, (old, policies, is) => {
      const before: HeldSet = { policies: holds(old), tags: [], quorum: is };
      const [was, willBe] = [passing(before), passing({ policies: holds(policies), quorum: is })];
      const after = applied(before, { policies, tags: ['t'] }, (held, step) => {
        intermediate++;
        for (const [index, passes] of passing(held).entries()) {
          if (passes && !was[index] && !willBe[index]) {
            throw new Error(`after ${JSON.stringify(step)}: ${JSON.stringify(requests[index])}`);
          }
        }
      });
      expect(passing(after)).toEqual(willBe);
      expect(after.policies.map(({ policyName }) => policyName).sort()).toEqual(
        policies.map(({ policyName }) => policyName).sort(),
      );
    }),
    { numRuns: 400, seed: 96 },
  );
  expect(intermediate).toBeGreaterThan(400);
}, 60_000);

const policy = (policyName: string, effect: 'ALLOW' | 'DENY', condition?: string): PolicySaid =>
  withoutAbsent({ policyName, effect: `EFFECT_${effect}`, condition, notes: '' });
const reaches = (one: PolicySaid) => reachesUsers(one, { environment, activities: all });
const quorumOf = (...userIds: string[]) => ({ threshold: 1, userIds });
const stepsOf = (old: readonly PolicySaid[], policies: readonly PolicySaid[], to?: readonly string[]) =>
  policySteps(
    policyChanges(
      { policies: holds(old), tags: [], quorum: quorumOf('ann') },
      { policies, tags: [], ...(to ? { quorum: quorumOf(...to) } : {}) },
    ),
    reaches,
  ).map((group) => group.map(({ type, names }) => [type.replace('ACTIVITY_TYPE_', ''), ...names].join(' ')));

test('one policy that changes beside others is changed in place; two need copies', () => {
  const [a, b, other] = [policy('a', 'ALLOW', '1 == 1'), policy('b', 'ALLOW', '1 == 1'), policy('other', 'DENY')];
  expect(stepsOf([policy('a', 'ALLOW', '1 == 1'), other], [a, other])).toEqual([]);
  expect(stepsOf([policy('a', 'ALLOW', '1 == 2'), policy('gone', 'ALLOW')], [a, other])).toEqual([
    ['CREATE_POLICIES other'],
    ['UPDATE_POLICY_V2 a'],
    ['DELETE_POLICIES gone'],
  ]);
  const [first, ...rest] = stepsOf([policy('a', 'ALLOW'), policy('b', 'ALLOW', '1 == 2')], [policy('a', 'DENY'), b]);
  expect(first).toEqual([expect.stringMatching(/^CREATE_POLICIES a \(next [0-9a-f]{8}\) b \(next [0-9a-f]{8}\)$/)]);
  expect(rest.slice(0, 1)).toEqual([['UPDATE_POLICY_V2 a', 'UPDATE_POLICY_V2 b']]);
});

test('a policy that loses its condition is replaced: an absent one is not the same as `true`', () => {
  const old = policy('a', 'ALLOW', "activity.resource == 'CREDENTIAL'");
  expect(stepsOf([old], [policy('a', 'ALLOW')])).toEqual([
    [expect.stringMatching(/^UPDATE_POLICY_V2 a$/)],
    ['CREATE_POLICIES a'],
    [expect.stringMatching(/^DELETE_POLICIES a \(before [0-9a-f]{8}\)$/)],
  ]);
  expect(stepsOf([policy('a', 'ALLOW')], [policy('a', 'ALLOW', 'true')])).toEqual([['UPDATE_POLICY_V2 a']]);
});

test('the root quorum changes last, unless a new policy reaches the users who join', () => {
  const [old, is] = [[policy('a', 'ALLOW')], [policy('b', 'ALLOW')]];
  expect(stepsOf(old, is, ['ann', 'ben'])[0]).toEqual(['UPDATE_ROOT_QUORUM']);
  const changes = (from: string[], to: string[], policies = is) =>
    policyChanges(
      { policies: holds(old), tags: [], quorum: quorumOf(...from) },
      { policies, tags: [], quorum: quorumOf(...to) },
    );
  expect(policySteps(changes(['ann', 'ben'], ['ann']), reaches).at(-1)).toMatchObject([
    { type: 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM' },
  ]);
  const reasonOf = (change: PolicyChanges, held: readonly PolicySaid[] = old) =>
    unsafeQuorum(change, holds(held), reaches);
  expect(reasonOf(changes(['ann', 'ben'], ['ann']))).toBeUndefined();
  expect(reasonOf(changes(['ann', 'ben'], ['ann', 'tom']))).toMatch(/join and leave .* `a` may let somebody change/);
  expect(reasonOf(changes(['ann', 'ben'], ['ann', 'tom'], old))).toBeUndefined();
  expect(stepsOf(old, [policy('b', 'DENY')], ['ann', 'ben']).at(-1)).toEqual(['UPDATE_ROOT_QUORUM']);
  const wallets = [policy('w', 'ALLOW', "activity.resource == 'WALLET'"), policy('d', 'DENY')];
  expect(reasonOf(changes(['ann', 'ben'], ['ann', 'tom']), wallets)).toBeUndefined();
  const unknown = [policy('w', 'ALLOW', "requester.id == 'x'")];
  expect(reasonOf(changes(['ann', 'ben'], ['ann', 'tom']), unknown)).toMatch(/`w` may let/);
});

test('a policy of the name of a copy that says something else is no copy', () => {
  const [a, b] = [policy('a', 'ALLOW', '1 == 1'), policy('b', 'DENY', '1 == 1')];
  const old = [policy('a', 'ALLOW', '1 == 2'), policy('b', 'DENY', '1 == 2')];
  const [[made]] = stepsOf(old, [a, b]) as [[string]];
  const name = /a \(next \w+\)/.exec(made)![0];
  const [[again]] = stepsOf([...old, policy(name, 'ALLOW', '2 == 2')], [a, b]) as [[string]];
  expect(again).toContain(`${name.slice(0, -1)}, 2)`);
  const [[partly]] = stepsOf([...old, { ...a, policyName: name }], [a, b]) as [[string]];
  expect(partly).not.toContain('a (next');
});

test('at most a hundred at once, denials first when they come and last when they go', () => {
  const many = Array.from({ length: 150 }, (_, at) => policy(`p${at}`, at % 2 === 0 ? 'ALLOW' : 'DENY'));
  const sizes = (groups: readonly (readonly string[])[]) => groups.map(([step]) => step!.split(' ').length - 1);
  const [created, deleted] = [stepsOf([], many), stepsOf(many, [])];
  expect([sizes(created), sizes(deleted)]).toEqual([
    [100, 50],
    [100, 50],
  ]);
  expect(created[0]![0]).toMatch(/^CREATE_POLICIES p1 p3 /);
  expect(deleted[0]![0]).toMatch(/^DELETE_POLICIES p0 p2 /);
});
