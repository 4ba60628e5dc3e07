import { partsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import type { PolicyValue } from './types.js';

/** A predicate of one approval: `body` reads it as the variable `slot`, and no other. */
export interface Predicate {
  readonly body: CheckedExpression;
  readonly slot: number;
}

/**
 * One way an expression looks at the approvals: `list.filter(…)….any(…)`, `.all(…)` or `.count()`. `node` is the part of
 * it that does so.
 */
export interface Term {
  readonly node: CheckedExpression;
  readonly list: 'approvers' | 'credentials';
  readonly filters: readonly Predicate[];
  readonly last: ({ readonly method: 'any' | 'all' } & Predicate) | 'count';
}

/**
 * How much an expression can tell approvals apart.
 * `symmetric`: it looks at each alone and counts, so that only how many there are of each signature matters, and no more
 * than `cap` of one: `cap` is beyond every number it compares a count with.
 * `subsets`: it relates approvals to each other. Those are alike that agree in all `fields` that it reads, where texts
 * that only one user has, and the expression does not name, stand for each other unless it `takesApart` texts.
 * `ordered`: it picks by position, so that the order matters as well.
 */
export type Analysis =
  | { readonly kind: 'symmetric'; readonly terms: readonly Term[]; readonly cap: number }
  | {
      readonly kind: 'subsets';
      readonly cap: number;
      readonly fields: ReadonlySet<string>;
      readonly takesApart: boolean;
      /** The texts that the expression names. */
      readonly texts: ReadonlySet<string>;
    }
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

/** Where a part of an expression stands: in no quantifier, in those over other lists only, or in one over approvals. */
type Place = 'outside' | 'in-list' | 'in-approvals';

class Analyser {
  private readonly terms: Term[] = [];
  private readonly fields = new Set<string>();
  private readonly texts = new Set<string>();
  private largest = 0n;
  private isCapped = true;
  private isOrdered = false;
  private isRelational = false;
  private takesApart = false;

  analyse(consensus: CheckedExpression): Analysis {
    this.visit(consensus, 'outside');
    if (this.isOrdered) return { kind: 'ordered' };
    // Beyond any number of users is as good as no cap.
    const cap = this.isCapped && this.largest < 1_000_000n ? Number(this.largest) + 1 : Infinity;
    if (!this.isRelational) return { kind: 'symmetric', terms: this.terms, cap };
    const { fields, texts, takesApart } = this;
    // Each quantifier may hold on to one approval beside those that are counted.
    return { kind: 'subsets', cap: cap + depthOf(consensus), fields, texts, takesApart };
  }

  private visit(node: CheckedExpression, place: Place): void {
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
        for (const item of node.items) this.visit(item, place);
        return;
      case 'field':
        this.fields.add(node.field);
        this.visit(node.of, place);
        return;
      case 'cast':
        this.visit(node.of, place);
        return;
      case 'index':
        this.takesApart = true;
        this.visit(node.of, place);
        this.visit(node.index, place);
        return;
      case 'slice':
        this.takesApart = true;
        this.visit(node.of, place);
        this.visit(node.from, place);
        this.visit(node.to, place);
        return;
      case 'not':
        this.visit(node.operand, place);
        return;
      case 'logical':
        for (const operand of node.operands) this.visit(operand, place);
        return;
      case 'comparison':
        this.compared(node.left, node.right.kind === 'constant', place);
        this.compared(node.right, node.left.kind === 'constant', place);
        return;
      case 'contains':
        this.compared(node.item, node.of.kind === 'constant', place);
        this.visit(node.of, place);
        return;
      case 'count':
        this.compared(node, false, place);
        return;
      case 'quantifier': {
        const source = sourceOf(node.of);
        if (source && node.method !== 'filter') {
          const { method, body, slot } = node;
          this.term({ node, ...source, last: { method, body, slot } }, place);
        } else {
          this.visit(node.of, place);
          this.visit(node.body, source || place === 'in-approvals' ? 'in-approvals' : 'in-list');
        }
        return;
      }
    }
  }

  /** A count of approvals that meets anything but constants may matter beyond every number in the text. */
  private compared(node: CheckedExpression, isWithConstant: boolean, place: Place): void {
    if (node.kind !== 'count') return this.visit(node, place);
    const source = sourceOf(node.of);
    if (!source) return this.visit(node.of, place);
    this.term({ node, ...source, last: 'count' }, place);
    if (!isWithConstant) this.isCapped = false;
  }

  private term(term: Term, place: Place): void {
    const predicates = term.last === 'count' ? term.filters : [...term.filters, term.last];
    for (const { body } of predicates) this.visit(body, 'in-approvals');
    if (place === 'in-approvals') this.isRelational = true;
    // Within a quantifier over another list it is the same for each element, unless it speaks of the element.
    else if (predicates.some(({ body, slot }) => readsOther(body, slot))) this.isRelational = true;
    this.terms.push(term);
  }

  private constant(value: PolicyValue): void {
    if (typeof value === 'bigint' && value > this.largest) this.largest = value;
    if (typeof value === 'string') this.texts.add(value);
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
  return source && { list: source.list, filters: [...source.filters, list] };
}

/** Whether a predicate speaks of a variable of a quantifier around it. */
function readsOther(body: CheckedExpression, slot: number): boolean {
  // Quantifiers within have higher slots.
  if (body.kind === 'variable') return body.slot < slot;
  return partsOf(body).some((part) => readsOther(part, slot));
}

/** How many quantifiers and counts lie within each other. */
function depthOf(node: CheckedExpression): number {
  const own = node.kind === 'quantifier' || node.kind === 'count' ? 1 : 0;
  return own + partsOf(node).reduce((most, part) => Math.max(most, depthOf(part)), 0);
}
