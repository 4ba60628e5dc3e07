import { OutOfSteps, Steps, weights, type Work } from '../steps.js';
import { graver, stronger, type Outcome, type Reading } from './doubt.js';
import { areDynamicallyEqual, areEqual } from './equality.js';
import type { Predicate } from './functions/function.js';
import { located, type CheckedExpression, type Position } from './syntax.js';
import { Doubt, NotApplicable, Unreadable, type PolicyType, type PolicyValue } from './types.js';
import { isOfType, isRecord, kindOf } from './values.js';

/** Values of the root names in one request, and the time of the decision in milliseconds since the epoch. */
export interface Scope {
  readonly now: number;
  /** Undefined if the request has no such thing. Called once per mention: cache what is costly to build. */
  value(name: string): PolicyValue | undefined;
}

/** Maximum steps of one evaluation of a clause: 10 ms. */
export const maxSteps = 100_000;

/**
 * The value of a checked expression for a request. Total and deterministic, and the order of operands never matters:
 * both sides of `&&` and `||`, and every element of a list, are always evaluated. The cost is taken from `steps`; an
 * expression that needs more than there are, or more than `maxSteps`, is unreadable.
 */
export function evaluate(expression: CheckedExpression, scope: Scope, steps = new Steps()): Reading {
  return new Evaluation(scope, steps).run(expression);
}

/** Like `evaluate`, for a quantifier's body and one element. It reads no other variable. */
export function evaluateBody({ body, slot }: Predicate, element: PolicyValue, scope: Scope, steps: Steps): Reading {
  const evaluation = new Evaluation(scope, steps);
  evaluation.variables[slot] = element;
  return evaluation.run(body);
}

/** Like `evaluate`, if the values of some parts are already known. */
export function evaluateWith(
  known: ReadonlyMap<CheckedExpression, PolicyValue>,
  expression: CheckedExpression,
  scope: Scope,
  steps: Steps,
): Reading {
  return new Evaluation(scope, steps, known).run(expression);
}

/** What has a place in the text. */
export interface Place {
  readonly at: Position;
}

const start: Place = { at: { line: 1, column: 1 } };

/** One evaluation in progress, as functions of the language see it. */
export class Evaluation {
  /** The values of predicates' variables, by slot. */
  readonly variables: (PolicyValue | undefined)[] = [];
  private readonly budget: Steps;
  /** Steps taken and not yet settled: to count each through all budgets would take longer than most of the work. */
  private taken = 0;
  /** How many may be. */
  private most = 0;
  private last: Place = start;
  /** One reason of each kind is enough: a long list does not need as many. */
  private unreadable: Unreadable | undefined;
  private notApplicable: NotApplicable | undefined;

  constructor(
    private readonly scope: Scope,
    steps: Steps,
    private readonly known?: ReadonlyMap<CheckedExpression, PolicyValue>,
  ) {
    this.budget = steps.upTo(maxSteps);
  }

  /** The budget, for what counts by itself. */
  get steps(): Steps {
    this.settle();
    return this.budget;
  }

  /** The time of the decision. */
  get now(): number {
    return this.scope.now;
  }

  /** The value of the whole expression. */
  run(expression: CheckedExpression): Reading {
    let value: PolicyValue;
    try {
      value = this.value(expression);
    } catch (error) {
      if (!(error instanceof OutOfSteps)) throw error;
      value = this.unreadable = new Unreadable(located(`more than ${error.budget} steps are needed`, this.last.at));
    } finally {
      this.settle();
    }
    const truth = value instanceof Doubt ? value.kind : value === true ? 'true' : 'false';
    return { truth, doubt: this.unreadable ?? this.notApplicable };
  }

  // The methods that run for every part have no functions within: V8 would put what those refer to on the heap, each time.

  /** The value of a part of the expression. */
  value(node: CheckedExpression): PolicyValue {
    // As `step` does, for a weight that is known here: looking it up takes as long as the rest.
    this.last = node;
    if (this.taken + weights.policyNode <= this.most) this.taken += weights.policyNode;
    else this.stepBeyond('policyNode', 1);
    switch (node.kind) {
      case 'constant':
        return node.value;
      case 'root': {
        // It may count, too.
        this.settle();
        const value = this.scope.value(node.name);
        return value === undefined ? this.lacks(node, node.name) : this.typed(value, node, node.name);
      }
      case 'variable':
        return this.typed(this.variables[node.slot], node, node.path);
      case 'list':
        return this.items(node);
      case 'field': {
        const record = this.value(node.of);
        if (record instanceof Doubt) return record;
        const fields = record as Readonly<Record<string, PolicyValue | undefined>>;
        return this.typed(Object.hasOwn(fields, node.field) ? fields[node.field] : undefined, node, node.path);
      }
      case 'index':
        return this.index(node);
      case 'slice':
        return this.slice(node);
      case 'call':
        return this.given(node) ?? node.evaluate(this);
      case 'not': {
        const operand = this.outcome(node.operand);
        return operand instanceof Doubt ? operand : !operand;
      }
      case 'logical': {
        const isAnd = node.operator === '&&';
        let result: Outcome = isAnd;
        for (const operand of node.operands) result = stronger(isAnd, result, this.outcome(operand));
        return result;
      }
      case 'comparison':
        return this.comparison(node);
      case 'cast':
        return this.cast(node);
    }
  }

  private items({ items }: Extract<CheckedExpression, { kind: 'list' }>): PolicyValue {
    return items.map((item) => this.value(item));
  }

  private cast(node: Extract<CheckedExpression, { kind: 'cast' }>): PolicyValue {
    const value = this.value(node.of);
    if (value instanceof Doubt || isOfType(value, node.type)) return value;
    return this.cannotRead(node, () => `${kindOf(value)} is read where the type must be ${node.type.kind}`);
  }

  /** The value of a bool part. */
  outcome(node: CheckedExpression): Outcome {
    return this.value(node) as Outcome;
  }

  /** A value just read, if it has its declared type; values from a request are not trusted to. */
  typed(value: PolicyValue | undefined, node: Place & { readonly type: PolicyType }, path: string): PolicyValue {
    return value !== undefined && isOfType(value, node.type) ? value : this.mistyped(value, node, path);
  }

  private mistyped(
    value: PolicyValue | undefined,
    node: Place & { readonly type: PolicyType },
    path: string,
  ): PolicyValue {
    if (value === undefined) return this.cannotRead(node, () => `missing field: ${path}`);
    if (value instanceof Doubt) {
      if (value === this.unreadable || value === this.notApplicable) return value;
      if (value instanceof NotApplicable) return this.lacks(node, path);
      return this.cannotRead(node, () => `${path} cannot be read: ${value.reason}`);
    }
    return this.cannotRead(node, () => `the value of ${path} does not fit its type ${node.type.kind}`);
  }

  /** The marker for a present but unreadable value; its reason is built once. */
  cannotRead(node: Place, reason: () => string): Unreadable {
    return (this.unreadable ??= new Unreadable(located(reason(), node.at)));
  }

  /** The marker for what the request does not have; its reason is built once. */
  protected lacks(node: Place, path: string): NotApplicable {
    return (this.notApplicable ??= new NotApplicable(located(`missing field: ${path}`, node.at)));
  }

  /** Counts work about to be done. @throws {OutOfSteps} */
  step(node: Place, work: Work, count = 1): void {
    this.last = node;
    const steps = weights[work] * count;
    if (this.taken + steps <= this.most) this.taken += steps;
    else this.stepBeyond(work, count);
  }

  /** Counts where there is no room known. @throws {OutOfSteps} */
  private stepBeyond(work: Work, count: number): void {
    this.settle();
    const steps = weights[work] * count;
    const { room } = this.budget;
    if (steps > room) {
      this.budget.take(work, count);
    } else {
      this.most = room;
      this.taken = steps;
    }
  }

  /** From here on, room has to be asked for again. */
  private settle(): void {
    if (this.taken > 0) this.budget.settle(this.taken);
    this.taken = 0;
    this.most = 0;
  }

  private given(node: CheckedExpression): PolicyValue | undefined {
    const value = this.known?.get(node);
    return value instanceof Doubt ? this.typed(value, node, 'approvals') : value;
  }

  /** The value of a list part. */
  list(node: CheckedExpression): readonly PolicyValue[] | Doubt {
    return this.value(node) as readonly PolicyValue[] | Doubt;
  }

  private index(node: Extract<CheckedExpression, { kind: 'index' }>): PolicyValue {
    const of = this.value(node.of);
    const key = this.value(node.index);
    const doubt = graver(of, key);
    if (doubt) return doubt;
    if (typeof key === 'string') {
      // An array also has named properties, such as `length`.
      if (!isRecord(of)) return this.cannotRead(node, () => `${kindOf(of)} has no entries: ${node.path}`);
      const map = of as Readonly<Record<string, PolicyValue | undefined>>;
      return this.typed(Object.hasOwn(map, key) ? map[key] : undefined, node, node.path);
    }
    if (typeof key !== 'bigint') return this.cannotRead(node, () => `${kindOf(key)} is no index: ${node.path}`);
    const sequence = this.elements(of, node);
    if (sequence instanceof Doubt) return sequence;
    const position = Number(key);
    if (position < 0 || position >= sequence.length) {
      return this.cannotRead(node, () => `no element \`${position}\`: there are ${sequence.length}`);
    }
    return this.typed(sequence[position], node, node.path);
  }

  private slice(node: Extract<CheckedExpression, { kind: 'slice' }>): PolicyValue {
    const of = this.value(node.of);
    const start = this.value(node.from);
    const end = this.value(node.to);
    const doubt = graver(of, graver(start, end) ?? start);
    if (doubt) return doubt;
    const from = Number(start);
    const to = Number(end);
    const sequence = this.elements(of, node);
    if (sequence instanceof Doubt) return sequence;
    if (from < 0 || from > to || to > sequence.length) {
      return this.cannotRead(node, () => `no slice \`${from}..${to}\`: there are ${sequence.length} elements`);
    }
    if (typeof sequence !== 'string') this.step(node, 'listElement', to - from);
    const part = sequence.slice(from, to);
    return typeof of === 'string' && typeof part !== 'string' ? (part as readonly string[]).join('') : part;
  }

  /** Anything that can be indexed. A string counts as code points, so that no element is part of a character. */
  private elements(of: PolicyValue, node: CheckedExpression): string | readonly PolicyValue[] | Doubt {
    if (typeof of !== 'string') {
      if (!Array.isArray(of)) return this.cannotRead(node, () => `${kindOf(of)} has no elements`);
      return of as readonly PolicyValue[];
    }
    this.step(node, 'characterCompared', of.length);
    if (!/[\ud800-\udfff]/.test(of)) return of;
    this.step(node, 'characterSplit', of.length);
    return Array.from(of);
  }

  private comparison(node: Extract<CheckedExpression, { kind: 'comparison' }>): Outcome {
    const { operator, equality } = node;
    const left = this.value(node.left);
    const right = this.value(node.right);
    const doubt = graver(left, right);
    if (doubt) return doubt;
    if (operator === '==' || operator === '!=') {
      const isEqual =
        equality === 'dynamic'
          ? areDynamicallyEqual(
              this,
              node,
              { value: left, type: node.left.type },
              { value: right, type: node.right.type },
            )
          : areEqual(this, node, equality, left, right);
      return isEqual instanceof Doubt ? isEqual : isEqual === (operator === '==');
    }
    if (equality === 'dynamic' && (typeof left !== 'bigint' || typeof right !== 'bigint'))
      return this.incomparable(node, left, right);
    switch (operator) {
      case '<':
        return left < right;
      case '<=':
        return left <= right;
      case '>':
        return left > right;
      case '>=':
        return left >= right;
    }
  }

  private incomparable(
    node: Extract<CheckedExpression, { kind: 'comparison' }>,
    left: PolicyValue,
    right: PolicyValue,
  ): Outcome {
    return this.cannotRead(node, () => `\`${node.operator}\` cannot compare ${kindOf(left)} with ${kindOf(right)}`);
  }
}
