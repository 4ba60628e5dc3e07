import { Doubt, Unreadable, type PolicyValue } from './types.js';

/** The four outcomes of an expression (docs/reference/policy-language.md, "Doubt"). */
export type Truth = 'true' | 'false' | 'unreadable' | 'not-applicable';

/**
 * The value of an expression for a request. `doubt` is the gravest anywhere in the text, even if the outcome does not
 * depend on it.
 */
export interface Reading {
  readonly truth: Truth;
  readonly doubt?: Doubt | undefined;
}

/** Whether all of it is true and nothing in the text was in doubt, as an ALLOW requires. */
export function isCertain({ truth, doubt }: Reading): boolean {
  return truth === 'true' && !doubt;
}

/** The outcome of several expressions joined by `&&`. */
export function conjunction(...truths: readonly Truth[]): Truth {
  if (truths.includes('false')) return 'false';
  if (truths.includes('not-applicable')) return 'not-applicable';
  return truths.includes('unreadable') ? 'unreadable' : 'true';
}

/** The value of a boolean expression during evaluation. */
export type Outcome = boolean | Doubt;

/** The one of two operands that leaves a function without a value: unreadable goes before not applicable. */
export function graver(a: PolicyValue, b: PolicyValue): Doubt | undefined {
  if (a instanceof Unreadable) return a;
  if (b instanceof Unreadable) return b;
  if (a instanceof Doubt) return a;
  return b instanceof Doubt ? b : undefined;
}

/**
 * Which of two outcomes prevails: for `&&` false, then not applicable, then unreadable, then true; for `||` true, then
 * unreadable, then not applicable, then false (docs/reference/policy-language.md, "Doubt").
 */
export function stronger(isAnd: boolean, a: Outcome, b: Outcome): Outcome {
  return strength(isAnd, b) > strength(isAnd, a) ? b : a;
}

function strength(isAnd: boolean, outcome: Outcome): number {
  if (typeof outcome === 'boolean') return outcome === isAnd ? 0 : 3;
  return outcome instanceof Unreadable === isAnd ? 1 : 2;
}
