import type { CheckedExpression } from './syntax.js';
import type { PolicyValue } from './types.js';

/** One way an expression looks at the approvals: `list.filter(…)….any(…)`, `.all(…)` or `.count()`. */
export interface Term {
  readonly list: 'approvers' | 'credentials';
  readonly filters: readonly CheckedExpression[];
  readonly last: { readonly method: 'any' | 'all'; readonly body: CheckedExpression } | 'count';
}

/**
 * How much an expression can tell approvals apart.
 * `symmetric`: it looks at each alone and counts, so that only how many there are of each signature matters, and no more
 * than `cap` of one: `cap` is beyond every number it compares a count with.
 * `subsets`: it relates approvals to each other, so that each user stands for itself.
 * `ordered`: it picks by position, so that the order matters as well.
 */
export type Analysis =
  | { readonly kind: 'symmetric'; readonly terms: readonly Term[]; readonly cap: number }
  | { readonly kind: 'subsets' }
  | { readonly kind: 'ordered' };

/** Remembers a pure function of an expression, by its identity. */
const analyses = new WeakMap<CheckedExpression, Analysis>();

/** How much a consensus can tell approvals apart. */
export function analyse(consensus: CheckedExpression): Analysis {
  let analysis = analyses.get(consensus);
  if (!analysis) {
    analysis = new Analyser().analyse(consensus);
    analyses.set(consensus, analysis);
  }
  return analysis;
}

class Analyser {
  private readonly terms: Term[] = [];
  private largest = 0n;
  private isCapped = true;
  private isOrdered = false;
  private isRelational = false;

  analyse(consensus: CheckedExpression): Analysis {
    this.visit(consensus, false);
    if (this.isOrdered) return { kind: 'ordered' };
    if (this.isRelational) return { kind: 'subsets' };
    // Beyond any number of users is as good as no cap.
    const cap = this.isCapped && this.largest < 1_000_000n ? Number(this.largest) + 1 : Infinity;
    return { kind: 'symmetric', terms: this.terms, cap };
  }

  private visit(node: CheckedExpression, isInBody: boolean): void {
    switch (node.kind) {
      case 'constant':
        this.constant(node.value);
        return;
      case 'root':
        // Reached only where no function of lists takes it: by an index or a slice.
        if (isApprovals(node.name)) this.isOrdered = true;
        return;
      case 'variable':
      case 'cron-span':
        return;
      case 'list':
        for (const item of node.items) this.visit(item, isInBody);
        return;
      case 'field':
      case 'cast':
        this.visit(node.of, isInBody);
        return;
      case 'index':
        this.visit(node.of, isInBody);
        this.visit(node.index, isInBody);
        return;
      case 'slice':
        this.visit(node.of, isInBody);
        this.visit(node.from, isInBody);
        this.visit(node.to, isInBody);
        return;
      case 'not':
        this.visit(node.operand, isInBody);
        return;
      case 'logical':
        for (const operand of node.operands) this.visit(operand, isInBody);
        return;
      case 'comparison':
        this.compared(node.left, node.right.kind === 'constant', isInBody);
        this.compared(node.right, node.left.kind === 'constant', isInBody);
        return;
      case 'contains':
        this.compared(node.item, node.of.kind === 'constant', isInBody);
        this.visit(node.of, isInBody);
        return;
      case 'count':
        this.compared(node, false, isInBody);
        return;
      case 'quantifier': {
        const source = sourceOf(node.of);
        if (source && node.method !== 'filter') {
          this.term({ ...source, last: { method: node.method, body: node.body } }, isInBody);
        } else {
          this.visit(node.of, isInBody);
          this.visit(node.body, true);
        }
        return;
      }
    }
  }

  /** A count of approvals that meets anything but constants may matter beyond every number in the text. */
  private compared(node: CheckedExpression, isWithConstant: boolean, isInBody: boolean): void {
    if (node.kind !== 'count') return this.visit(node, isInBody);
    const source = sourceOf(node.of);
    if (!source) return this.visit(node.of, isInBody);
    this.term({ ...source, last: 'count' }, isInBody);
    if (!isWithConstant) this.isCapped = false;
  }

  private term(term: Term, isInBody: boolean): void {
    const bodies = term.last === 'count' ? term.filters : [...term.filters, term.last.body];
    for (const body of bodies) this.visit(body, true);
    if (isInBody) this.isRelational = true;
    this.terms.push(term);
  }

  private constant(value: PolicyValue): void {
    if (typeof value === 'bigint' && value > this.largest) this.largest = value;
    if (Array.isArray(value)) for (const item of value as readonly PolicyValue[]) this.constant(item);
  }
}

function isApprovals(name: string): name is Term['list'] {
  return name === 'approvers' || name === 'credentials';
}

/** The approvals under a chain of filters, or undefined when the list is another. */
function sourceOf(list: CheckedExpression): Pick<Term, 'list' | 'filters'> | undefined {
  if (list.kind === 'root' && isApprovals(list.name)) return { list: list.name, filters: [] };
  if (list.kind !== 'quantifier' || list.method !== 'filter') return undefined;
  const source = sourceOf(list.of);
  return source && { list: source.list, filters: [...source.filters, list.body] };
}
