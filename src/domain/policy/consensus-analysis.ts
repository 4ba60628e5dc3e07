import type { Predicate } from './functions/function.js';
import { approvalNamespaces } from './namespaces.js';
import { partsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import type { PolicyValue } from './types.js';

/** What a function makes of a list of approvals that it looks at one by one, from how many of them count. */
export interface Summary {
  /** Marks an approval that counts: one character, not `d` or `n`. Voters are tried in the order of their marks. */
  readonly letter: string;
  /** What the predicate is of an approval that does not count; undefined where there is none, as all count. */
  readonly neutral: boolean | undefined;
  /** The value, if so many count and none is in doubt. */
  of(counted: number): PolicyValue;
}

/** Approvals under a chain of filters. The predicates read one approval, and no other variable. */
interface Source {
  readonly list: string;
  readonly filters: readonly Predicate[];
}

/**
 * One way an expression looks at the approvals: `list.filter(…)….any(…)`, `.all(…)` or `.count()`. `node` is the part of
 * it that does so, `each` what it asks of every one.
 */
export interface Term extends Source {
  readonly node: CheckedExpression;
  readonly each?: Predicate;
  readonly summary: Summary;
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
export type Place = 'outside' | 'in-list' | 'in-approvals';

/** What a function of the language tells of its use of approvals to. */
export interface ApprovalsReader {
  /** A part that is read. */
  visit(part: CheckedExpression, place: Place): void;
  /** A part whose value is compared. */
  compared(part: CheckedExpression, isWithConstant: boolean, place: Place): void;
  /** The approvals under a chain of filters, or undefined when the list is another. */
  sourceOf(list: CheckedExpression): Source | undefined;
  /** The function looks at each approval of a source alone. */
  term(term: Term, place: Place): void;
  /** How many approvals there are may matter beyond every number in the text. */
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
    // Beyond any number of users is as good as no cap.
    const cap = this.isCapped && this.largest < 1_000_000n ? Number(this.largest) + 1 : Infinity;
    if (!this.isRelational) return { kind: 'symmetric', terms: this.terms, cap };
    const { fields, texts, takesApart } = this;
    // Each function may hold on to one approval beside those that are counted.
    return { kind: 'subsets', cap: cap + depthOf(consensus), fields, texts, takesApart };
  }

  visit(node: CheckedExpression, place: Place): void {
    switch (node.kind) {
      case 'constant':
        this.constant(node.value);
        return;
      case 'root':
        // Reached only where no function of lists takes it: by an index or a slice.
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

function sourceOf(list: CheckedExpression): Source | undefined {
  if (list.kind === 'root' && approvalNamespaces.has(list.name)) return { list: list.name, filters: [] };
  if (list.kind !== 'call' || !list.isFilter || !list.each) return undefined;
  const source = sourceOf(list.each.of);
  return source && { list: source.list, filters: [...source.filters, list.each] };
}

/** Whether a predicate speaks of a variable of a quantifier around it. */
function readsOther(body: CheckedExpression, slot: number): boolean {
  // Quantifiers within have higher slots.
  if (body.kind === 'variable') return body.slot < slot;
  return partsOf(body).some((part) => readsOther(part, slot));
}

/** How many elements are held on to at once, at most. */
function depthOf(node: CheckedExpression): number {
  const own = node.kind === 'call' ? node.holds : 0;
  return own + partsOf(node).reduce((most, part) => Math.max(most, depthOf(part)), 0);
}
