import { integerRange, PolicyEvaluationError, type CheckedExpression, type Equality } from './syntax.js';
import { isInCronSpan } from './time.js';
import { NotApplicable, Unreadable, type PolicyType, type PolicyValue } from './types.js';

/** Values of the root names in one request, and the time of the decision in milliseconds since the epoch. */
export interface Scope {
  readonly now: number;
  /** Undefined when the request has no such thing. Asked once per mention: keep what is costly to make. */
  value(name: string): PolicyValue | undefined;
}

/** Most parts evaluated in one clause, each element of each list counted: about 10 ms. */
export const maxSteps = 100_000;

/** Counts steps over several evaluations. */
export interface Meter {
  steps: number;
}

/**
 * The value of a checked expression. Total and deterministic. Both sides of `&&` and `||` and every element of a list
 * are always evaluated, so an error anywhere is an error of the whole (client protocol 9.2). The steps taken are added
 * to `meter`.
 * @throws {PolicyEvaluationError} and nothing else: a missing value, an index or integer out of range, too many steps
 */
export function evaluate(expression: CheckedExpression, scope: Scope, meter?: Meter): PolicyValue {
  return new Evaluation(scope).run(expression, meter);
}

/** As `evaluate`, of a quantifier's body for one element, where no other quantifier encloses it. */
export function evaluateBody(body: CheckedExpression, element: PolicyValue, scope: Scope, meter?: Meter): PolicyValue {
  const evaluation = new Evaluation(scope);
  evaluation.variables[0] = element;
  return evaluation.run(body, meter);
}

class Evaluation {
  readonly variables: (PolicyValue | undefined)[] = [];
  private steps = 0;

  constructor(private readonly scope: Scope) {}

  run(expression: CheckedExpression, meter: Meter | undefined): PolicyValue {
    if (!meter) return this.value(expression);
    try {
      return this.value(expression);
    } finally {
      meter.steps += this.steps;
    }
  }

  private value(node: CheckedExpression): PolicyValue {
    this.step(node);
    switch (node.kind) {
      case 'constant':
        return node.value;
      case 'root':
        return typed(this.scope.value(node.name), node, node.name);
      case 'variable':
        return typed(this.variables[node.slot], node, node.path);
      case 'list':
        return node.items.map((item) => this.value(item));
      case 'field': {
        const record = this.value(node.of) as Readonly<Record<string, PolicyValue | undefined>>;
        return typed(Object.hasOwn(record, node.field) ? record[node.field] : undefined, node, node.path);
      }
      case 'index':
        return this.index(node);
      case 'slice':
        return this.slice(node);
      case 'count':
        return BigInt(this.list(node.of).length);
      case 'contains': {
        const item = this.value(node.item);
        const list = this.list(node.of);
        return node.equality === 'dynamic'
          ? this.dynamicallyContains(node, list, item)
          : this.contains(node, list, item);
      }
      case 'quantifier':
        return this.quantifier(node);
      case 'not':
        return !(this.value(node.operand) as boolean);
      case 'logical': {
        const isAnd = node.operator === '&&';
        let result = isAnd;
        for (const operand of node.operands) {
          const value = this.value(operand) as boolean;
          if (value !== isAnd) result = value;
        }
        return result;
      }
      case 'comparison':
        return this.comparison(node);
      case 'cron-span':
        return isInCronSpan(node.span, this.scope.now);
      case 'cast': {
        const value = this.value(node.of);
        if (isOfType(value, node.type)) return value;
        throw new PolicyEvaluationError(`${kindOf(value)} is read where the type must be ${node.type.kind}`, node.at);
      }
    }
  }

  private step(node: CheckedExpression, count = 1): void {
    this.steps += count;
    if (this.steps > maxSteps) throw new PolicyEvaluationError(`more than ${maxSteps} steps are needed`, node.at);
  }

  private list(node: CheckedExpression): readonly PolicyValue[] {
    return this.value(node) as readonly PolicyValue[];
  }

  private index(node: Extract<CheckedExpression, { kind: 'index' }>): PolicyValue {
    const of = this.value(node.of);
    const key = this.value(node.index);
    if (typeof key === 'string') {
      // An array has properties by name too, `length` among them.
      if (!isRecord(of)) throw new PolicyEvaluationError(`${kindOf(of)} has no entries: ${node.path}`, node.at);
      const map = of as Readonly<Record<string, PolicyValue | undefined>>;
      return typed(Object.hasOwn(map, key) ? map[key] : undefined, node, node.path);
    }
    if (typeof key !== 'bigint') throw new PolicyEvaluationError(`${kindOf(key)} is no index: ${node.path}`, node.at);
    const sequence = this.elements(of, node);
    const position = Number(key);
    if (position < 0 || position >= sequence.length) {
      throw new PolicyEvaluationError(`no element \`${position}\`: there are ${sequence.length}`, node.at);
    }
    return typed(sequence[position], node, node.path);
  }

  private slice(node: Extract<CheckedExpression, { kind: 'slice' }>): PolicyValue {
    const of = this.value(node.of);
    const from = Number(this.value(node.from));
    const to = Number(this.value(node.to));
    const sequence = this.elements(of, node);
    if (from < 0 || from > to || to > sequence.length) {
      throw new PolicyEvaluationError(`no slice \`${from}..${to}\`: there are ${sequence.length} elements`, node.at);
    }
    const part = sequence.slice(from, to);
    return typeof of === 'string' && typeof part !== 'string' ? (part as readonly string[]).join('') : part;
  }

  /**
   * What can be indexed. A string counts as code points, so that no part of a character is an element; finding them
   * takes time by its length, which the steps must show.
   */
  private elements(of: PolicyValue, node: CheckedExpression): string | readonly PolicyValue[] {
    if (typeof of !== 'string') {
      if (!Array.isArray(of)) throw new PolicyEvaluationError(`${kindOf(of)} has no elements`, node.at);
      const list = of as readonly PolicyValue[];
      this.step(node, list.length >> 6);
      return list;
    }
    this.step(node, of.length >> 10);
    return /[\ud800-\udfff]/.test(of) ? Array.from(of) : of;
  }

  private quantifier(node: Extract<CheckedExpression, { kind: 'quantifier' }>): PolicyValue {
    const kept: PolicyValue[] = [];
    const list = this.list(node.of);
    for (const element of list) {
      this.variables[node.slot] = element;
      if (this.value(node.body) as boolean) kept.push(element);
    }
    if (node.method === 'filter') return kept;
    return node.method === 'any' ? kept.length > 0 : kept.length === list.length;
  }

  private comparison(node: Extract<CheckedExpression, { kind: 'comparison' }>): boolean {
    const { operator, equality } = node;
    const left = this.value(node.left);
    const right = this.value(node.right);
    if (operator === '==' || operator === '!=') {
      const isEqual =
        equality === 'dynamic'
          ? this.areDynamicallyEqual(
              node,
              { value: left, type: node.left.type },
              { value: right, type: node.right.type },
            )
          : this.areEqual(node, equality, left, right);
      return isEqual === (operator === '==');
    }
    if (equality === 'dynamic' && (typeof left !== 'bigint' || typeof right !== 'bigint')) {
      throw new PolicyEvaluationError(`\`${operator}\` cannot compare ${kindOf(left)} with ${kindOf(right)}`, node.at);
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

  private contains(
    node: Extract<CheckedExpression, { kind: 'contains' }>,
    list: readonly PolicyValue[],
    item: PolicyValue,
  ): boolean {
    const { equality, members } = node;
    if (members) return members.has(equality === 'hex' && typeof item === 'string' ? this.lowerCase(node, item) : item);
    this.step(node, list.length);
    return equality === 'exact' ? list.includes(item) : list.some((one) => this.areEqual(node, equality, one, item));
  }

  /** Compares with every element: one of another type is an error also behind one that is equal. */
  private dynamicallyContains(
    node: Extract<CheckedExpression, { kind: 'contains' }>,
    list: readonly PolicyValue[],
    item: PolicyValue,
  ): boolean {
    this.step(node, list.length);
    const type = node.of.type.kind === 'list' ? node.of.type.of : node.of.type;
    const sought = { value: item, type: node.item.type };
    let isFound = false;
    for (const value of list) if (this.areDynamicallyEqual(node, { value, type }, sought)) isFound = true;
    return isFound;
  }

  private areEqual(node: CheckedExpression, equality: Equality, left: PolicyValue, right: PolicyValue): boolean {
    if (left === right) return true;
    if (equality === 'exact' || typeof left !== 'string' || typeof right !== 'string') return false;
    if (left.length !== right.length) return false;
    if (equality !== 'hex' && !(isPrefixedHex(left) && isPrefixedHex(right))) return false;
    return this.lowerCase(node, left) === this.lowerCase(node, right);
  }

  private areDynamicallyEqual(node: CheckedExpression, left: Operand, right: Operand): boolean {
    const isScalar = typeof left.value !== 'object' && typeof right.value !== 'object';
    if (isScalar && typeof left.value === typeof right.value) {
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
    throw new PolicyEvaluationError(`${kindOf(left.value)} cannot be compared with ${kindOf(right.value)}`, node.at);
  }

  private lowerCase(node: CheckedExpression, text: string): string {
    this.step(node, text.length >> 10);
    return text.toLowerCase();
  }
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

function isRecord(value: PolicyValue): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a value is, for messages. */
function kindOf(value: PolicyValue): string {
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

/** A value just read, if it is what its declaration says; what comes from a request is not trusted to be. */
function typed(value: PolicyValue | undefined, node: CheckedExpression, path: string): PolicyValue {
  if (value === undefined) throw new PolicyEvaluationError(`missing field: ${path}`, node.at);
  if (value instanceof NotApplicable) throw new PolicyEvaluationError(`${path} is ${value.reason}`, node.at);
  if (value instanceof Unreadable) {
    throw new PolicyEvaluationError(`${path} cannot be read: ${value.reason}`, node.at);
  }
  if (!isOfType(value, node.type)) {
    throw new PolicyEvaluationError(`the value of ${path} does not fit its type ${node.type.kind}`, node.at);
  }
  return value;
}

/** Looks at the value itself, not into it: what lies inside is looked at when it is read. */
function isOfType(value: PolicyValue, type: PolicyType): boolean {
  switch (type.kind) {
    case 'bool':
      return typeof value === 'boolean';
    case 'string':
      return typeof value === 'string';
    case 'timestamp':
      return typeof value === 'bigint';
    case 'dynamic':
      if (typeof value === 'bigint') return value >= integerRange.dynamic.min && value <= integerRange.dynamic.max;
      return ['boolean', 'string'].includes(typeof value) || Array.isArray(value) || isRecord(value);
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
