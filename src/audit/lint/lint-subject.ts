import type { ActivityAttributes } from '../../domain/policy/demands.js';
import { compileClause } from '../../domain/policy/language.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import { PolicyError, type CheckedExpression, type Position } from '../../domain/policy/syntax.js';
import type { Clause, Policy, PolicyUser } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';

/** What a finding is about, and how much it matters: a `problem` has no effect that anyone can want. */
type Severity = 'problem' | 'warning' | 'note';

/** What is wrong, or easily misunderstood, in a policy. */
export interface Finding {
  readonly policyId: string;
  readonly policyName: string;
  readonly clause?: Clause;
  /** Where in the clause, from 1. */
  readonly line?: number;
  readonly column?: number;
  readonly code: string;
  readonly severity: Severity;
  /** A sentence. */
  readonly text: string;
  /** What to do. */
  readonly help: string;
}

/** The policies of an organization, and what they can name. Only data, for another thread. */
export interface LintSubject {
  readonly policies: readonly Policy[];
  readonly users: readonly PolicyUser[];
  /** Ids of the users who may log in by a contact or an identity, whether they have a credential or not. */
  readonly logsIn: readonly string[];
  readonly rootQuorum: { readonly threshold: number; readonly userIds: readonly string[] };
  /** By origin, as literals have it (`User.tags`): the ids that exist, with their names. */
  readonly names: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** An activity that policies decide on. */
export interface LintActivity extends ActivityAttributes {
  readonly kind: string;
  /** Conditions can read wallets, keys or transactions of it. */
  readonly hasResources: boolean;
}

/** What a build knows. */
export interface LintRules {
  readonly environment: PolicyEnvironment;
  /** Every activity that policies decide on. */
  readonly activities: readonly LintActivity[];
}

/** A policy with its clauses compiled, those that are valid. */
export interface ReadPolicy {
  readonly policy: Policy;
  readonly condition: CheckedExpression | undefined;
  readonly consensus: CheckedExpression | undefined;
  readonly time: CheckedExpression | undefined;
  /** The activities that it may apply to; none if its condition is not valid. */
  readonly admits: readonly LintActivity[];
}

/** Everything that a check may use. */
export interface Linting {
  readonly subject: LintSubject;
  readonly rules: LintRules;
  readonly policies: readonly ReadPolicy[];
  readonly steps: Steps;
}

/** A finding about a place in a clause. */
export function finding(
  { policyId, policyName }: Policy,
  place: { readonly clause: Clause; readonly at?: Position } | undefined,
  said: Pick<Finding, 'code' | 'severity' | 'text' | 'help'>,
): Finding {
  const { clause, at = { line: 1, column: 1 } } = place ?? {};
  return { policyId, policyName, ...(clause === undefined ? {} : { clause, ...at }), ...said };
}

/** A clause as it is evaluated, or why it is not valid. */
export function compiled(
  text: string | undefined,
  clause: Clause,
  environment: PolicyEnvironment,
): CheckedExpression | PolicyError | undefined {
  if (text === undefined) return undefined;
  try {
    return compileClause(text, clause, environment);
  } catch (error) {
    if (error instanceof PolicyError) return error;
    throw error;
  }
}
