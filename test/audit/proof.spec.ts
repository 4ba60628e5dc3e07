import fc from 'fast-check';
import { authorize, eligibleApprovers, type Authorization } from '../../src/domain/policy/authorize.js';
import { evaluate } from '../../src/domain/policy/evaluate.js';
import { compileClause } from '../../src/domain/policy/language.js';
import { PolicyError } from '../../src/domain/policy/syntax.js';
import type { Approval, AuthorizationRequest, Clause, Policy, PolicyUser } from '../../src/domain/policy/types.js';
import { Steps } from '../../src/domain/steps.js';
import { candidateChanges } from '../../src/audit/explain/candidates.js';
import type { Change } from '../../src/audit/explain/changes.js';
import type { Facts } from '../../src/audit/explain/facts.js';
import { flipsOf } from '../../src/audit/explain/flips.js';
import { prove } from '../../src/audit/explain/proof.js';
import { Room } from '../../src/audit/explain/proof-size-limit.js';
import type { PartExplanation } from '../../src/audit/explain/part-explanation.js';
import { environment } from '../domain/policy/environment.js';
import {
  approvalLists,
  contextOf,
  policies as anyPolicies,
  policy,
  requests,
  users,
} from '../domain/policy/generated.js';
import { isLong } from '../long.js';

/** Requests that are drawn for a test. */
const runs = isLong ? 7_000 : 500;

/*
 * An explanation is worth something only if it is the decision: each is held against `authorize` and the evaluator, and
 * each change that is said to flip a decision is made here, by other code, and decided on.
 */

const truths = ['true', 'false', 'unreadable', 'not-applicable'];

const rank = { 'deny-explicit': 0, 'deny-implicit': 0, 'consensus-needed': 1, allow: 2 } as const;

/** Some of which one change flips, beside any others. */
const policies = fc
  .tuple(
    anyPolicies,
    fc.subarray([
      policy({ policyId: 'q0', condition: "requester.tags.contains('ops') && wallet.id == 'x'" }),
      policy({ policyId: 'q1', effect: 'EFFECT_DENY', condition: "!requester.tags.contains('ops')" }),
      policy({ policyId: 'q2', effect: 'EFFECT_DENY', condition: "wallets.any(w, w.id == 'x' && !w.imported)" }),
      policy({ policyId: 'q3', consensus: "approvers.filter(u, u.tags.contains('ops')).count() >= 2" }),
      policy({ policyId: 'q4', consensus: "approvers.all(u, u.id != 'dev') && approvers.count() >= 2" }),
    ]),
  )
  .map(([some, others]) => [...some, ...others]);

const factsOf =
  (request: AuthorizationRequest, approvals: readonly Approval[], list: readonly Policy[]) => (): Facts => ({
    request,
    approvals,
    context: contextOf(list),
  });

/** The names of one payload as a clause of a policy sees them. */
function scopeOf(request: AuthorizationRequest, about: object, approvals: readonly Approval[]) {
  const { now } = contextOf([]);
  const user = (userId: string) => users.find((one) => one.userId === userId);
  // Of each user, the first counts.
  const first = approvals.filter((one, index) => approvals.findIndex(({ userId }) => userId === one.userId) === index);
  const cast = first.map(({ userId, credential }) => ({ user: user(userId)!, credential }));
  return {
    now,
    value: (name: string) => environment.namespaces.get(name)?.value({ ...request, ...about }, cast, { now, user }),
  };
}

/** The value of a text, if it is an expression by itself. */
function truthOf(text: string, clause: Clause, scope: ReturnType<typeof scopeOf>): string | undefined {
  try {
    return evaluate(compileClause(text, clause, environment), scope).truth;
  } catch (error) {
    if (error instanceof PolicyError) return undefined;
    throw error;
  }
}

function* everyPart(part: PartExplanation): Generator<PartExplanation> {
  yield part;
  for (const inner of part.parts ?? []) yield* everyPart(inner);
}

/** What the lab says it has tried, done without it. */
function after(change: Change, world: World): World {
  const { request, approvals, list, known } = world;
  const voteOf = (userId: string): Approval => {
    const { credentials } = known.find((one) => one.userId === userId)!;
    return { userId, credential: credentials[0]! };
  };
  const retagged = (tags: (user: PolicyUser) => readonly string[]) =>
    known.map((user) => ('userId' in change && user.userId === change.userId ? { ...user, tags: tags(user) } : user));
  switch (change.kind) {
    case 'vote':
      return { ...world, approvals: [...approvals, voteOf(change.userId)] };
    case 'asked-by':
      return {
        request: { ...request, submitterId: change.userId, ownCredentials: false },
        approvals: [voteOf(change.userId)],
        list,
        known,
      };
    case 'tag-added':
      return { request, approvals, list, known: retagged(({ tags }) => [...tags, change.tagId]) };
    case 'tag-removed':
      return { request, approvals, list, known: retagged(({ tags }) => tags.filter((tag) => tag !== change.tagId)) };
    case 'policy-gone':
      return { request, approvals, list: list.filter(({ policyId }) => policyId !== change.policyId), known };
    case 'clause-gone': {
      const without = list.map((one) => {
        const { [change.clause]: _gone, ...rest } = one;
        return one.policyId === change.policyId ? rest : one;
      });
      return { request, approvals, list: without, known };
    }
    case 'root-quorum-member':
      return { request, approvals, list, known, more: [change.userId] };
  }
}

interface World {
  readonly request: AuthorizationRequest;
  readonly approvals: readonly Approval[];
  readonly list: readonly Policy[];
  readonly known: readonly PolicyUser[];
  readonly more?: readonly string[];
}

function contextIn({ list, known, more = [] }: World) {
  const context = contextOf(list);
  const { threshold, userIds } = context.rootQuorum;
  return { ...context, users: known, rootQuorum: { threshold, userIds: [...userIds, ...more] } };
}

function decided(world: World): Authorization {
  return authorize(world.request, world.approvals, contextIn(world));
}

/** Whether a coordinator would take each vote among the changes, after the others. */
function areTaken(changes: readonly Change[], world: World): boolean {
  const votes = changes.filter((change) => change.kind === 'vote');
  const others = changes.filter((change) => change.kind !== 'vote');
  let now = others.reduce((before, change) => after(change, before), world);
  return votes.every((vote) => {
    const mayVote = eligibleApprovers(now.request, now.approvals, contextIn(now));
    now = after(vote, now);
    return mayVote.has(vote.userId);
  });
}

describe('a proof of a decision', () => {
  it('comes to the verdict of authorize, and each clause to the value of the evaluator', () => {
    const seen = {
      clauses: 0,
      parts: 0,
      expressions: 0,
      unasked: 0,
      verdicts: new Set<string>(),
      values: new Set<string>(),
    };
    fc.assert(
      fc.property(requests, approvalLists, policies, (request, approvals, list) => {
        const facts = factsOf(request, approvals, list);
        const proof = prove(facts, new Room(new Steps(Infinity)));
        const { outcome, by } = authorize(request, approvals, contextOf(list));
        expect([proof.outcome, proof.by]).toEqual([outcome, by]);
        seen.verdicts.add(`${outcome} ${by}`);
        if (proof.parts.length === 0) return;

        const about = request.parts?.length ? request.parts : [{ ...request, name: undefined }];
        expect(proof.parts.map(({ payload: of }) => of)).toEqual(about.map(({ name }) => name));
        for (const [index, part] of proof.parts.entries()) {
          const { parts: _parts, ...alone } = request;
          const { resources } = about[index]!;
          const one = { ...alone, ...(resources === undefined ? {} : { resources }) };
          const ofPart = authorize(one, approvals, contextOf(list));
          expect([part.outcome, part.decidedBy]).toEqual([ofPart.outcome, ruleOf(ofPart)]);
          const asked = part.policies.filter(({ isAsked }) => isAsked);
          expect(asked.map(({ policyId, outcome: said }) => [policyId, said])).toEqual(
            ofPart.evaluations.map((each) => [each.policyId, each.outcome]),
          );
          expect(part.policies.map(({ policyId }) => policyId)).toEqual(list.map(({ policyId }) => policyId));
          seen.unasked += part.policies.length - asked.length;

          // Compared at once: there are tens of thousands.
          const wrong: unknown[] = [];
          for (const { policyId, clauses } of part.policies) {
            const texts = list.find((each) => each.policyId === policyId)!;
            for (const { clause, value, tree } of clauses) {
              const scope = scopeOf(one, {}, approvals);
              const truth = truthOf(texts[clause]!, clause, scope) ?? 'unreadable';
              if (value !== truth) wrong.push([policyId, clause, value, truth]);
              seen.clauses += 1;
              seen.values.add(truth);
              if (!tree) continue;
              if (tree.value !== truth) wrong.push([policyId, clause, tree.value, truth]);
              for (const { text, value: told, element } of everyPart(tree)) {
                seen.parts += 1;
                const itself = element === undefined ? truthOf(text, clause, scope) : undefined;
                // What has another type as it is written is no clause by itself.
                if (itself === undefined || !truths.includes(told)) continue;
                if (told !== itself) wrong.push([text, told, itself]);
                seen.expressions += 1;
              }
            }
          }
          expect(wrong).toEqual([]);
        }
      }),
      { numRuns: runs },
    );
    expect(seen.clauses).toBeGreaterThan(3 * runs);
    expect(seen.parts).toBeGreaterThan(11 * runs);
    expect(seen.expressions).toBeGreaterThan(4 * runs);
    expect(seen.unasked).toBeGreaterThan(runs / 4);
    expect(seen.verdicts.size).toBe(6);
    expect([...seen.values].sort()).toEqual(truths.toSorted());
  });

  it('names changes that flip the decision, each of which is needed', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(requests, approvalLists, policies, (request, approvals, list) => {
        const facts = factsOf(request, approvals, list);
        const proof = prove(facts, new Room(new Steps(Infinity)));
        const { flips } = flipsOf(facts, proof, new Steps(Infinity));
        const world: World = { request, approvals, list, known: users };
        const doing = (changes: readonly Change[]) =>
          decided(changes.reduce((now, one) => after(one, now), world)).outcome;
        for (const { changes, outcome } of flips) {
          expect([changes, doing(changes)]).toEqual([changes, outcome]);
          expect(rank[outcome]).toBeGreaterThan(rank[proof.outcome]);
          for (const change of changes) {
            const others = changes.filter((one) => one !== change);
            if (areTaken(others, world)) expect(rank[doing(others)]).toBeLessThan(rank[outcome]);
          }
          expect([changes, areTaken(changes, world)]).toEqual([changes, true]);
          const kind = changes
            .map((change) => change.kind)
            .sort()
            .join(' + ');
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
        }
        // No single vote that would be taken is overlooked, and none is told that would be refused.
        if (proof.outcome === 'allow' || flips.length === 30) return;
        const voting = users.filter(
          ({ userId, credentials }) => credentials.length > 0 && !approvals.some((one) => one.userId === userId),
        );
        const told = flips.flatMap(({ changes: [one, ...more] }) =>
          one?.kind === 'vote' && more.length === 0 ? [one.userId] : [],
        );
        const flipping = voting.filter(({ userId }) => {
          const vote: Change = { kind: 'vote', userId };
          return areTaken([vote], world) && rank[doing([vote])] > rank[proof.outcome];
        });
        expect(told).toEqual(flipping.map(({ userId }) => userId));
      }),
      { numRuns: isLong ? 3_000 : 300 },
    );
    for (const kind of ['vote', 'asked-by', 'tag-added', 'policy-gone', 'clause-gone', 'root-quorum-member']) {
      expect([kind, seen.has(kind)]).toEqual([kind, true]);
    }
    expect([...seen.keys()].filter((kind) => kind.includes('+')).length).toBeGreaterThan(2);
  });
});

describe('an explanation of much', () => {
  const many = Array.from({ length: 2_000 }, (_, index) =>
    policy({
      policyId: `p${index}`,
      policyName: '€'.repeat(300),
      condition: `requester.id == '€${'x'.repeat(90)}${index}' || ${Array.from({ length: 50 }, () => `requester.id == '${'€'.repeat(70)}'`).join(' || ')}`,
    }),
  );
  const request: AuthorizationRequest = {
    activity: { type: 'ACTIVITY_TYPE_CREATE_WALLET', kind: 'CREATE_WALLET', params: {} },
    submitterId: 'ops-1',
    rootQuorumOnly: false,
    ownCredentials: false,
  };
  const cast = users
    .filter(({ userId }) => userId === 'ops-1')
    .map(({ userId, credentials }) => ({ userId, credential: credentials[0]! }));

  it('ends at 3 MiB, and says that it left something out', () => {
    const payloads = Array.from({ length: 5 }, (_, index) => ({ name: String(index), resources: {} }));
    const facts = factsOf({ ...request, parts: payloads }, cast, many.slice(0, 300));
    const proof = prove(facts, new Room(new Steps(Infinity)));
    expect(proof.isCut).toBe(true);
    expect(proof.parts[0]!.policies.length).toBeGreaterThan(40);
    expect(Buffer.byteLength(JSON.stringify(proof))).toBeLessThan(3 * 2 ** 20);
  });

  it('reserves 7 KiB for a policy, and 5 KiB for each part of a clause, of which 500 are told', () => {
    const room = new Room(new Steps());
    expect(room.partsOfClause()).toBe(500);
    room.take((3 * 1_024 - 8) * 1_024);
    expect(room.partsOfClause()).toBe(1);
    expect([room.takePolicy(), room.isCut]).toEqual([true, false]);
    expect([room.takePolicy(), room.isCut]).toEqual([false, true]);
  });

  it('tells 200 policies of each payload', () => {
    const short = Array.from({ length: 250 }, (_, index) => policy({ policyId: `p${index}`, condition: '1 == 2' }));
    const proof = prove(factsOf(request, cast, short), new Room(new Steps(Infinity)));
    expect([proof.parts[0]!.policies.length, proof.isCut]).toEqual([200, true]);
  });

  it('tries as many changes as its steps last, and says that there may be others', () => {
    const facts = factsOf(request, cast, many.slice(0, 300));
    const proof = prove(facts, new Room(new Steps(Infinity)));
    const steps = new Steps(5_000_000);
    expect(flipsOf(facts, proof, steps).isCut).toBe(true);
    expect(steps.spent).toBeLessThanOrEqual(5_000_000);
    expect(flipsOf(facts, proof, new Steps(1_000))).toEqual({ flips: [], isCut: true });
  });

  it('tries 100 users, 20 tags of eight of them, and 50 policies, and says that there are others', () => {
    const people = Array.from({ length: 120 }, (_, index) => ({ ...users[0]!, userId: `u${index}`, tags: [] }));
    const tagged = Array.from({ length: 25 }, (_, index) => `requester.tags.contains('t${index}')`).join(' && ');
    const list = Array.from({ length: 60 }, (_, index) => policy({ policyId: `p${index}`, condition: tagged }));
    const facts = { request, approvals: cast, context: { ...contextOf(list), users: [...users, ...people] } };
    const proof = prove(() => facts, new Room(new Steps(Infinity)));
    const { changes, isCut } = candidateChanges(facts, proof);
    const count = (kind: Change['kind']) => changes.filter((change) => change.kind === kind).length;
    const concerned = new Set(changes.flatMap((change) => (change.kind === 'tag-added' ? [change.userId] : [])));
    expect(isCut).toBe(true);
    expect([count('vote'), count('asked-by'), count('clause-gone')]).toEqual([100, 100, 50]);
    expect([concerned.size, count('tag-added')]).toEqual([8, 8 * 20]);
  });

  /** How many decisions were made to look for flips each of which costs about the same. */
  function triesOf(approvers: number): { readonly tries: number; readonly changes: number; readonly isCut: boolean } {
    const people = Array.from({ length: 150 }, (_, index) => ({ ...users[0]!, userId: `u${index}`, tags: [] }));
    const approvals = people
      .slice(0, approvers)
      .map(({ userId, credentials }) => ({ userId, credential: credentials[0]! }));
    const tagged = Array.from({ length: 19 }, (_, index) => `requester.tags.contains('t${index}')`).join(' && ');
    const list = [policy({ policyId: 'p', condition: tagged }), policy({ policyId: 'q', condition: '1 == 2' })];
    const context = { ...contextOf(list), users: [...users, ...people] };
    const facts = { request, approvals: [...cast, ...approvals], context };
    const one = new Steps(Infinity);
    authorize(facts.request, facts.approvals, { ...context, steps: one });
    const proof = prove(() => facts, new Room(new Steps(Infinity)));
    const steps = new Steps(Infinity);
    const { isCut } = flipsOf(() => facts, proof, steps);
    return { tries: steps.spent / one.spent, changes: candidateChanges(facts, proof).changes.length, isCut };
  }

  it('tries 24 changes in pairs', () => {
    const { tries, changes } = triesOf(0);
    expect(changes).toBeGreaterThan(300);
    // 276 pairs.
    expect(tries).toBeLessThan(changes + 400);
  });

  it('tries 1,000 changes, and says that there are others', () => {
    const { tries, changes, isCut } = triesOf(60);
    expect(changes).toBeGreaterThan(1_300);
    expect([tries < 1_200, isCut]).toEqual([true, true]);
  });

  it('names 30 flips, and says that there are others', () => {
    const people = Array.from({ length: 60 }, (_, index): PolicyUser => {
      const userId = `u${index}`;
      const credential = { id: `key ${index}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '02' };
      return { userId, userName: userId, tags: [], credentials: [credential] };
    });
    const list = [policy({ policyId: 'p', consensus: 'approvers.count() >= 2' })];
    const known = [...users, ...people];
    const facts = () => ({ request, approvals: cast, context: { ...contextOf(list), users: known } });
    const { flips, isCut } = flipsOf(facts, prove(facts, new Room(new Steps(Infinity))), new Steps(Infinity));
    expect([flips.length, isCut]).toEqual([30, true]);
  });

  it('leaves out the trees of clauses when steps are few, and keeps their values', () => {
    const proof = prove(factsOf(request, cast, many.slice(0, 5)), new Room(new Steps(1_000)));
    expect(proof.isCut).toBe(true);
    const clauses = proof.parts[0]!.policies.flatMap((one) => one.clauses);
    expect(clauses.map(({ value, tree }) => [value, tree])).toEqual(clauses.map(() => ['false', undefined]));
  });
});

function ruleOf({ outcome, by, evaluations }: Authorization): string {
  if (evaluations.some((one) => one.outcome === 'OUTCOME_DENY_EXPLICIT')) return 'denials';
  if (outcome !== 'allow') return 'implicit-denial';
  return by === 'own-credentials' ? by : 'allows';
}
