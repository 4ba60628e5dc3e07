import { Doubt } from '../../domain/policy/types.js';
import type { CheckedExpression, Position, Span } from '../../domain/policy/syntax.js';
import { onOneLine, shownValue } from './shown-value.js';
import { sourceOf, type Source } from './sources.js';
import type { Traced } from './trace.js';

/** The value of one part of a clause for a request, and of the parts that gave it that value. */
export interface PartExplanation {
  /** As the policy's author wrote it, on one line; cut after 200 characters. */
  readonly text: string;
  readonly value: string;
  /** Why it is in doubt; only where the doubt began. */
  readonly doubt?: string;
  /** The element of a list that this predicate was asked of, from 0. */
  readonly element?: number;
  /** What it was read from; only for what is read. */
  readonly source?: Source;
  readonly parts?: readonly PartExplanation[];
  /** Further elements, which are not listed. */
  readonly more?: number;
}

/** Elements listed of one list; those that decided come first. */
const mostElements = 10;

/** What the parts of one clause need to be told. */
export interface Telling {
  readonly text: string;
  readonly spans: ReadonlyMap<Position, Span>;
  readonly submitterId: string;
}

/** A traced evaluation for people: without literals, and with each path in one piece. */
export function explainParts(whole: Traced, telling: Telling): PartExplanation {
  return new PartsTelling(telling).told(whole);
}

class PartsTelling {
  /** What the lists were read from that predicates are being asked about, by the slot of the variable. */
  private readonly elements = new Map<number, Source>();

  constructor(private readonly telling: Telling) {}

  told(traced: Traced, element?: number): PartExplanation {
    const { node, value, parts } = traced;
    const [inner] = parts;
    if (node.kind === 'cast' && inner && !(value instanceof Doubt)) return this.told(inner, element);
    const { parts: within, more } = this.partsOf(traced);
    const isOrigin = value instanceof Doubt && !parts.some((part) => part.value instanceof Doubt);
    const source = isPath(node) ? sourceOf(traced, this.telling.submitterId, this.elements) : undefined;
    return {
      text: this.textOf(node),
      value: shownValue(value),
      ...(isOrigin ? { doubt: onOneLine(value.reason) } : {}),
      ...(element === undefined ? {} : { element }),
      ...(source ? { source } : {}),
      ...(within.length > 0 ? { parts: within } : {}),
      ...(more > 0 ? { more } : {}),
    };
  }

  private partsOf({ node, value, parts }: Traced): {
    readonly parts: readonly PartExplanation[];
    readonly more: number;
  } {
    if (isPath(node)) return { parts: [], more: 0 };
    const isTold = (part: Traced) => part.node.kind !== 'constant';
    const each = node.kind === 'call' ? node.each : undefined;
    if (!each) return { parts: parts.filter(isTold).map((part) => this.told(part)), more: 0 };
    const [list, ...bodies] = parts;
    const source = list && sourceOf(list, this.telling.submitterId, this.elements);
    if (source) this.elements.set(each.slot, source);
    const inOrder = bodies
      .map((body, index) => ({ body, index, isDeciding: body.value === value }))
      .sort((one, other) => Number(other.isDeciding) - Number(one.isDeciding) || one.index - other.index);
    const shown = inOrder.slice(0, mostElements).sort((one, other) => one.index - other.index);
    const told = shown.map(({ body, index }) => this.told(body, index));
    this.elements.delete(each.slot);
    return {
      parts: [...(list && isTold(list) ? [this.told(list)] : []), ...told],
      more: bodies.length - shown.length,
    };
  }

  private textOf({ at }: CheckedExpression): string {
    const { text, spans } = this.telling;
    const span = spans.get(at);
    return onOneLine(span ? text.slice(span.from, span.to) : text);
  }
}

/** A name, or what is read from one step by step: it is told in one piece. */
function isPath(node: CheckedExpression): boolean {
  switch (node.kind) {
    case 'root':
    case 'variable':
      return true;
    case 'field':
    case 'cast':
      return isPath(node.of);
    case 'index':
      return isPath(node.of) && node.index.kind === 'constant';
    default:
      return false;
  }
}
