import fc from 'fast-check';
import {
  authorize,
  couldAllow,
  couldContribute,
  eligibleApprovers,
  type Authorization,
} from '../../../src/domain/policy/authorize.js';
import { demandsOf, isExcluded, type ActivityAttributes } from '../../../src/domain/policy/demands.js';
import { evaluate } from '../../../src/domain/policy/evaluate.js';
import { explain, votesMissing } from '../../../src/domain/policy/explain.js';
import { compileClause } from '../../../src/domain/policy/language.js';
import { policySetOf, withTheRest } from '../../../src/domain/policy/policy-set.js';
import type { AuthorizationContext } from '../../../src/domain/policy/request-evaluation.js';
import { Steps, weights } from '../../../src/domain/steps.js';
import type { AuthorizationRequest, Policy } from '../../../src/domain/policy/types.js';
import { environment } from './environment.js';
import { approvalLists, contextOf, disguised, policies, policy, requests, users, voters, votes } from './generated.js';
import { isLong } from '../../long.js';

/** Requests that are drawn for a test. */
const runs = isLong ? 20_000 : 600;

const activity = {
  type: 'ACTIVITY_TYPE_CREATE_WALLET',
  kind: 'CREATE_WALLET',
  resource: 'WALLET',
  action: 'CREATE',
  params: {},
};

const excludes = (condition: string, other: Partial<ActivityAttributes> = {}) =>
  isExcluded(demandsOf(compileClause(condition, 'condition', environment)), { ...activity, ...other });

describe('what a condition demands of the activity', () => {
  it.each([
    ["activity.type == 'ACTIVITY_TYPE_CREATE_WALLET'", false],
    ["activity.type == 'ACTIVITY_TYPE_DELETE_WALLETS'", true],
    ["'DELETE' == activity.action", true],
    ["activity.action != 'CREATE'", true],
    ["activity.action != 'DELETE'", false],
    ["!(activity.action == 'CREATE')", true],
    ["!(activity.action != 'CREATE')", false],
    ["activity.resource in ['USER', 'POLICY']", true],
    ["activity.resource in ['USER', 'WALLET']", false],
    ["['USER', 'POLICY'].contains(activity.resource)", true],
    ["!(activity.resource in ['USER', 'WALLET'])", true],
    ["activity.kind == 'DELETE_WALLETS'", true],
    ["wallet.id == 'x' && activity.type == 'ACTIVITY_TYPE_DELETE_WALLETS'", true],
    ["wallet.id == 'x' || activity.type == 'ACTIVITY_TYPE_DELETE_WALLETS'", false],
    ["activity.type == 'ACTIVITY_TYPE_DELETE_WALLETS' || activity.type == 'ACTIVITY_TYPE_SIGN_TRANSACTION'", true],
    ["activity.type == 'ACTIVITY_TYPE_DELETE_WALLETS' || activity.type == 'ACTIVITY_TYPE_CREATE_WALLET'", false],
    ["activity.type == 'ACTIVITY_TYPE_DELETE_WALLETS' || activity.resource != 'WALLET'", false],
    ["!(wallet.id == 'x' || activity.resource == 'WALLET')", true],
    ["!(wallet.id == 'x' && activity.resource == 'WALLET')", false],
    ["(activity.resource == 'USER' || activity.resource == 'POLICY') && activity.action != 'DELETE'", true],
    ["(activity.resource == 'USER' && activity.action == 'CREATE') || activity.resource == 'POLICY'", true],
    ["activity.resource[0..1] == 'W'", false],
    ["activity.params.hash_function == 'X'", false],
    ["wallet.label == 'DELETE'", false],
    ["[activity.action].contains('DELETE')", false],
    ["['CREATE', 'DELETE'].any(x, x == activity.action)", false],
    ['false', false],
  ])('%s leaves the activity out: %s', (condition, isLeftOut) => {
    expect(excludes(condition)).toBe(isLeftOut);
  });

  it('does not take what the activity lacks for another value: that is unreadable', () => {
    const { resource: _resource, ...lacking } = activity;
    const demands = demandsOf(compileClause("activity.resource == 'USER'", 'condition', environment));
    expect(isExcluded(demands, activity)).toBe(true);
    expect(isExcluded(demands, lacking)).toBe(false);
    const set = policySetOf([policy({ policyId: 'p', condition: "activity.resource == 'USER'" })], environment, '');
    expect(set.thatCouldApplyTo(activity)).toEqual([]);
    expect(set.thatCouldApplyTo(lacking)).toHaveLength(1);
  });

  it('is nothing for a very long list of values, so that the work stays bounded', () => {
    const list = (count: number) => Array.from({ length: count }, (_, index) => `'T${index}'`).join(', ');
    expect(excludes(`activity.type in [${list(256)}]`)).toBe(true);
    expect(excludes(`activity.type in [${list(257)}]`)).toBe(false);
    const chain = Array.from({ length: 257 }, (_, index) => `activity.type == 'T${index}'`).join(' || ');
    expect(excludes(chain)).toBe(false);
  });
});

/** Without messages, which name places in a text. */
const withoutErrors = (evaluations: Authorization['evaluations']) =>
  evaluations.map(({ error: _error, ...one }) => one);

describe('the policies that could apply', () => {
  it('decide as all of them do: verdict, votes, outcomes and reasons', () => {
    const seen = { leftOut: 0, asked: 0, inDoubt: 0, verdicts: new Set<string>() };
    fc.assert(
      fc.property(requests, approvalLists, policies, voters, (request, approvals, list, voter) => {
        const all = () => contextOf(disguised(list));
        const found = () => contextOf(list);
        const expected = authorize(request, approvals, all());
        const decided = authorize(request, approvals, found());
        expect([decided.outcome, decided.by]).toEqual([expected.outcome, expected.by]);
        seen.verdicts.add(`${decided.outcome} ${decided.by}`);
        expect(eligibleApprovers(request, approvals, found())).toEqual(eligibleApprovers(request, approvals, all()));
        expect(couldAllow(request, approvals, found())).toBe(couldAllow(request, approvals, all()));
        const could = (context: AuthorizationContext) => couldContribute(request, approvals, context, voter);
        expect(could(found())).toBe(could(all()));
        expect(votesMissing(request, approvals, found())).toEqual(votesMissing(request, approvals, all()));

        // Each outcome of those that could apply is the same; the others are none that decides anything.
        const asked = new Set(decided.evaluations.map(({ policyId }) => policyId));
        const ofAsked = expected.evaluations.filter(({ policyId }) => asked.has(policyId));
        expect(withoutErrors(decided.evaluations)).toEqual(withoutErrors(ofAsked));
        if (expected.evaluations.length === 0) return;
        const told = withTheRest(decided.evaluations, list);
        const silent = list.filter(({ policyId }) => !asked.has(policyId));
        for (const { policyId, effect, condition } of silent) {
          const compiled = compileClause(condition!, 'condition', environment);
          for (const about of request.parts?.length ? request.parts : [request]) {
            const value = (name: string) =>
              environment.namespaces.get(name)?.value({ ...request, ...about }, [], {
                now: 0,
                user: (userId) => users.find((one) => one.userId === userId),
              });
            expect(evaluate(compiled, { now: 0, value }).truth).toBe('false');
          }
          const harmless = [
            'OUTCOME_DENY_IMPLICIT',
            'OUTCOME_TIME_INACTIVE',
            ...(effect === 'EFFECT_ALLOW' ? ['OUTCOME_ERROR'] : []),
          ];
          for (const one of expected.evaluations.filter((each) => each.policyId === policyId)) {
            expect(harmless).toContain(one.outcome);
            seen.inDoubt += Number(one.outcome === 'OUTCOME_ERROR');
          }
          expect(told.filter((one) => one.policyId === policyId)).toEqual([
            { policyId, outcome: 'OUTCOME_DENY_IMPLICIT' },
          ]);
        }
        // The reason for what is told is the one that the same outcome has where no other policy is.
        const because = explain(request, approvals, found(), decided.evaluations);
        const alone = contextOf(list.filter(({ policyId }) => asked.has(policyId)));
        expect(because).toEqual(explain(request, approvals, alone, decided.evaluations));
        seen.leftOut += silent.length;
        seen.asked += asked.size;
      }),
      { numRuns: runs },
    );
    expect(seen.leftOut).toBeGreaterThan(runs / 2);
    expect(seen.asked).toBeGreaterThan(runs / 2);
    expect(seen.inDoubt).toBeGreaterThan(runs / 20);
    expect([...seen.verdicts].sort()).toEqual([
      'allow own-credentials',
      'allow policy',
      'allow root-quorum',
      'consensus-needed none',
      'deny-explicit policy',
      'deny-implicit none',
    ]);
  });

  const request: AuthorizationRequest = {
    activity,
    submitterId: 'ops-1',
    rootQuorumOnly: false,
    ownCredentials: false,
  };
  const elsewhere = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      policy({
        policyId: `q${String(index).padStart(4, '0')}`,
        condition: `activity.resource == 'USER' && requester.id == '${index}'`,
      }),
    );

  it('are found anew when a policy is changed, added or deleted', () => {
    const list = [...elsewhere(3), policy({ policyId: 'z', condition: "activity.resource == 'USER'" })];
    const asked = (policies: readonly Policy[]) =>
      authorize(request, [votes[0]!], contextOf(policies)).evaluations.map(({ policyId }) => policyId);
    expect(asked(list)).toEqual([]);
    const changed = list.map((one) =>
      one.policyId === 'q0001' ? { ...one, condition: "activity.resource == 'WALLET'" } : one,
    );
    expect(asked(changed)).toEqual(['q0001']);
    expect(asked(list)).toEqual([]);
    const added = [policy({ policyId: 'a' }), ...list];
    expect(asked(added)).toEqual(['a']);
    expect(asked(list)).toEqual([]);
    expect(asked(added.slice(0, -1))).toEqual(['a']);
  });

  it('are all that take steps, but for reading the conditions, which is counted whether or not it was known', () => {
    const list = elsewhere(200);
    const conditions = list.map(({ condition }) => condition!);
    const spent = () => {
      const steps = new Steps();
      authorize(request, [votes[0]!], contextOf(list, steps));
      return steps.spent;
    };
    const parts = conditions.length * 9;
    const reading = conditions.join('').length * weights.clauseCharacter + parts * weights.clausePart;
    const first = spent();
    expect(first).toBe(spent());
    expect(first).toBe(reading);
    // Known for other policy objects, and by other texts, is not known for these.
    const fresh = list.map((one) => ({ ...one }));
    const steps = new Steps();
    authorize(request, [votes[0]!], contextOf(fresh, steps));
    expect(steps.spent).toBe(first);
  });

  it('are all of them when there are too few steps to read their conditions: each is in doubt', () => {
    const list = [
      ...elsewhere(50),
      policy({ policyId: 'z', effect: 'EFFECT_DENY', condition: "activity.resource == 'USER'" }),
    ];
    const { outcome, evaluations } = authorize(request, [votes[0]!], contextOf(list, new Steps(100)));
    expect(outcome).toBe('deny-explicit');
    expect(evaluations).toHaveLength(51);
    expect(new Set(evaluations.map(({ doubt }) => doubt))).toEqual(new Set(['unreadable']));
  });
});
