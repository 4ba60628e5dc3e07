import type { PolicyFunction } from './functions/function.js';
import { policyFunctions } from './functions/table.js';
import {
  integerRange,
  PolicyError,
  type ComparisonOperator,
  type Expression,
  type Position,
  type Span,
} from './syntax.js';
import { shorten, tokenize, type Token } from './tokens.js';

/** Maximum nesting of one expression: parentheses, operands, arguments, and links of a chain such as `a.b[0].c`. */
export const maxDepth = 64;
/** Maximum nodes in one expression: literals, names, operators and accesses. */
export const maxNodes = 8_192;

const comparisons: readonly ComparisonOperator[] = ['==', '!=', '<', '<=', '>', '>='];

/** How tightly an infix operator binds; anything else ends the expression. */
const power: ReadonlyMap<string, number> = new Map([
  ['||', 1],
  ['&&', 2],
  ...[...comparisons, 'in'].map((operator): [string, number] => [operator, 3]),
]);

/**
 * Parses a clause of a policy by the grammar of docs/reference/policy-language.md. Knows no types and no namespaces.
 * @throws {PolicyError}
 */
export function parsePolicy(text: string, functions = policyFunctions): Expression {
  return new Parser(text, functions).whole();
}

/**
 * Like `parsePolicy`, with the number of parts in the text.
 * @throws {PolicyError}
 */
export function parseCounted(
  text: string,
  functions: readonly PolicyFunction[],
): { readonly expression: Expression; readonly parts: number } {
  const parser = new Parser(text, functions);
  return { expression: parser.whole(), parts: parser.nodes };
}

/**
 * Like `parsePolicy`, with the piece of the text that each part was written as, by the part's `at`: of all parts, only
 * that one has this object.
 * @throws {PolicyError}
 */
export function parseWithSpans(
  text: string,
  functions: readonly PolicyFunction[],
): { readonly expression: Expression; readonly spans: ReadonlyMap<Position, Span> } {
  const spans = new Map<Position, Span>();
  return { expression: new Parser(text, functions, spans).whole(), spans };
}

/** A Pratt parser: one loop over infix operators, whose binding power says when to stop. */
class Parser {
  private readonly tokens: readonly Token[];
  private next = 0;
  nodes = 0;

  constructor(
    text: string,
    private readonly functions: readonly PolicyFunction[],
    private readonly spans?: Map<Position, Span>,
  ) {
    this.tokens = tokenize(text);
  }

  whole(): Expression {
    if (this.peek().kind === 'end') {
      throw new PolicyError('the expression is empty: leave the clause out to restrict nothing', this.peek().at);
    }
    const expression = this.expression(0, 1);
    const rest = this.peek();
    if (rest.kind !== 'end') throw this.unexpected(rest, 'an operator or the end');
    return expression;
  }

  private expression(minimum: number, depth: number): Expression {
    const first = this.next;
    let left = this.unary(depth);
    for (;;) {
      const token = this.peek();
      const operator = token.kind === 'symbol' || token.kind === 'word' ? token.text : '';
      const binding = power.get(operator) ?? 0;
      if (binding <= minimum) return left;
      const { at } = token;
      if (operator === '&&' || operator === '||') {
        const operands = [left];
        const spans = [this.spanFrom(first)];
        while (this.accept(operator)) {
          const start = this.next;
          operands.push(this.expression(binding, this.deeper(depth, token)));
          spans.push(this.spanFrom(start));
        }
        left = this.node({ kind: 'logical', operator, operands, spans, at }, token, first);
        continue;
      }
      this.next += 1;
      const right = this.expression(binding, this.deeper(depth, token));
      left =
        operator === 'in'
          ? this.node({ kind: 'in', item: left, of: right, at }, token, first)
          : this.node({ kind: 'comparison', operator: operator as ComparisonOperator, left, right, at }, token, first);
      const another = this.peek();
      if (another.kind !== 'string' && power.get(another.text) === binding) {
        throw new PolicyError('comparisons cannot be chained: write `a < b && b < c`', another.at);
      }
    }
  }

  /** From a token up to the last one consumed. */
  private spanFrom(start: number): Span {
    return { from: this.tokens[start]!.from, to: this.tokens[this.next - 1]!.to };
  }

  private unary(depth: number): Expression {
    const token = this.peek();
    const first = this.next;
    if (!this.accept('!')) return this.postfix(depth);
    const operand = this.unary(this.deeper(depth, token));
    return this.node({ kind: 'not', operand, at: token.at }, token, first);
  }

  private postfix(depth: number): Expression {
    const first = this.next;
    let of = this.primary(depth);
    let inner = depth;
    for (;;) {
      const token = this.peek();
      const { at } = token;
      if (this.accept('.')) {
        inner = this.deeper(inner, token);
        const name = this.peek();
        if (name.kind !== 'word') throw this.unexpected(name, 'a field or function name');
        this.next += 1;
        of = this.accept('(')
          ? this.method(of, name, inner, first)
          : this.node({ kind: 'field', of, field: name.text, at: name.at }, name, first);
      } else if (this.accept('[')) {
        inner = this.deeper(inner, token);
        const index = this.expression(0, inner);
        if (this.accept('..')) {
          const to = this.expression(0, inner);
          this.expect(']');
          of = this.node({ kind: 'slice', of, from: index, to, at }, token, first);
        } else {
          this.expect(']');
          of = this.node({ kind: 'index', of, index, at }, token, first);
        }
      } else {
        return of;
      }
    }
  }

  /** The opening parenthesis has been consumed. */
  private method(of: Expression, name: Token, depth: number, first: number): Expression {
    const { at } = name;
    const method = this.functionNamed(name, ({ form }) => form !== 'f(…)');
    switch (method.form) {
      case 'list.f()':
        this.expect(')');
        return this.node({ kind: 'call', function: method, given: { of }, at }, name, first);
      case 'list.f(x)': {
        const argument = this.expression(0, depth);
        this.expect(')');
        return this.node({ kind: 'call', function: method, given: { of, argument }, at }, name, first);
      }
      case 'list.f(v, p)': {
        const { text: variable } = this.variable(method.name);
        this.expect(',');
        const predicate = this.expression(0, depth);
        this.expect(')');
        return this.node({ kind: 'call', function: method, given: { of, variable, predicate }, at }, name, first);
      }
      case 'f(…)':
        throw new Error(`${method.name} is no function of lists`);
    }
  }

  private variable(method: string): Token {
    const variable = this.peek();
    if (variable.kind !== 'word' || isReserved(variable.text)) {
      throw this.unexpected(variable, `the name of a variable, as in \`.${method}(item, item == 1)\``);
    }
    this.next += 1;
    return variable;
  }

  private functionNamed({ text, at }: Token, isHere: (one: PolicyFunction) => boolean): PolicyFunction {
    const found = this.functions.find((one) => one.name === text && isHere(one));
    if (found) return found;
    const names = this.functions.filter(isHere).map(({ name }) => name);
    const all = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
    throw new PolicyError(`unknown function \`${text}\`: there are ${all}`, at);
  }

  private primary(depth: number): Expression {
    const token = this.peek();
    const first = this.next;
    const { at } = token;
    if (token.kind === 'integer') {
      this.next += 1;
      return this.node({ kind: 'integer', value: this.integer(token), at }, token, first);
    }
    if (token.kind === 'string') {
      this.next += 1;
      return this.node({ kind: 'string', value: token.text, at }, token, first);
    }
    if (this.accept('(')) {
      const expression = this.expression(0, this.deeper(depth, token));
      this.expect(')');
      return expression;
    }
    if (this.accept('[')) {
      const items = this.list(']', this.deeper(depth, token));
      return this.node({ kind: 'list', items, at }, token, first);
    }
    if (token.kind !== 'word' || token.text === 'in') throw this.unexpected(token, 'a value');
    this.next += 1;
    if (token.text === 'true' || token.text === 'false') {
      return this.node({ kind: 'boolean', value: token.text === 'true', at }, token, first);
    }
    if (!this.accept('(')) return this.node({ kind: 'name', name: token.text, at }, token, first);
    const plain = this.functionNamed(token, ({ form }) => form === 'f(…)');
    if (plain.form !== 'f(…)') throw new Error(`${plain.name} is a function of lists`);
    const args = this.list(')', this.deeper(depth, token));
    return this.node({ kind: 'call', function: plain, given: { arguments: args }, at }, token, first);
  }

  /** Expressions between commas up to the closing symbol; no comma before it. */
  private list(closing: string, depth: number): Expression[] {
    if (this.accept(closing)) return [];
    const items = [this.expression(0, depth)];
    while (this.accept(',')) items.push(this.expression(0, depth));
    this.expect(closing);
    return items;
  }

  private integer(token: Token): bigint {
    if (!/^(0|[1-9][0-9]*)$/.test(token.text)) {
      throw new PolicyError(`\`${shorten(token.text)}\` is not a decimal integer`, token.at);
    }
    // The length is checked first: converting a very long number takes quadratic time.
    const value = token.text.length > 78 ? undefined : BigInt(token.text);
    if (value === undefined || value > integerRange.uint.max) {
      throw new PolicyError(`\`${shorten(token.text)}\` does not fit into 256 bits`, token.at);
    }
    return value;
  }

  private peek(): Token {
    return this.tokens[this.next]!;
  }

  private accept(symbol: string): boolean {
    const token = this.peek();
    if (token.kind !== 'symbol' || token.text !== symbol) return false;
    this.next += 1;
    return true;
  }

  private expect(symbol: string): void {
    if (!this.accept(symbol)) throw this.unexpected(this.peek(), `\`${symbol}\``);
  }

  private deeper(depth: number, token: Token): number {
    if (depth >= maxDepth) throw new PolicyError(`the expression is nested deeper than ${maxDepth} levels`, token.at);
    return depth + 1;
  }

  /** @param first the part's first token; its last has been consumed */
  private node(expression: Expression, token: Token, first: number): Expression {
    this.nodes += 1;
    this.spans?.set(expression.at, this.spanFrom(first));
    if (this.nodes > maxNodes) throw new PolicyError(`the expression has more than ${maxNodes} parts`, token.at);
    return expression;
  }

  private unexpected(token: Token, wanted: string): PolicyError {
    const found = token.kind === 'end' ? 'the end' : `\`${shorten(token.text)}\``;
    return new PolicyError(`expected ${wanted}, found ${found}`, token.at);
  }
}

function isReserved(word: string): boolean {
  return word === 'true' || word === 'false' || word === 'in';
}
