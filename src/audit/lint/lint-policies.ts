import { OutOfSteps, Steps } from '../../domain/steps.js';
import { PolicyError } from '../../domain/policy/syntax.js';
import type { Policy } from '../../domain/policy/types.js';
import { lintGrants } from './lint-grants.js';
import { lintReach, truthForAll } from './lint-reach.js';
import {
  compiled,
  type Finding,
  type Linting,
  type LintRules,
  type LintSubject,
  type ReadPolicy,
} from './lint-subject.js';
import { lintText } from './lint-text.js';
import { lintVoters } from './lint-voters.js';

/** Budget of one answer, in a thread of its own: a second. */
const lintSteps = 10_000_000;
/** Maximum number of findings told. */
const mostFindings = 1_000;

/** Findings in the order of the policies, problems of a policy first. */
export interface LintReport {
  readonly findings: readonly Finding[];
  /** Why something was left out. */
  readonly notComplete?: string;
}

const ranks = ['problem', 'warning', 'note'];

/** Looks for policies without effect, and for the traps of the language. Finds some mistakes, not all. */
export function lintPolicies(subject: LintSubject, rules: LintRules, steps = new Steps(lintSteps)): LintReport {
  const found: Finding[] = [];
  let isCut = false;
  try {
    const policies = subject.policies.map((policy) => readPolicy(policy, rules, steps));
    const linting: Linting = { subject, rules, policies, steps };
    for (const check of [lintText, lintReach, lintGrants, lintVoters]) {
      for (const one of check(linting)) {
        // What runs out of steps may have come out wrong.
        if (steps.left <= 0) break;
        found.push(one);
      }
    }
    isCut = steps.left <= 0;
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error;
    isCut = true;
  }
  const places = new Map(subject.policies.map(({ policyId }, place) => [policyId, place]));
  const findings = found.toSorted(
    (one, other) =>
      places.get(one.policyId)! - places.get(other.policyId)! ||
      ranks.indexOf(one.severity) - ranks.indexOf(other.severity),
  );
  const notComplete = isCut
    ? 'looking at all policies would take too long'
    : findings.length > mostFindings
      ? `only the first ${mostFindings} findings are listed`
      : undefined;
  return { findings: findings.slice(0, mostFindings), ...(notComplete === undefined ? {} : { notComplete }) };
}

function readPolicy(policy: Policy, { environment, activities }: LintRules, steps: Steps): ReadPolicy {
  const read = (clause: 'condition' | 'consensus' | 'time') => {
    const expression = compiled(policy[clause], clause, environment);
    steps.take('clauseCharacter', policy[clause]?.length ?? 0);
    return expression instanceof PolicyError ? undefined : expression;
  };
  const condition = read('condition');
  const isValid = policy.condition === undefined || condition !== undefined;
  const admits = activities.filter((activity) => isValid && truthForAll(condition, activity, steps) !== false);
  return { policy, condition, consensus: read('consensus'), time: read('time'), admits };
}
