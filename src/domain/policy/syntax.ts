import type { FunctionCall, WrittenCall } from './functions/function.js';
import type { PolicyType, PolicyValue } from './types.js';

/** A position in the text of a policy, both 1-based; columns count UTF-16 code units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * A policy's text is not valid in the language, or refers to something that does not exist. The message ends with the
 * position.
 */
export class PolicyError extends Error {
  readonly at: Position;

  constructor(message: string, at: Position) {
    super(located(message, at));
    this.name = 'PolicyError';
    // V8 keeps whatever the functions of a trace were called on: here a parser and its tokens, while a refused clause is cached.
    this.stack = `${this.name}: ${this.message}`;
    this.at = at;
  }
}

/** One line of limited length that ends with the position, whatever a policy's text put into it. */
export function located(message: string, { line, column }: Position): string {
  const text = /[\p{Cc}\u2028\u2029]/u.test(message) ? message.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ') : message;
  return `${text.length > 300 ? `${text.slice(0, 300)}…` : text} (line ${line}, column ${column})`;
}

export type ComparisonOperator = '==' | '!=' | '<' | '<=' | '>' | '>=';
/**
 * When two values are equal. `exact`: same type and value. `hex`: same text except for letter case. `prefixed-hex`: the
 * same if both are hexadecimal with 0x. `dynamic`: their types are compared first, because a policy's text fixed none.
 */
export type Equality = 'exact' | 'hex' | 'prefixed-hex' | 'dynamic';

/** A piece of a policy's text, as offsets in UTF-16 code units: its start, and the start of what follows. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A policy's text before types are known. `&&` and `||` are flat, so that long chains are not deep. */
export type Expression = { readonly at: Position } & (
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'field'; readonly of: Expression; readonly field: string }
  | { readonly kind: 'index'; readonly of: Expression; readonly index: Expression }
  | { readonly kind: 'slice'; readonly of: Expression; readonly from: Expression; readonly to: Expression }
  | ({ readonly kind: 'call' } & WrittenCall)
  | { readonly kind: 'not'; readonly operand: Expression }
  | {
      readonly kind: 'logical';
      readonly operator: '&&' | '||';
      readonly operands: readonly Expression[];
      /** The position of each operand. */
      readonly spans: readonly Span[];
    }
  | {
      readonly kind: 'comparison';
      readonly operator: ComparisonOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly kind: 'in'; readonly item: Expression; readonly of: Expression }
);

/**
 * A typed expression, the only thing that can be evaluated. A variable is a slot, numbered by the predicates that
 * enclose its own; `path` is the field as written, for messages.
 */
export type CheckedExpression = FunctionCall | GrammarNode;

/** What the grammar has besides functions. */
type GrammarNode = { readonly at: Position; readonly type: PolicyType } & (
  | { readonly kind: 'constant'; readonly value: PolicyValue }
  | { readonly kind: 'root'; readonly name: string }
  | { readonly kind: 'variable'; readonly slot: number; readonly path: string }
  | { readonly kind: 'list'; readonly items: readonly CheckedExpression[] }
  | { readonly kind: 'field'; readonly of: CheckedExpression; readonly field: string; readonly path: string }
  | { readonly kind: 'index'; readonly of: CheckedExpression; readonly index: CheckedExpression; readonly path: string }
  | {
      readonly kind: 'slice';
      readonly of: CheckedExpression;
      readonly from: CheckedExpression;
      readonly to: CheckedExpression;
    }
  | { readonly kind: 'not'; readonly operand: CheckedExpression }
  | {
      readonly kind: 'logical';
      readonly operator: '&&' | '||';
      readonly operands: readonly CheckedExpression[];
      readonly spans: readonly Span[];
    }
  | {
      readonly kind: 'comparison';
      readonly operator: ComparisonOperator;
      readonly equality: Equality;
      readonly left: CheckedExpression;
      readonly right: CheckedExpression;
    }
  /** A dynamic value where the text needs this expression's type. */
  | { readonly kind: 'cast'; readonly of: CheckedExpression }
);

/** The bounds of the integer types, inclusive; dynamic integers are those of a contract: int256 and uint256. */
export const integerRange = {
  int: { min: -(2n ** 127n), max: 2n ** 127n - 1n },
  uint: { min: 0n, max: 2n ** 256n - 1n },
  dynamic: { min: -(2n ** 255n), max: 2n ** 256n - 1n },
} as const;
