import { analyse, type Term } from './consensus-analysis.js';
import { approvalNamespaces } from './namespaces.js';
import { rootsOf } from './roots.js';
import type { CheckedExpression, ComparisonOperator } from './syntax.js';

/**
 * A consensus as thresholds: at least so many of the approvals that count for a term, joined by "all of" and "any of".
 * No further approval can undo it, unless that approval is in doubt. A `constant` depends on no approvals; its value is
 * the opposite if `isNegated`.
 */
export type ThresholdFormula =
  | { readonly kind: 'at-least'; readonly count: number; readonly term: number }
  | { readonly kind: 'all' | 'any'; readonly of: readonly ThresholdFormula[] }
  | { readonly kind: 'constant'; readonly node: CheckedExpression; readonly isNegated: boolean };

/** The thresholds that an expression consists of; undefined if it is not known to consist of any. */
export function thresholdsOf(expression: CheckedExpression): ThresholdFormula | undefined {
  const analysis = analyse(expression);
  return analysis.kind === 'symmetric' ? formulaOf(expression, analysis.terms, false) : undefined;
}

function formulaOf(node: CheckedExpression, terms: readonly Term[], isNegated: boolean): ThresholdFormula | undefined {
  if (!readsApprovals(node)) return { kind: 'constant', node, isNegated };
  switch (node.kind) {
    case 'not':
      return formulaOf(node.operand, terms, !isNegated);
    case 'logical': {
      const parts = node.operands.map((operand) => formulaOf(operand, terms, isNegated));
      const of = parts.filter((part) => part !== undefined);
      if (of.length < parts.length) return undefined;
      return { kind: (node.operator === '&&') === isNegated ? 'any' : 'all', of };
    }
    case 'comparison':
      return comparedCount(node, terms, isNegated);
    case 'call': {
      const term = terms.findIndex((one) => one.node === node);
      const summary = terms[term]?.summary;
      // Some element, or not all: true from the first approval on that counts.
      return summary?.of(0) === isNegated && summary.of(1) === !isNegated
        ? { kind: 'at-least', count: 1, term }
        : undefined;
    }
    default:
      return undefined;
  }
}

const mirrored: Readonly<Record<ComparisonOperator, ComparisonOperator>> = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
  '==': '==',
  '!=': '!=',
};

const opposite: Readonly<Record<ComparisonOperator, ComparisonOperator>> = {
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  '==': '!=',
  '!=': '==',
};

function comparedCount(
  { operator, left, right }: Extract<CheckedExpression, { kind: 'comparison' }>,
  terms: readonly Term[],
  isNegated: boolean,
): ThresholdFormula | undefined {
  const isCountLeft = right.kind === 'constant';
  const [counted, number] = isCountLeft ? [left, right] : [right, left];
  if (number.kind !== 'constant' || typeof number.value !== 'bigint') return undefined;
  const term = terms.findIndex(({ node, summary }) => node === counted && typeof summary.of(0) === 'bigint');
  if (term < 0) return undefined;
  const written = isCountLeft ? operator : mirrored[operator];
  const least = leastCount(isNegated ? opposite[written] : written, number.value);
  return least === undefined ? undefined : { kind: 'at-least', count: least, term };
}

/** More than any number of users. */
const never = 2 ** 31;

function leastCount(operator: ComparisonOperator, number: bigint): number | undefined {
  const least = Number(number > BigInt(never) ? BigInt(never) : number);
  if (operator === '>=') return least;
  if (operator === '>') return least + 1;
  return operator === '!=' && number === 0n ? 1 : undefined;
}

function readsApprovals(node: CheckedExpression): boolean {
  return [...rootsOf(node)].some((name) => approvalNamespaces.has(name));
}
