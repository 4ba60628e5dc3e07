import { stronger, type Outcome } from '../../domain/policy/doubt.js';
import { evaluate, type Scope } from '../../domain/policy/evaluate.js';
import type { CheckedExpression } from '../../domain/policy/syntax.js';
import { Doubt, notApplicable, Unreadable, unreadable } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import { finding, type Finding, type LintActivity, type Linting, type ReadPolicy } from './lint-subject.js';

const unknown = unreadable('it depends on the request');
const allOutcomes: readonly Outcome[] = [true, false, unknown, notApplicable];

/**
 * The value of a condition for every request of an activity, false also if it reads what the activity never has; undefined
 * if it depends on the request.
 */
export function truthForAll(
  condition: CheckedExpression | undefined,
  { hasResources, ...activity }: LintActivity,
  steps: Steps,
): boolean | undefined {
  if (!condition) return true;
  const value = (name: string) => {
    if (name === 'activity') return { ...activity, params: {} };
    return hasResources || name === 'requester' ? unknown : notApplicable;
  };
  const outcomes = outcomesOf(condition, { now: 0, value }, steps);
  if (!outcomes.has(true) && !outcomes.has(unknown)) return false;
  return outcomes.size === 1 && outcomes.has(true) ? true : undefined;
}

/** Every outcome that a condition may have. One evaluation does not tell: there, what never applies hides what is unknown. */
function outcomesOf(node: CheckedExpression, scope: Scope, steps: Steps): ReadonlySet<Outcome> {
  if (node.kind === 'not') {
    const outcomes = outcomesOf(node.operand, scope, steps);
    return new Set(Array.from(outcomes, (one) => (one instanceof Doubt ? one : !one)));
  }
  if (node.kind === 'logical') {
    const isAnd = node.operator === '&&';
    return node.operands.reduce<ReadonlySet<Outcome>>(
      (before, operand) => {
        const further = [...outcomesOf(operand, scope, steps)];
        return new Set([...before].flatMap((one) => further.map((other) => stronger(isAnd, one, other))));
      },
      new Set([isAnd]),
    );
  }
  const { truth, doubt } = evaluate(node, scope, steps);
  if (truth === 'true' || truth === 'false') return new Set([truth === 'true']);
  return new Set(doubt instanceof Unreadable ? allOutcomes : [notApplicable]);
}

/** Policies that have no effect, because of what they say or what others say. */
export function lintReach(linting: Linting): readonly Finding[] {
  return [...linting.policies.flatMap((one) => [...deadOrDenied(one, linting)]), ...duplicates(linting)];
}

function* deadOrDenied(one: ReadPolicy, { policies, steps }: Linting): Generator<Finding> {
  const { policy, admits, condition } = one;
  if (policy.condition !== undefined && !condition) return;
  if (admits.length === 0) {
    yield finding(
      policy,
      { clause: 'condition' },
      {
        code: 'never-applies',
        severity: 'problem',
        text: 'no activity there is can fulfil its condition',
        help: 'compare the parts that are joined by && : none has all of them',
      },
    );
    return;
  }
  if (policy.effect === 'EFFECT_DENY') return;
  const denials = policies.filter(deniesWhoever);
  const covering = admits.map((activity) =>
    denials.find((denial) => isPartOf(denial, one) || truthForAll(denial.condition, activity, steps) === true),
  );
  const [first] = covering;
  if (!first || covering.includes(undefined)) return;
  yield finding(policy, policy.condition === undefined ? undefined : { clause: 'condition' }, {
    code: 'always-denied',
    severity: 'problem',
    text: `whatever it allows is denied, by \`${first.policy.policyName}\``,
    help: 'narrow the DENY, or delete this policy: only the root quorum is above a DENY',
  });
}

/** Whether it is a DENY that applies at any time, whoever has approved, if its condition is true. */
export function deniesWhoever({ policy: { effect, consensus, time } }: ReadPolicy): boolean {
  return effect === 'EFFECT_DENY' && consensus === undefined && time === undefined;
}

/** Whether a DENY says nothing but what the other policy says too, so that it applies whenever that one does. */
function isPartOf(denial: ReadPolicy, other: ReadPolicy): boolean {
  const said = new Set(conjuncts(other));
  const demanded = conjuncts(denial);
  return demanded.length > 0 && demanded.every((text) => said.has(text));
}

function conjuncts({ policy: { condition: text }, condition }: ReadPolicy): readonly string[] {
  if (text === undefined || !condition) return [];
  if (condition.kind !== 'logical' || condition.operator !== '&&') return [text.trim()];
  return condition.spans.map(({ from, to }) => text.slice(from, to).trim());
}

function* duplicates({ policies }: Linting): Generator<Finding> {
  const known = new Map<string, string>();
  for (const { policy } of policies) {
    const { effect, condition, consensus, time, policyName } = policy;
    const said = JSON.stringify([effect, condition, consensus, time]);
    const first = known.get(said);
    if (first === undefined) known.set(said, policyName);
    else {
      yield finding(policy, undefined, {
        code: 'duplicate',
        severity: 'warning',
        text: `it says the same as \`${first}\``,
        help: 'delete one of them: after a change of the other, both still hold',
      });
    }
  }
}
