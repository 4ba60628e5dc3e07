import type { ApprovalsReader, Place } from '../consensus-analysis.js';
import type { Evaluation } from '../evaluate.js';
import type { CheckedExpression, Equality, Expression, Position } from '../syntax.js';
import type { Clause, PolicyType, PolicyValue } from '../types.js';
import type { Reckoning } from '../worst-case.js';

/** What the text passes to a function, by the form of its call. */
export interface CallForms {
  readonly 'list.f()': { readonly of: Expression };
  readonly 'list.f(x)': { readonly of: Expression; readonly argument: Expression };
  readonly 'list.f(v, p)': { readonly of: Expression; readonly variable: string; readonly predicate: Expression };
  readonly 'f(…)': { readonly arguments: readonly Expression[] };
}

type Form = keyof CallForms;

/**
 * A function of the policy language, complete: the parser takes its name and form from here, and the result of checking
 * a call says everything else. To add one, write an entry and put it into `table.ts`.
 */
interface FunctionOf<Of extends Form> {
  readonly name: string;
  readonly form: Of;
  /**
   * The typed call: a `FunctionCall`, or a constant if the text determines it.
   * @throws {PolicyError} if an argument does not fit
   */
  check(input: CallForms[Of], at: Position, checking: Checking): CheckedExpression;
}

/** Any entry of the table of functions. */
export type PolicyFunction = { [Of in Form]: FunctionOf<Of> }[Form];

/** A call as written: a function and its arguments. */
export type WrittenCall<Of extends Form = Form> = {
  [Each in Of]: { readonly function: FunctionOf<Each>; readonly given: CallForms[Each] };
}[Of];

/** Determines the types of a call. */
export function checkCall<Of extends Form>(call: WrittenCall<Of>, at: Position, checking: Checking): CheckedExpression {
  return call.function.check(call.given, at, checking);
}

/** What checking a call may use of the expression's checker. */
export interface Checking {
  readonly clause: Clause;
  check(expression: Expression): CheckedExpression;
  /** @throws {PolicyError} if it is not a list */
  listOf(expression: Expression, name: string, at: Position): CheckedExpression;
  /** A predicate on one element of a list, which it reads as a variable. @throws {PolicyError} */
  predicateOf(list: CheckedExpression, input: CallForms['list.f(v, p)'], name: string, at: Position): Predicate;
}

/** A predicate on one element: `body` reads it as the variable `slot`. */
export interface Predicate {
  readonly body: CheckedExpression;
  readonly slot: number;
}

/** What a call does, for those who reason about it without a request. */
export type Meaning =
  | ({ readonly kind: 'any' | 'all' | 'filter'; readonly of: CheckedExpression } & Predicate)
  | {
      readonly kind: 'contains';
      readonly item: CheckedExpression;
      readonly of: CheckedExpression;
      readonly equality: Equality;
    }
  | { readonly kind: 'count'; readonly of: CheckedExpression }
  /** `name` is the same for the same windows. */
  | { readonly kind: 'schedule'; readonly name: string }
  /** Nothing can be said about it without a request. */
  | { readonly kind: 'other' };

/**
 * A typed call: everything that the language needs to know about it. Every function must define what is abstract here,
 * or it does not compile.
 */
export abstract class FunctionCall {
  readonly kind = 'call';

  constructor(
    readonly type: PolicyType,
    readonly at: Position,
  ) {}

  /** Its subexpressions. */
  abstract readonly parts: readonly CheckedExpression[];

  /** Its value. One step is taken for the call itself; it takes any further cost before it does the work. */
  abstract evaluate(evaluation: Evaluation): PolicyValue;

  /** Maximum steps of evaluating it, in addition to the one for the call, including its parts. */
  abstract worstSteps(reckoning: Reckoning): number;

  abstract readonly meaning: Meaning;

  /** Number of schedules parsed with it. */
  abstract readonly schedules: number;

  /** How it looks at approvals. `isWithConstant`: its value is compared only with constants. */
  abstract readApprovals(reader: ApprovalsReader, place: Place, isWithConstant: boolean): void;

  /** Number of elements that it holds on to while it looks at others. */
  abstract readonly holds: 0 | 1;

  /** The list whose elements it looks at one by one, and its predicate. */
  abstract readonly each: ({ readonly of: CheckedExpression } & Predicate) | undefined;

  /** Whether its value is a list of some of the elements of `each`. */
  abstract readonly isFilter: boolean;

  /** What it looks for in which list: a literal there must be one that the list can contain. */
  abstract readonly seeks: { readonly item: CheckedExpression; readonly of: CheckedExpression } | undefined;

  /** Whether its value is a number that is never negative. */
  abstract readonly isCount: boolean;

  /** Whether it is true of an empty list. */
  get isTrueOfNothing(): boolean {
    return false;
  }
}
