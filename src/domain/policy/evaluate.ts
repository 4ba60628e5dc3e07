import { OutOfSteps, Steps, type Work } from '../steps.js';
import { integerRange, located, type CheckedExpression, type Equality, type Position } from './syntax.js';
import { isInCronSpan } from './time.js';
import { AmbiguousText, Doubt, NotApplicable, Unreadable, type PolicyType, type PolicyValue } from './types.js';

/** Values of the root names in one request, and the time of the decision in milliseconds since the epoch. */
export interface Scope {
  readonly now: number;
  /** Undefined when the request has no such thing. Asked once per mention: keep what is costly to make. */
  value(name: string): PolicyValue | undefined;
}

/** Most steps of one evaluation of a clause: 10 ms. */
export const maxSteps = 100_000;

/** The four outcomes of an expression (docs/reference/policy-language.md, "Doubt"). */
export type Truth = 'true' | 'false' | 'unreadable' | 'not-applicable';

/** What an expression is of a request. `doubt` is the gravest anywhere in the text, though the outcome may not rest on it. */
export interface Reading {
  readonly truth: Truth;
  readonly doubt?: Doubt | undefined;
}

/** Whether nothing in the text was in doubt, and all of it is true: what an ALLOW needs. */
export function isCertain({ truth, doubt }: Reading): boolean {
  return truth === 'true' && !doubt;
}

/** The outcome of several expressions that are joined by `&&`. */
export function conjunction(truths: readonly Truth[]): Truth {
  return (['false', 'not-applicable', 'unreadable'] as const).find((truth) => truths.includes(truth)) ?? 'true';
}

/**
 * What a checked expression is of a request. Total and deterministic, and the order of operands never matters: both
 * sides of `&&` and `||` and every element of a list are always evaluated. What it takes is taken from `steps`; an
 * expression that needs more than there are, or more than `maxSteps`, is unreadable.
 */
export function evaluate(expression: CheckedExpression, scope: Scope, steps = new Steps()): Reading {
  return new Evaluation(scope, steps).run(expression);
}

/** As `evaluate`, of a quantifier's body for one element. It reads no other variable than that. */
export function evaluateBody(
  { body, slot }: { readonly body: CheckedExpression; readonly slot: number },
  element: PolicyValue,
  scope: Scope,
  steps: Steps,
): Reading {
  const evaluation = new Evaluation(scope, steps);
  evaluation.variables[slot] = element;
  return evaluation.run(body);
}

/** As `evaluate`, where the values of some parts are known already. */
export function evaluateWith(
  known: ReadonlyMap<CheckedExpression, PolicyValue>,
  expression: CheckedExpression,
  scope: Scope,
  steps: Steps,
): Reading {
  return new Evaluation(scope, steps, known).run(expression);
}

/** What a boolean expression is while it is evaluated. */
type Outcome = boolean | Doubt;

class Evaluation {
  readonly variables: (PolicyValue | undefined)[] = [];
  private readonly steps: Steps;
  private at: Position = { line: 1, column: 1 };
  /** The first of each kind stands for the others: a long list has no need of as many reasons. */
  private unreadable: Unreadable | undefined;
  private notApplicable: NotApplicable | undefined;

  constructor(
    private readonly scope: Scope,
    steps: Steps,
    private readonly known?: ReadonlyMap<CheckedExpression, PolicyValue>,
  ) {
    this.steps = steps.upTo(maxSteps);
  }

  run(expression: CheckedExpression): Reading {
    let value: PolicyValue;
    try {
      value = this.value(expression);
    } catch (error) {
      if (!(error instanceof OutOfSteps)) throw error;
      value = this.unreadable = new Unreadable(located(`more than ${error.budget} steps are needed`, this.at));
    }
    const truth = value instanceof Doubt ? value.kind : value === true ? 'true' : 'false';
    return { truth, doubt: this.unreadable ?? this.notApplicable };
  }

  private value(node: CheckedExpression): PolicyValue {
    this.step(node, 'policyNode');
    switch (node.kind) {
      case 'constant':
        return node.value;
      case 'root': {
        const value = this.scope.value(node.name);
        return value === undefined ? this.lacks(node, node.name) : this.typed(value, node, node.name);
      }
      case 'variable':
        return this.typed(this.variables[node.slot], node, node.path);
      case 'list':
        return node.items.map((item) => this.value(item));
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
      case 'count': {
        const given = this.given(node);
        if (given !== undefined) return given;
        const list = this.list(node.of);
        return list instanceof Doubt ? list : BigInt(list.length);
      }
      case 'contains':
        return this.contains(node);
      case 'quantifier':
        return this.quantifier(node);
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
      case 'cron-span':
        return isInCronSpan(node.span, this.scope.now, this.steps);
      case 'cast': {
        const value = this.value(node.of);
        if (value instanceof Doubt || isOfType(value, node.type)) return value;
        return this.cannotRead(node, () => `${kindOf(value)} is read where the type must be ${node.type.kind}`);
      }
    }
  }

  private outcome(node: CheckedExpression): Outcome {
    return this.value(node) as Outcome;
  }

  /** A value just read, if it is what its declaration says; what comes from a request is not trusted to be. */
  private typed(value: PolicyValue | undefined, node: CheckedExpression, path: string): PolicyValue {
    if (value === undefined) return this.cannotRead(node, () => `missing field: ${path}`);
    if (value instanceof Doubt) {
      if (value === this.unreadable || value === this.notApplicable) return value;
      if (value instanceof NotApplicable) return this.lacks(node, path);
      return this.cannotRead(node, () => `${path} cannot be read: ${value.reason}`);
    }
    if (isOfType(value, node.type)) return value;
    return this.cannotRead(node, () => `the value of ${path} does not fit its type ${node.type.kind}`);
  }

  private cannotRead(node: CheckedExpression, reason: () => string): Unreadable {
    return (this.unreadable ??= new Unreadable(located(reason(), node.at)));
  }

  private lacks(node: CheckedExpression, path: string): NotApplicable {
    return (this.notApplicable ??= new NotApplicable(located(`missing field: ${path}`, node.at)));
  }

  private step(node: CheckedExpression, work: Work, count = 1): void {
    this.at = node.at;
    this.steps.take(work, count);
  }

  private given(node: CheckedExpression): PolicyValue | undefined {
    const value = this.known?.get(node);
    return value instanceof Doubt ? this.typed(value, node, 'approvals') : value;
  }

  private list(node: CheckedExpression): readonly PolicyValue[] | Doubt {
    return this.value(node) as readonly PolicyValue[] | Doubt;
  }

  private index(node: Extract<CheckedExpression, { kind: 'index' }>): PolicyValue {
    const of = this.value(node.of);
    const key = this.value(node.index);
    const doubt = graver(of, key);
    if (doubt) return doubt;
    if (typeof key === 'string') {
      // An array has properties by name too, `length` among them.
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

  /** What can be indexed. A string counts as code points, so that no part of a character is an element. */
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

  private quantifier(node: Extract<CheckedExpression, { kind: 'quantifier' }>): PolicyValue {
    const given = this.given(node);
    if (given !== undefined) return given;
    const list = this.list(node.of);
    if (list instanceof Doubt) return list;
    this.step(node, 'listElement', list.length);
    const kept: PolicyValue[] = [];
    const isAll = node.method === 'all';
    let result: Outcome = isAll;
    let doubt: Doubt | undefined;
    for (const element of list) {
      this.variables[node.slot] = element;
      const outcome = this.outcome(node.body);
      result = stronger(isAll, result, outcome);
      if (outcome === true) kept.push(element);
      else if (outcome !== false) doubt = doubt ? graver(doubt, outcome) : outcome;
    }
    return node.method === 'filter' ? (doubt ?? kept) : result;
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
          ? this.areDynamicallyEqual(
              node,
              { value: left, type: node.left.type },
              { value: right, type: node.right.type },
            )
          : this.areEqual(node, equality, left, right);
      return isEqual instanceof Doubt ? isEqual : isEqual === (operator === '==');
    }
    if (equality === 'dynamic' && (typeof left !== 'bigint' || typeof right !== 'bigint')) {
      return this.cannotRead(node, () => `\`${operator}\` cannot compare ${kindOf(left)} with ${kindOf(right)}`);
    }
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

  private contains(node: Extract<CheckedExpression, { kind: 'contains' }>): Outcome {
    const item = this.value(node.item);
    const list = this.list(node.of);
    const doubt = graver(item, list);
    if (doubt) return doubt;
    const { equality, members } = node;
    if (members && !(item instanceof AmbiguousText)) {
      if (typeof item !== 'string') return members.has(item);
      this.step(node, 'characterCompared', item.length);
      return members.has(equality === 'hex' ? this.lowerCase(node, item) : item);
    }
    const elements = list as readonly PolicyValue[];
    this.step(node, 'elementSought', elements.length);
    const type = node.of.type.kind === 'list' ? node.of.type.of : node.of.type;
    const sought = { value: item, type: node.item.type };
    let result: Outcome = false;
    for (const element of elements) {
      const outcome = this.isSought(node, { value: element, type }, sought);
      result = stronger(false, result, outcome);
    }
    return result;
  }

  private isSought(
    node: Extract<CheckedExpression, { kind: 'contains' }>,
    { value, type }: Operand,
    sought: Operand,
  ): Outcome {
    if (value instanceof Doubt || !isOfType(value, type)) {
      const read = this.typed(value, { ...node, type }, 'an element of the list');
      return read instanceof Doubt ? read : false;
    }
    return node.equality === 'dynamic'
      ? this.areDynamicallyEqual(node, { value, type }, sought)
      : this.areEqual(node, node.equality, value, sought.value);
  }

  private areEqual(node: CheckedExpression, equality: Equality, left: PolicyValue, right: PolicyValue): Outcome {
    if (left instanceof AmbiguousText || right instanceof AmbiguousText) {
      return this.ambiguously(node, equality, left, right);
    }
    if (typeof left === 'string' && typeof right === 'string' && left.length === right.length) {
      this.step(node, 'characterCompared', left.length);
    }
    if (left === right) return true;
    if (equality === 'exact' || typeof left !== 'string' || typeof right !== 'string') return false;
    if (left.length !== right.length) return false;
    if (equality !== 'hex') {
      this.step(node, 'characterFolded', left.length);
      if (!(isPrefixedHex(left) && isPrefixedHex(right))) return false;
    }
    return this.lowerCase(node, left) === this.lowerCase(node, right);
  }

  private ambiguously(node: CheckedExpression, equality: Equality, left: PolicyValue, right: PolicyValue): Outcome {
    const [a, b] = [textOf(left), textOf(right)];
    if (a === undefined || b === undefined) return false;
    const isSame = this.areEqual(node, equality, a, b) === true;
    const doubtful =
      left instanceof AmbiguousText && left.mayBe(b)
        ? left
        : right instanceof AmbiguousText && right.mayBe(a)
          ? right
          : undefined;
    // Two that show the same may still stand for different things, if it is all that they show.
    const areBothVague = left instanceof AmbiguousText && right instanceof AmbiguousText;
    if (!doubtful || (isSame && !areBothVague)) return isSame;
    return this.cannotRead(node, () => doubtful.reason);
  }

  private areDynamicallyEqual(node: CheckedExpression, left: Operand, right: Operand): Outcome {
    const isText = textOf(left.value) !== undefined && textOf(right.value) !== undefined;
    const isScalar = typeof left.value !== 'object' && typeof right.value !== 'object';
    if (isText || (isScalar && typeof left.value === typeof right.value)) {
      return this.areEqual(node, 'prefixed-hex', left.value, right.value);
    }
    // Published policies write the integers of typed data in quotes.
    for (const [one, other] of [
      [left, right],
      [right, left],
    ] as const) {
      if (typeof one.value !== 'bigint' || other.type.kind !== 'string' || typeof other.value !== 'string') continue;
      if (decimalPattern.test(other.value)) return String(one.value) === other.value;
    }
    return this.cannotRead(node, () => `${kindOf(left.value)} cannot be compared with ${kindOf(right.value)}`);
  }

  private lowerCase(node: CheckedExpression, text: string): string {
    this.step(node, 'characterFolded', text.length);
    return text.toLowerCase();
  }
}

/** The one of two operands that keeps a function from having a value: an unreadable one before one that is not there. */
function graver(a: PolicyValue, b: PolicyValue): Doubt | undefined {
  if (a instanceof Unreadable) return a;
  if (b instanceof Unreadable) return b;
  if (a instanceof Doubt) return a;
  return b instanceof Doubt ? b : undefined;
}

/**
 * Which of two outcomes decides: for `&&` false, then not applicable, then unreadable, then true; for `||` true, then
 * unreadable, then not applicable, then false (docs/reference/policy-language.md, "Doubt").
 */
function stronger(isAnd: boolean, a: Outcome, b: Outcome): Outcome {
  return strength(isAnd, b) > strength(isAnd, a) ? b : a;
}

function strength(isAnd: boolean, outcome: Outcome): number {
  if (typeof outcome === 'boolean') return outcome === isAnd ? 0 : 3;
  return outcome instanceof Unreadable === isAnd ? 1 : 2;
}

/** One side of a comparison, and what its type was when the policy was written. */
interface Operand {
  readonly value: PolicyValue;
  readonly type: PolicyType;
}

const decimalPattern = /^(?:0|-?[1-9][0-9]{0,77})$/;

function isPrefixedHex(text: string): boolean {
  return /^0x[0-9a-f]*$/i.test(text);
}

function isMarker(value: object): boolean {
  return value instanceof Doubt || value instanceof AmbiguousText;
}

function isRecord(value: PolicyValue): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isMarker(value);
}

function textOf(value: PolicyValue): string | undefined {
  if (value instanceof AmbiguousText) return value.text;
  return typeof value === 'string' ? value : undefined;
}

/** What a value is, for messages. */
function kindOf(value: PolicyValue): string {
  if (value instanceof AmbiguousText) return 'an ambiguous text';
  switch (typeof value) {
    case 'boolean':
      return 'a bool';
    case 'bigint':
      return 'an integer';
    case 'string':
      return 'a string';
    default:
      return Array.isArray(value) ? 'a list' : 'a record';
  }
}

/** Looks at the value itself, not into it: what lies inside is looked at when it is read. */
function isOfType(value: PolicyValue, type: PolicyType): boolean {
  switch (type.kind) {
    case 'bool':
      return typeof value === 'boolean';
    case 'string':
      return textOf(value) !== undefined;
    case 'timestamp':
      return typeof value === 'bigint';
    case 'dynamic':
      if (typeof value === 'bigint') return value >= integerRange.dynamic.min && value <= integerRange.dynamic.max;
      return typeof value === 'boolean' || textOf(value) !== undefined || Array.isArray(value) || isRecord(value);
    case 'int':
    case 'uint':
      return typeof value === 'bigint' && value >= integerRange[type.kind].min && value <= integerRange[type.kind].max;
    case 'list':
      return Array.isArray(value);
    case 'map':
    case 'record':
      return isRecord(value);
  }
}
