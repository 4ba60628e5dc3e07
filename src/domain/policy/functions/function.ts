import type { ApprovalsReader, Place } from '../consensus-analysis.js';
import type { Evaluation } from '../evaluate.js';
import type { CheckedExpression, Expression, Position } from '../syntax.js';
import type { Clause, PolicyType, PolicyValue } from '../types.js';
import type { Reckoning } from '../worst-case.js';

/** What the text gives a function, by the form of its call. */
export interface CallForms {
  readonly 'list.f()': { readonly of: Expression };
  readonly 'list.f(x)': { readonly of: Expression; readonly argument: Expression };
  readonly 'list.f(v, p)': { readonly of: Expression; readonly variable: string; readonly predicate: Expression };
  readonly 'f(…)': { readonly arguments: readonly Expression[] };
}

type Form = keyof CallForms;

/**
 * A function of the policy language, whole: the parser takes its name and form from here, and what `check` makes of a call
 * says everything else. To add one, write an entry and put it into `table.ts`.
 */
interface FunctionOf<Of extends Form> {
  readonly name: string;
  readonly form: Of;
  /**
   * The call with its types known: a `FunctionCall`, or a constant where the text says it all.
   * @throws {PolicyError} when what it is given does not fit
   */
  check(given: CallForms[Of], at: Position, checking: Checking): CheckedExpression;
}

/** Any entry of the table of functions. */
export type PolicyFunction = { [Of in Form]: FunctionOf<Of> }[Form];

/** A call as it is written: a function, and what it is given. */
export type WrittenCall<Of extends Form = Form> = {
  [Each in Of]: { readonly function: FunctionOf<Each>; readonly given: CallForms[Each] };
}[Of];

/** Gives a call its types. */
export function checkCall<Of extends Form>(call: WrittenCall<Of>, at: Position, checking: Checking): CheckedExpression {
  return call.function.check(call.given, at, checking);
}

/** What checking a call may ask of whoever checks the whole expression. */
export interface Checking {
  readonly clause: Clause;
  check(expression: Expression): CheckedExpression;
  /** @throws {PolicyError} when it is no list */
  listOf(expression: Expression, name: string, at: Position): CheckedExpression;
  /** A predicate of one element of a list, which it reads as a variable. @throws {PolicyError} */
  predicateOf(list: CheckedExpression, given: CallForms['list.f(v, p)'], name: string, at: Position): Predicate;
}

/** A predicate of one element: `body` reads it as the variable `slot`. */
export interface Predicate {
  readonly body: CheckedExpression;
  readonly slot: number;
}

/**
 * A call whose types are known: all that the language has to know of it. What is abstract here every function has to say, or it
 * does not compile.
 */
export abstract class FunctionCall {
  readonly kind = 'call';

  constructor(
    readonly type: PolicyType,
    readonly at: Position,
  ) {}

  /** The expressions it is made of. */
  abstract readonly parts: readonly CheckedExpression[];

  /** Its value. A step is taken for the call itself; it takes what else it costs, before it does it. */
  abstract evaluate(evaluation: Evaluation): PolicyValue;

  /** The most steps that evaluating it takes beside the one for the call, its parts included. */
  abstract worstSteps(reckoning: Reckoning): number;

  /** How many schedules are read with it. */
  abstract readonly schedules: number;

  /** What it looks at approvals for. `isWithConstant`: its value is compared with nothing but constants. */
  abstract readApprovals(reader: ApprovalsReader, place: Place, isWithConstant: boolean): void;

  /** How many elements it holds on to while it looks at others. */
  abstract readonly holds: 0 | 1;

  /** The list whose elements it looks at one by one, and what it asks of each. */
  abstract readonly each: ({ readonly of: CheckedExpression } & Predicate) | undefined;

  /** Whether its value is a list of some of the elements of `each`. */
  abstract readonly isFilter: boolean;

  /** What it looks for in which list: a text there must be one that the list can have. */
  abstract readonly seeks: { readonly item: CheckedExpression; readonly of: CheckedExpression } | undefined;

  /** Whether its value is a number that is never below zero. */
  abstract readonly isCount: boolean;
}
