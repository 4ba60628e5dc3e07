import fc from 'fast-check';
import { SolverProcess } from '../../packages/analyze/src/solver.js';
import { authorize } from '../../src/domain/policy/authorize.js';
import { compileClause } from '../../src/domain/policy/language.js';
import { evaluate, type Scope } from '../../src/domain/policy/evaluate.js';
import type { Reading } from '../../src/domain/policy/doubt.js';
import { PolicyError } from '../../src/domain/policy/syntax.js';
import type { AuthorizationContext } from '../../src/domain/policy/request-evaluation.js';
import { OpenRequest, type OpenDecision } from '../../packages/analyze/src/smt-request.js';
import { limitsOf } from '../../packages/analyze/src/smt-shape.js';
import { users } from '../domain/policy/generated.js';
import { valuesIn } from './closed.js';
import { cases, environment, type Case } from './random.js';
import { isLong } from '../long.js';

const runs = isLong ? 12_000 : 300;
const rootQuorum = { threshold: 2, userIds: ['root-1', 'root-2'] };
const solver = new SolverProcess(120_000);

afterAll(() => solver.end());

/** What the translation says, as commands whose answers are the values. */
function translated({ policies, request, approvals, now }: Case): {
  readonly script: string;
  readonly decision: OpenDecision;
} {
  const open = new OpenRequest({ environment, users, limits: limitsOf(environment, 3), areUsersOpen: false }, policies);
  const decision = open.decidedBy(policies, rootQuorum);
  const values = valuesIn(open, request, approvals, environment, now);
  const asked = [
    decision.isAllowed,
    ...decision.readings.flatMap(({ reading: { isTrue, isUnreadable, isNotApplicable, isDoubted } }) => [
      isTrue,
      isUnreadable,
      isNotApplicable,
      isDoubted,
    ]),
  ];
  return {
    decision,
    script: `(push)\n${open.script.text(values)}${asked.map((term) => `(simplify ${term})`).join('\n')}\n(echo ".")\n(pop)\n`,
  };
}

/** What the evaluator says, in the same order. */
function evaluated({ policies, request, approvals, now }: Case, { readings }: OpenDecision): readonly string[] {
  const context: AuthorizationContext = { policies, rootQuorum, users, environment, now };
  const user = (userId: string) => users.find((one) => one.userId === userId);
  const cast = approvals.map(({ userId, credential }) => ({ user: user(userId)!, credential }));
  const scope: Scope = {
    now,
    value: (name) => environment.namespaces.get(name)!.value(request, cast, { now, user }),
  };
  const truths = readings.flatMap(({ policy, clause }) => {
    const read = policy[clause] === undefined ? { truth: 'true' as const } : readingOf(policy[clause], clause, scope);
    return [...['true', 'unreadable', 'not-applicable'].map((one) => read.truth === one), read.doubt !== undefined];
  });
  return [authorize(request, approvals, context).outcome === 'allow', ...truths].map(String);
}

function readingOf(text: string, clause: 'condition' | 'consensus' | 'time', scope: Scope): Reading {
  try {
    return evaluate(compileClause(text, clause, environment), scope);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    throw new Error(`a random policy is invalid: ${text}: ${error.message}`);
  }
}

it(`says of ${runs} requests what the evaluator says`, async () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
  const sample = fc.sample(cases, { numRuns: runs, seed });
  const seen = new Map<string, number>();
  const batches = Array.from({ length: Math.ceil(runs / 250) }, (_, at) => sample.slice(250 * at, 250 * (at + 1)));
  let next = batches[0]!.map((one) => translated(one));
  for (const [at, batch] of batches.entries()) {
    const made = next;
    const solved = solver.run(made.map(({ script }) => script).join(''));
    // Done while the solver is at work.
    next = batches[at + 1]?.map((one) => translated(one)) ?? [];
    const expectations = batch.map((one, index) => evaluated(one, made[index]!.decision));
    const answers = (await solved)!.split('\n.\n');
    for (const [index, one] of batch.entries()) {
      const { decision, script } = made[index]!;
      const expected = expectations[index]!;
      const got = answers[index]!.trim().split('\n');
      if (JSON.stringify(got) !== JSON.stringify(expected)) {
        throw new Error(
          `seed ${seed}\n${JSON.stringify(one, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value), 1)}\n${script}\n${differences(decision, got, expected)}`,
        );
      }
      for (const [place, value] of expected.entries()) {
        const kind = place === 0 ? `allow ${value}` : `${['t', 'u', 'n', 'doubt'][(place - 1) % 4]} ${value}`;
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
      }
    }
  }
  // Each outcome is common, or this would prove little.
  for (const kind of ['allow', 't', 'u', 'n', 'doubt']) {
    expect([kind, (seen.get(`${kind} true`) ?? 0) > runs / 25]).toEqual([kind, true]);
  }
}, 900_000);

function differences({ readings }: OpenDecision, got: readonly string[], expected: readonly string[]): string {
  return expected
    .flatMap((value, place) => {
      if (value === got[place]) return [];
      const { policy, clause } = readings[Math.floor((place - 1) / 4)] ?? {};
      const what =
        place === 0 ? 'allowed' : `${clause!} ${policy![clause!]!}: ${['t', 'u', 'n', 'doubt'][(place - 1) % 4]}`;
      return [`${what}: solver ${got[place]}, evaluator ${value}`];
    })
    .join('\n');
}
