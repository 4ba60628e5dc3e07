import {
  integerRange,
  PolicyError,
  type ComparisonOperator,
  type Expression,
  type Position,
  type Span,
} from './syntax.js';

/** Longest text of one clause, in UTF-16 code units: about 1 400 addresses in a list. */
export const maxTextLength = 65_536;
/** Deepest nesting of one expression: parentheses, operands, arguments, and links of a chain such as `a.b[0].c`. */
export const maxDepth = 64;
/** Most nodes in one expression: literals, names, operators and accesses. */
export const maxNodes = 8_192;

const tokenPattern =
  /(?<space>[ \t\r\n]+)|(?<integer>[0-9][0-9A-Za-z_]*)|(?<word>[A-Za-z_][0-9A-Za-z_]*)|'(?<string>[^']*)'|(?<symbol>&&|\|\||==|!=|<=|>=|\.\.|[<>!.,()[\]])/uy;

interface Token {
  readonly kind: 'integer' | 'word' | 'string' | 'symbol' | 'end';
  readonly text: string;
  readonly at: Position;
  readonly span: Span;
}

const hints: Readonly<Record<string, string>> = {
  '"': 'strings are written in single quotes',
  "'": 'the string has no closing quote',
  '=': 'equality is written `==`',
  '&': 'and is written `&&`',
  '|': 'or is written `||`',
};

const comparisons: readonly ComparisonOperator[] = ['==', '!=', '<', '<=', '>', '>='];

/** How tightly an infix operator binds; anything else ends the expression. */
const power: ReadonlyMap<string, number> = new Map([
  ['||', 1],
  ['&&', 2],
  ...[...comparisons, 'in'].map((operator): [string, number] => [operator, 3]),
]);

/**
 * Reads a clause of a policy by the grammar of docs/reference/policy-language.md. Knows no types and no namespaces.
 * @throws {PolicyError}
 */
export function parsePolicy(text: string): Expression {
  return new Parser(text).whole();
}

/**
 * As `parsePolicy`, with the number of parts that the text has.
 * @throws {PolicyError}
 */
export function parseCounted(text: string): { readonly expression: Expression; readonly parts: number } {
  const parser = new Parser(text);
  return { expression: parser.whole(), parts: parser.nodes };
}

/** A Pratt parser: one loop over infix operators, told by their power when to stop. */
class Parser {
  private readonly tokens: readonly Token[];
  private next = 0;
  nodes = 0;

  constructor(text: string) {
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
        left = this.node({ kind: 'logical', operator, operands, spans, at }, token);
        continue;
      }
      this.next += 1;
      const right = this.expression(binding, this.deeper(depth, token));
      left =
        operator === 'in'
          ? this.node({ kind: 'in', item: left, of: right, at }, token)
          : this.node({ kind: 'comparison', operator: operator as ComparisonOperator, left, right, at }, token);
      const another = this.peek();
      if (another.kind !== 'string' && power.get(another.text) === binding) {
        throw new PolicyError('comparisons cannot be chained: write `a < b && b < c`', another.at);
      }
    }
  }

  /** From a token up to the one that was read last. */
  private spanFrom(start: number): Span {
    return { from: this.tokens[start]!.span.from, to: this.tokens[this.next - 1]!.span.to };
  }

  private unary(depth: number): Expression {
    const token = this.peek();
    if (!this.accept('!')) return this.postfix(depth);
    const operand = this.unary(this.deeper(depth, token));
    return this.node({ kind: 'not', operand, at: token.at }, token);
  }

  private postfix(depth: number): Expression {
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
          ? this.method(of, name, inner)
          : this.node({ kind: 'field', of, field: name.text, at: name.at }, name);
      } else if (this.accept('[')) {
        inner = this.deeper(inner, token);
        const index = this.expression(0, inner);
        if (this.accept('..')) {
          const to = this.expression(0, inner);
          of = this.node({ kind: 'slice', of, from: index, to, at }, token);
        } else {
          of = this.node({ kind: 'index', of, index, at }, token);
        }
        this.expect(']');
      } else {
        return of;
      }
    }
  }

  /** The opening parenthesis has been read. */
  private method(of: Expression, name: Token, depth: number): Expression {
    const { at } = name;
    const method = name.text;
    if (method === 'count') {
      this.expect(')');
      return this.node({ kind: 'count', of, at }, name);
    }
    if (method === 'contains') {
      const item = this.expression(0, depth);
      this.expect(')');
      return this.node({ kind: 'contains', of, item, at }, name);
    }
    if (method !== 'all' && method !== 'any' && method !== 'filter') {
      throw new PolicyError(`unknown function \`${method}\`: there are all, any, contains, count and filter`, name.at);
    }
    const variable = this.peek();
    if (variable.kind !== 'word' || isReserved(variable.text)) {
      throw this.unexpected(variable, `the name of a variable, as in \`.${method}(item, item == 1)\``);
    }
    this.next += 1;
    this.expect(',');
    const body = this.expression(0, depth);
    this.expect(')');
    return this.node({ kind: 'quantifier', method, of, variable: variable.text, body, at }, name);
  }

  private primary(depth: number): Expression {
    const token = this.peek();
    const { at } = token;
    if (token.kind === 'integer') {
      this.next += 1;
      return this.node({ kind: 'integer', value: this.integer(token), at }, token);
    }
    if (token.kind === 'string') {
      this.next += 1;
      return this.node({ kind: 'string', value: token.text, at }, token);
    }
    if (this.accept('(')) {
      const expression = this.expression(0, this.deeper(depth, token));
      this.expect(')');
      return expression;
    }
    if (this.accept('[')) {
      const items = this.list(']', this.deeper(depth, token));
      return this.node({ kind: 'list', items, at }, token);
    }
    if (token.kind !== 'word' || token.text === 'in') throw this.unexpected(token, 'a value');
    this.next += 1;
    if (token.text === 'true' || token.text === 'false') {
      return this.node({ kind: 'boolean', value: token.text === 'true', at }, token);
    }
    if (!this.accept('(')) return this.node({ kind: 'name', name: token.text, at }, token);
    if (token.text !== 'Timestamp' && token.text !== 'CronSpan') {
      throw new PolicyError(`unknown function \`${token.text}\`: there are Timestamp and CronSpan`, token.at);
    }
    const args = this.list(')', this.deeper(depth, token));
    return this.node({ kind: 'call', name: token.text, arguments: args, at }, token);
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
    // The length is bounded first: converting a very long number takes quadratic time.
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

  private node(expression: Expression, token: Token): Expression {
    this.nodes += 1;
    if (this.nodes > maxNodes) throw new PolicyError(`the expression has more than ${maxNodes} parts`, token.at);
    return expression;
  }

  private unexpected(token: Token, wanted: string): PolicyError {
    const found = token.kind === 'end' ? 'the end' : `\`${shorten(token.text)}\``;
    return new PolicyError(`expected ${wanted}, found ${found}`, token.at);
  }
}

/** @throws {PolicyError} for a text that is too long, or a character that begins nothing */
function tokenize(text: string): Token[] {
  let at: Position = { line: 1, column: 1 };
  if (text.length > maxTextLength) {
    throw new PolicyError(`the text has ${text.length} characters, the most is ${maxTextLength}`, at);
  }
  const tokens: Token[] = [];
  let offset = 0;
  while (offset < text.length) {
    tokenPattern.lastIndex = offset;
    const match = tokenPattern.exec(text);
    if (!match?.groups) {
      const character = String.fromCodePoint(text.codePointAt(offset)!);
      const hint = Object.hasOwn(hints, character) ? `: ${hints[character]}` : '';
      throw new PolicyError(`unexpected character \`${character}\`${hint}`, at);
    }
    const { integer, word, string, symbol } = match.groups;
    const span = { from: offset, to: tokenPattern.lastIndex };
    if (integer !== undefined) tokens.push({ kind: 'integer', text: integer, at, span });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word, at, span });
    else if (string !== undefined) tokens.push({ kind: 'string', text: string, at, span });
    else if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol, at, span });
    at = after(at, match[0]);
    offset = tokenPattern.lastIndex;
  }
  tokens.push({ kind: 'end', text: '', at, span: { from: offset, to: offset } });
  return tokens;
}

function after(at: Position, text: string): Position {
  const lastBreak = text.lastIndexOf('\n');
  if (lastBreak === -1) return { line: at.line, column: at.column + text.length };
  return { line: at.line + text.split('\n').length - 1, column: text.length - lastBreak };
}

function isReserved(word: string): boolean {
  return word === 'true' || word === 'false' || word === 'in';
}

/** User input may be long, and may contain line breaks; a message has neither. */
function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 40 ? `${line.slice(0, 40)}…` : line;
}
