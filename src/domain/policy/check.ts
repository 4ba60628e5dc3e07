import { membership } from './functions/contains.js';
import { checkCall, type CallForms, type Checking, type Predicate } from './functions/function.js';
import type { PolicyEnvironment } from './namespaces.js';
import { didYouMean } from './suggestion.js';
import { integerRange, PolicyError, type CheckedExpression, type Expression, type Position } from './syntax.js';
import type { Clause, PolicyType, PolicyValue } from './types.js';
import { adapt, cast, castToList, comparable, equalityOf, nameOf } from './typing.js';

const bool: PolicyType = { kind: 'bool' };
const int: PolicyType = { kind: 'int' };
const uint: PolicyType = { kind: 'uint' };
const string: PolicyType = { kind: 'string' };
const dynamic: PolicyType = { kind: 'dynamic' };

/**
 * Determines the type of every part of an expression; the whole must be bool.
 * @throws {PolicyError} for the first part that does not fit, or that `clause` cannot refer to
 */
export function checkExpression(
  expression: Expression,
  environment: PolicyEnvironment,
  clause: Clause,
): CheckedExpression {
  const checked = cast(new Checker(environment, clause).check(expression), bool);
  if (checked.type.kind !== 'bool') {
    throw new PolicyError(`the whole expression must be bool, it is ${nameOf(checked.type)}`, expression.at);
  }
  return checked;
}

class Checker implements Checking {
  private readonly variables: { name: string; type: PolicyType }[] = [];

  constructor(
    private readonly environment: PolicyEnvironment,
    readonly clause: Clause,
  ) {}

  check(expression: Expression): CheckedExpression {
    const { at } = expression;
    switch (expression.kind) {
      case 'boolean':
        return { kind: 'constant', value: expression.value, type: bool, at };
      case 'string':
        return { kind: 'constant', value: expression.value, type: string, at };
      case 'integer':
        return { kind: 'constant', value: expression.value, type: literalType(expression.value), at };
      case 'list':
        return this.list(expression.items, at);
      case 'name':
        return this.name(expression.name, at);
      case 'field':
        return this.field(expression);
      case 'index':
        return this.index(expression);
      case 'slice': {
        const of = this.check(expression.of);
        if (of.type.kind !== 'list' && of.type.kind !== 'string' && of.type.kind !== 'dynamic') {
          throw new PolicyError(`only lists and strings can be sliced, this is ${nameOf(of.type)}`, at);
        }
        const from = this.expect(expression.from, int, 'the start of a slice');
        const to = this.expect(expression.to, int, 'the end of a slice');
        return { kind: 'slice', of, from, to, type: of.type, at };
      }
      case 'call':
        return checkCall(expression, at, this);
      case 'in': {
        const item = this.check(expression.item);
        const of = castToList(this.check(expression.of));
        if (of.type.kind !== 'list') {
          throw new PolicyError(`the right side of \`in\` must be a list, it is ${nameOf(of.type)}`, at);
        }
        return membership(item, of, at);
      }
      case 'not':
        return { kind: 'not', operand: this.expect(expression.operand, bool, 'the operand of `!`'), type: bool, at };
      case 'logical': {
        const { operator, spans } = expression;
        const operands = expression.operands.map((operand) =>
          this.expect(operand, bool, `an operand of \`${operator}\``),
        );
        return { kind: 'logical', operator, operands, spans, type: bool, at };
      }
      case 'comparison':
        return this.comparison(expression);
    }
  }

  private list(items: readonly Expression[], at: Position): CheckedExpression {
    let checked = items.map((item) => this.check(item));
    const fixed = checked.filter(({ type }) => type.kind !== 'dynamic');
    // One literal beyond int makes it a list of uint; one hexadecimal literal makes it a list of hexadecimal strings.
    const special = fixed.find(({ type }) => type.kind === 'uint' || (type.kind === 'string' && type.hex));
    const model = special ?? fixed[0] ?? checked[0];
    if (!model) throw new PolicyError('an empty list has no type: nothing is ever in it', at);
    checked = checked.map((item) => {
      const adapted = item.type.kind === 'dynamic' ? item : adapt(item, model.type);
      if (adapted) return adapted;
      throw new PolicyError(
        `a list has elements of one type: ${nameOf(model.type)}, not ${nameOf(item.type)}`,
        item.at,
      );
    });
    return listNode(checked, fixed.length < checked.length ? dynamic : model.type, at);
  }

  private name(name: string, at: Position): CheckedExpression {
    const slot = this.variables.findLastIndex((variable) => variable.name === name);
    const variable = this.variables[slot];
    if (variable) return { kind: 'variable', slot, path: name, type: variable.type, at };
    const namespace = this.environment.namespaces.get(name);
    if (!namespace) throw new PolicyError(`field does not exist: ${name}${didYouMean(name, this.names())}`, at);
    if (!namespace.clauses.includes(this.clause)) {
      const where = namespace.clauses.join(' or ');
      throw new PolicyError(`field does not exist: ${name}: a ${this.clause} has none, only a ${where} has`, at);
    }
    return { kind: 'root', name, type: namespace.type, at };
  }

  /** What can stand alone in this clause, here. */
  private names(): readonly string[] {
    const namespaces = [...this.environment.namespaces].filter(([, { clauses }]) => clauses.includes(this.clause));
    return [...this.variables.map(({ name }) => name), ...namespaces.map(([name]) => name)];
  }

  private field({ of: inner, field, at }: Extract<Expression, { kind: 'field' }>): CheckedExpression {
    const of = this.check(inner);
    const path = `${pathOf(of)}.${field}`;
    if (of.type.kind === 'dynamic') {
      const index: CheckedExpression = { kind: 'constant', value: field, type: string, at };
      return { kind: 'index', of, index, path, type: dynamic, at };
    }
    const isFunction = this.environment.functions.some(({ name, form }) => name === field && form === 'list.f()');
    if (of.type.kind === 'list' && isFunction) {
      throw new PolicyError(`field does not exist: ${path}: it is a function, written \`.${field}()\``, at);
    }
    if (of.type.kind === 'map') {
      throw new PolicyError(`field does not exist: ${path}: an entry of a map is read as \`['${field}']\``, at);
    }
    if (of.type.kind !== 'record' || !Object.hasOwn(of.type.fields, field)) {
      const known = of.type.kind === 'record' ? Object.keys(of.type.fields) : [];
      throw new PolicyError(`field does not exist: ${path}${didYouMean(field, known)}`, at);
    }
    return { kind: 'field', of, field, path, type: of.type.fields[field]!, at };
  }

  private index({ of: inner, index, at }: Extract<Expression, { kind: 'index' }>): CheckedExpression {
    const of = this.check(inner);
    const node = (key: CheckedExpression, type: PolicyType): CheckedExpression => {
      const value = key.kind === 'constant' ? key.value : undefined;
      const text = typeof value === 'string' ? `'${value}'` : typeof value === 'bigint' ? String(value) : '…';
      return { kind: 'index', of, index: key, path: `${pathOf(of)}[${text}]`, type, at };
    };
    switch (of.type.kind) {
      case 'list':
        return node(this.expect(index, int, 'the index of a list'), of.type.of);
      case 'string':
        return node(this.expect(index, int, 'the index of a string'), of.type);
      case 'map':
        return node(this.expect(index, string, 'the key of a map'), of.type.of);
      case 'dynamic': {
        const key = this.check(index);
        if (['int', 'string', 'dynamic'].includes(key.type.kind)) return node(key, dynamic);
        const found = nameOf(key.type);
        throw new PolicyError(`the index of a dynamic value must be int or string, it is ${found}`, index.at);
      }
      default:
        throw new PolicyError(`only lists, strings and maps can be indexed, this is ${nameOf(of.type)}`, at);
    }
  }

  private comparison({ operator, left, right, at }: Extract<Expression, { kind: 'comparison' }>): CheckedExpression {
    const first = this.check(left);
    const second = this.check(right);
    const isEquality = operator === '==' || operator === '!=';
    const equality = equalityOf(first.type, second.type);
    const isDynamic = equality === 'dynamic';
    const adaptedFirst = isDynamic ? first : adapt(first, second.type);
    const a = adaptedFirst ?? first;
    const b = adaptedFirst ? second : adapt(second, first.type);
    const allowed = comparable(isDynamic, isEquality);
    if (!b || !allowed.has(a.type.kind) || !allowed.has(b.type.kind)) {
      throw new PolicyError(`\`${operator}\` cannot compare ${nameOf(first.type)} with ${nameOf(second.type)}`, at);
    }
    refuseEmptyBound(a, operator, b, at);
    return { kind: 'comparison', operator, equality, left: a, right: b, type: bool, at };
  }

  predicateOf(
    list: CheckedExpression,
    { variable, predicate }: CallForms['list.f(v, p)'],
    name: string,
    at: Position,
  ): Predicate {
    const element = list.type.kind === 'list' ? list.type.of : list.type;
    if (this.variables.some((known) => known.name === variable)) {
      throw new PolicyError(`the variable \`${variable}\` has a meaning here already: choose another name`, at);
    }
    const slot = this.variables.push({ name: variable, type: element }) - 1;
    const body = this.expect(predicate, bool, `the predicate of \`${name}\``);
    this.variables.pop();
    return { body, slot };
  }

  listOf(expression: Expression, method: string, at: Position): CheckedExpression {
    const of = castToList(this.check(expression));
    if (of.type.kind === 'list') return of;
    throw new PolicyError(`\`${method}\` is a function of lists, this is ${nameOf(of.type)}`, at);
  }

  private expect(expression: Expression, type: PolicyType, what: string): CheckedExpression {
    const checked = this.check(expression);
    const adapted = adapt(cast(checked, type), type);
    if (adapted) return adapted;
    throw new PolicyError(`${what} must be ${nameOf(type)}, it is ${nameOf(checked.type)}`, expression.at);
  }
}

/**
 * A count is never negative, so `>= 0` requires nothing: in a consensus it looks like a threshold and is none. Its
 * opposite `< 0` is never true.
 */
function refuseEmptyBound(left: CheckedExpression, operator: string, right: CheckedExpression, at: Position): void {
  const isZero = (node: CheckedExpression) => node.kind === 'constant' && node.value === 0n;
  const isVacuous =
    (left.kind === 'call' && left.isCount && isZero(right) && (operator === '>=' || operator === '<')) ||
    (right.kind === 'call' && right.isCount && isZero(left) && (operator === '<=' || operator === '>'));
  if (!isVacuous) return;
  const always = operator === '>=' || operator === '<=' ? 'always' : 'never';
  throw new PolicyError(`\`${operator}\` with a count and 0 is ${always} true: compare with at least 1`, at);
}

/** A list of constants becomes a constant, so membership is one look-up in a set. */
function listNode(items: readonly CheckedExpression[], element: PolicyType, at: Position): CheckedExpression {
  const type: PolicyType = { kind: 'list', of: element };
  const values: PolicyValue[] = [];
  for (const item of items) {
    if (item.kind !== 'constant') return { kind: 'list', items, type, at };
    values.push(item.value);
  }
  return { kind: 'constant', value: values, type, at };
}

function literalType(value: bigint): PolicyType {
  return value <= integerRange.int.max ? int : uint;
}

function pathOf(node: CheckedExpression): string {
  if (node.kind === 'root') return node.name;
  return node.kind === 'field' || node.kind === 'index' || node.kind === 'variable' ? node.path : '(…)';
}
