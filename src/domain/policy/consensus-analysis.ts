import type { Predicate } from './functions/function.js';
import { approvalNamespaces } from './namespaces.js';
import { partsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import type { PolicyValue } from './types.js';

/** How a function that looks at approvals one by one computes its value from the number of those that count. */
export interface Summary {
  /** Marks an approval that counts: one character, not `d` or `n`. Voters are tried in the order of their marks. */
  readonly letter: string;
  /** The predicate's value for an approval that does not count; undefined if all count. */
  readonly neutral: boolean | undefined;
  /** The value, if this many count and none is in doubt. */
  of(counted: number): PolicyValue;
}

/** Approvals under a chain of filters. The predicates read one approval, and no other variable. */
interface Source {
  readonly list: string;
  readonly filters: readonly Predicate[];
}

/**
 * One way in which an expression looks at the approvals: `list.filter(…)….any(…)`, `.all(…)` or `.count()`. `node` is
 * that part of the expression, `each` its predicate.
 */
export interface Term extends Source {
  readonly node: CheckedExpression;
  readonly each?: Predicate;
  readonly summary: Summary;
}

/**
 * How finely an expression distinguishes approvals. `symmetric`: it looks at each alone and counts, so that only the
 * number of each signature matters, up to `cap`, which is beyond every number that it compares a count with. `subsets`:
 * it relates approvals to each other. Approvals are alike if they agree in all `fields` that it reads; texts that only
 * one user has, and that the expression does not name, are interchangeable unless it `takesApart` texts. `ordered`: it
 * picks by position, so the order matters too.
 */
export type Analysis =
  | { readonly kind: 'symmetric'; readonly terms: readonly Term[]; readonly cap: number }
  | {
      readonly kind: 'subsets';
      readonly cap: number;
      readonly fields: ReadonlySet<string>;
      readonly takesApart: boolean;
      /** The literals in the expression. */
      readonly texts: ReadonlySet<string>;
    }
  | { readonly kind: 'ordered' };

/** Caches a pure function of an expression, by its identity. */
const analyses = new WeakMap<CheckedExpression, Analysis>();

/** How finely a consensus distinguishes approvals. */
export function analyse(consensus: CheckedExpression): Analysis {
  let analysis = analyses.get(consensus);
  if (!analysis) {
    analysis = new Analyser().analyse(consensus);
    analyses.set(consensus, analysis);
  }
  return analysis;
}

/** The position of a part: in no quantifier, only in those over other lists, or in one over approvals. */
export type Place = 'outside' | 'in-list' | 'in-approvals';

/** Where a function of the language reports its use of approvals. */
export interface ApprovalsReader {
  /** A part that is read. */
  visit(part: CheckedExpression, place: Place): void;
  /** A part whose value is compared. */
  compared(part: CheckedExpression, isWithConstant: boolean, place: Place): void;
  /** The approvals under a chain of filters, or undefined if the list is another. */
  sourceOf(list: CheckedExpression): Source | undefined;
  /** The function looks at each approval of a source alone. */
  term(term: Term, place: Place): void;
  /** The number of approvals may matter beyond every number in the text. */
  countsWithoutEnd(): void;
}

class Analyser implements ApprovalsReader {
  readonly sourceOf = sourceOf;
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
    // Beyond any number of users, so as good as no cap.
    const cap = this.isCapped && this.largest < 1_000_000n ? Number(this.largest) + 1 : Infinity;
    if (!this.isRelational) return { kind: 'symmetric', terms: this.terms, cap };
    const { fields, texts, takesApart } = this;
    // Each function may hold on to one approval in addition to those that are counted.
    return { kind: 'subsets', cap: cap + depthOf(consensus), fields, texts, takesApart };
  }

  visit(node: CheckedExpression, place: Place): void {
    switch (node.kind) {
      case 'constant':
        this.constant(node.value);
        return;
      case 'root':
        // Reached only if no list function consumes it: by an index or a slice.
        if (approvalNamespaces.has(node.name)) this.isOrdered = true;
        return;
      case 'variable':
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
      case 'call':
        node.readApprovals(this, place, false);
        return;
    }
  }

  compared(node: CheckedExpression, isWithConstant: boolean, place: Place): void {
    if (node.kind === 'call') node.readApprovals(this, place, isWithConstant);
    else this.visit(node, place);
  }

  countsWithoutEnd(): void {
    this.isCapped = false;
  }

  term(term: Term, place: Place): void {
    const predicates = term.each ? [...term.filters, term.each] : term.filters;
    for (const { body } of predicates) this.visit(body, 'in-approvals');
    if (place === 'in-approvals') this.isRelational = true;
    // Within a quantifier over another list, it is the same for each element unless it refers to the element.
    else if (predicates.some(({ body, slot }) => readsOther(body, slot))) this.isRelational = true;
    this.terms.push(term);
  }

  private constant(value: PolicyValue): void {
    if (typeof value === 'bigint' && value > this.largest) this.largest = value;
    if (typeof value === 'string') this.texts.add(value);
    if (Array.isArray(value)) for (const item of value as readonly PolicyValue[]) this.constant(item);
  }
}

function sourceOf(list: CheckedExpression): Source | undefined {
  if (list.kind === 'root' && approvalNamespaces.has(list.name)) return { list: list.name, filters: [] };
  if (list.kind !== 'call' || !list.isFilter || !list.each) return undefined;
  const source = sourceOf(list.each.of);
  return source && { list: source.list, filters: [...source.filters, list.each] };
}

/** Whether a predicate refers to a variable of an enclosing quantifier. */
function readsOther(body: CheckedExpression, slot: number): boolean {
  // Inner quantifiers have higher slots.
  if (body.kind === 'variable') return body.slot < slot;
  return partsOf(body).some((part) => readsOther(part, slot));
}

/** Maximum number of elements held on to at once. */
function depthOf(node: CheckedExpression): number {
  const own = node.kind === 'call' ? node.holds : 0;
  return own + partsOf(node).reduce((most, part) => Math.max(most, depthOf(part)), 0);
}
