import fc from 'fast-check';
import { maxDepth, maxNodes, parsePolicy } from '../../../src/domain/policy/parse.js';
import { PolicyError, type Expression } from '../../../src/domain/policy/syntax.js';
import { maxTextLength } from '../../../src/domain/policy/tokens.js';

/** The tree in a form that shows how operators bind. */
function shape(node: Expression): string {
  switch (node.kind) {
    case 'boolean':
    case 'integer':
      return String(node.value);
    case 'string':
      return `'${node.value}'`;
    case 'list':
      return `[${node.items.map(shape).join(', ')}]`;
    case 'name':
      return node.name;
    case 'field':
      return `${base(node.of)}.${node.field}`;
    case 'index':
      return `${base(node.of)}[${shape(node.index)}]`;
    case 'slice':
      return `${base(node.of)}[${shape(node.from)}..${shape(node.to)}]`;
    case 'call':
      return call(node);
    case 'not':
      return `!(${shape(node.operand)})`;
    case 'logical':
      return node.operands.map((operand) => `(${shape(operand)})`).join(` ${node.operator} `);
    case 'comparison':
      return `(${shape(node.left)}) ${node.operator} (${shape(node.right)})`;
    case 'in':
      return `(${shape(node.item)}) in (${shape(node.of)})`;
  }
}

function call({ function: { name }, given }: Extract<Expression, { kind: 'call' }>): string {
  if ('arguments' in given) return `${name}(${given.arguments.map(shape).join(', ')})`;
  if ('predicate' in given) return `${base(given.of)}.${name}(${given.variable}, ${shape(given.predicate)})`;
  return `${base(given.of)}.${name}(${'argument' in given ? shape(given.argument) : ''})`;
}

/** What a field, index or function is read of; an operator needs parentheses there. */
function base(node: Expression): string {
  const isOperator = ['not', 'logical', 'comparison', 'in'].includes(node.kind);
  return isOperator ? `(${shape(node)})` : shape(node);
}

function refusal(text: string): string {
  try {
    parsePolicy(text);
  } catch (error) {
    if (error instanceof PolicyError) return error.message;
    throw error;
  }
  throw new Error(`\`${text}\` was taken`);
}

describe('reading a policy', () => {
  it.each([
    ['true', 'true'],
    ['a || b && c', '(a) || ((b) && (c))'],
    ['a && b || c && d', '((a) && (b)) || ((c) && (d))'],
    ['a && b && c', '(a) && (b) && (c)'],
    ['(a || b) && c', '((a) || (b)) && (c)'],
    ['a && (b && c)', '(a) && ((b) && (c))'],
    ['a.b == 1 && c in [1, 2]', '((a.b) == (1)) && ((c) in ([1, 2]))'],
    ['!a && b', '(!(a)) && (b)'],
    ['!a == b', '(!(a)) == (b)'],
    ['!!a.b', '!(!(a.b))'],
    ["x['k'][0].f[1..2]", "x['k'][0].f[1..2]"],
    ['x[0..10] == y', '(x[0..10]) == (y)'],
    ['a.all(v, v == 1)', 'a.all(v, (v) == (1))'],
    ['a.filter(v, v.b).any(w, w.c).count()', 'a.filter(v, v.b).any(w, w.c).count()'],
    ["a.contains('x')", "a.contains('x')"],
    ["Timestamp('x') < time.now", "(Timestamp('x')) < (time.now)"],
    ["CronSpan('a', 'b', 'c')", "CronSpan('a', 'b', 'c')"],
    ['\'back\\slash "and" é😀\'', '\'back\\slash "and" é😀\''],
    ['a.in.true', 'a.in.true'],
    ['[[1], []]', '[[1], []]'],
    ['\t a\r\n&&\n b ', '(a) && (b)'],
    ['0 < 1', '(0) < (1)'],
    [String(2n ** 256n - 1n), String(2n ** 256n - 1n)],
    ['(a == b) == c', '((a) == (b)) == (c)'],
  ])('groups %j', (text, expected) => {
    expect(shape(parsePolicy(text))).toBe(expected);
  });

  it('says where each part begins', () => {
    const parsed = parsePolicy("a &&\n  b.c == 'x'");
    expect(parsed).toEqual({
      kind: 'logical',
      operator: '&&',
      at: { line: 1, column: 3 },
      spans: [
        { from: 0, to: 1 },
        { from: 7, to: 17 },
      ],
      operands: [
        { kind: 'name', name: 'a', at: { line: 1, column: 1 } },
        {
          kind: 'comparison',
          operator: '==',
          at: { line: 2, column: 7 },
          left: {
            kind: 'field',
            field: 'c',
            at: { line: 2, column: 5 },
            of: { kind: 'name', name: 'b', at: { line: 2, column: 3 } },
          },
          right: { kind: 'string', value: 'x', at: { line: 2, column: 10 } },
        },
      ],
    });
  });

  it.each([
    ['', 'the expression is empty: leave the clause out to restrict nothing (line 1, column 1)'],
    [' \n ', 'the expression is empty: leave the clause out to restrict nothing (line 2, column 2)'],
    ['"a"', 'unexpected character `"`: strings are written in single quotes (line 1, column 1)'],
    ["a == 'b", "unexpected character `'`: the string has no closing quote (line 1, column 6)"],
    ['a = b', 'unexpected character `=`: equality is written `==` (line 1, column 3)'],
    ['a & b', 'unexpected character `&`: and is written `&&` (line 1, column 3)'],
    ['a | b', 'unexpected character `|`: or is written `||` (line 1, column 3)'],
    ['a + b', 'unexpected character `+` (line 1, column 3)'],
    ['-1 < a', 'unexpected character `-` (line 1, column 1)'],
    ['a\n&& 😀', 'unexpected character `😀` (line 2, column 4)'],
    ['a\u00a0&& b', 'unexpected character `\u00a0` (line 1, column 2)'],
    ['a < b < c', 'comparisons cannot be chained: write `a < b && b < c` (line 1, column 7)'],
    ['a == b in c', 'comparisons cannot be chained: write `a < b && b < c` (line 1, column 8)'],
    ['a in b == c', 'comparisons cannot be chained: write `a < b && b < c` (line 1, column 8)'],
    ['a b', 'expected an operator or the end, found `b` (line 1, column 3)'],
    ['a &&', 'expected a value, found the end (line 1, column 5)'],
    ['(a', 'expected `)`, found the end (line 1, column 3)'],
    ['[1, 2', 'expected `]`, found the end (line 1, column 6)'],
    ['[1, ]', 'expected a value, found `]` (line 1, column 5)'],
    ['a[1', 'expected `]`, found the end (line 1, column 4)'],
    ['a[..2]', 'expected a value, found `..` (line 1, column 3)'],
    ['a[1..]', 'expected a value, found `]` (line 1, column 6)'],
    ['a.', 'expected a field or function name, found the end (line 1, column 3)'],
    ['a.1', 'expected a field or function name, found `1` (line 1, column 3)'],
    ['1.5 < a', 'expected a field or function name, found `5` (line 1, column 3)'],
    ['in in a', 'expected a value, found `in` (line 1, column 1)'],
    ['007 < a', '`007` is not a decimal integer (line 1, column 1)'],
    ['0x1f < a', '`0x1f` is not a decimal integer (line 1, column 1)'],
    ['1_000 < a', '`1_000` is not a decimal integer (line 1, column 1)'],
    [
      "a.startsWith('x')",
      'unknown function `startsWith`: there are all, any, contains, count and filter (line 1, column 3)',
    ],
    [
      'a.any(true, b)',
      'expected the name of a variable, as in `.any(item, item == 1)`, found `true` (line 1, column 7)',
    ],
    ["a.any('x', b)", 'expected the name of a variable, as in `.any(item, item == 1)`, found `x` (line 1, column 7)'],
    ['a.any(v)', 'expected `,`, found `)` (line 1, column 8)'],
    ['a.count(1)', 'expected `)`, found `1` (line 1, column 9)'],
    ['a.contains()', 'expected a value, found `)` (line 1, column 12)'],
    ['now()', 'unknown function `now`: there are Timestamp and CronSpan (line 1, column 1)'],
    [`${2n ** 256n} > a`, '`1157920892373161954235709850086879078532…` does not fit into 256 bits (line 1, column 1)'],
  ])('refuses %j', (text, message) => {
    expect(refusal(text)).toBe(message);
  });

  it('refuses a very long number without converting it', () => {
    expect(refusal(`${'9'.repeat(60_000)} > a`)).toBe(
      `\`${'9'.repeat(40)}…\` does not fit into 256 bits (line 1, column 1)`,
    );
  });

  it('keeps a message on one line whatever the text holds', () => {
    expect(refusal("a 'x\n\u2028y'")).toBe('expected an operator or the end, found `x y` (line 1, column 3)');
  });

  it('bounds the length of the text', () => {
    expect(() => parsePolicy(`true${' '.repeat(maxTextLength - 4)}`)).not.toThrow();
    expect(refusal(`true${' '.repeat(maxTextLength - 3)}`)).toBe(
      `the text has ${maxTextLength + 1} characters, the most is ${maxTextLength} (line 1, column 1)`,
    );
  });

  it.each([
    ['parentheses', (n: number) => `${'('.repeat(n)}a${')'.repeat(n)}`],
    ['negations', (n: number) => `${'!'.repeat(n)}a`],
    ['lists', (n: number) => `${'['.repeat(n)}1${']'.repeat(n)}`],
    ['fields', (n: number) => `a${'.b'.repeat(n)}`],
    ['indexes', (n: number) => `${'a['.repeat(n)}1${']'.repeat(n)}`],
    ['functions', (n: number) => `${'a.any(v, '.repeat(n)}b${')'.repeat(n)}`],
  ])('bounds the nesting of %s', (_what, nested) => {
    expect(() => parsePolicy(nested(maxDepth - 1))).not.toThrow();
    expect(refusal(nested(maxDepth))).toMatch(/^the expression is nested deeper than 64 levels/);
    expect(refusal(nested(5_000))).toMatch(/^the expression is nested deeper than 64 levels/);
  });

  it('takes long chains of && and ||, and bounds the number of parts', () => {
    expect(() => parsePolicy(Array.from({ length: maxNodes - 1 }, () => 'a').join('||'))).not.toThrow();
    expect(refusal(Array.from({ length: maxNodes }, () => 'a').join('||'))).toMatch(/more than 8192 parts/);
  });

  it('reads back what is printed', () => {
    fc.assert(
      fc.property(expressions, (text) => {
        const once = parsePolicy(text);
        const printed = shape(once);
        expect(shape(parsePolicy(printed))).toBe(printed);
        expect(withoutPlaces(parsePolicy(printed))).toEqual(withoutPlaces(once));
      }),
    );
  });

  it('keeps no trace of a refusal, with which its tokens would stay', () => {
    let refused: unknown;
    try {
      parsePolicy('1 == 1 ||');
    } catch (error) {
      refused = error;
    }
    const message = 'expected a value, found the end (line 1, column 10)';
    expect(refused).toMatchObject({ message, stack: `PolicyError: ${message}` });
  });

  it('refuses any text with a PolicyError or takes it', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string({ unit: 'binary' })), { maxLength: 30 }), (parts) => {
        try {
          parsePolicy(parts.join(' '));
        } catch (error) {
          expect(error).toBeInstanceOf(PolicyError);
          expect((error as Error).message).not.toMatch(/[\n\r]/);
        }
      }),
      { numRuns: 500 },
    );
  });
});

const pieces = fc.constantFrom(
  ...[
    "'s'",
    '1',
    'a',
    'in',
    'true',
    '&&',
    '||',
    '==',
    '<',
    '(',
    ')',
    '[',
    ']',
    '.',
    '..',
    ',',
    '!',
    'any',
    'count',
    'Timestamp',
  ],
);

const { expressions } = fc.letrec<{ expressions: string; operands: string }>((tie) => ({
  operands: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('a', 'b', 'true', 'false', '0', '17', "'text'", 'x.y'),
    tie('expressions').map((inner) => `(${inner})`),
    tie('expressions').map((inner) => `!(${inner})`),
    fc.tuple(tie('operands'), tie('expressions')).map(([of, index]) => `${of}[${index}]`),
    fc.tuple(tie('operands'), tie('expressions'), tie('expressions')).map(([of, a, b]) => `${of}[${a}..${b}]`),
    fc
      .tuple(tie('operands'), fc.constantFrom('any', 'all', 'filter'), tie('expressions'))
      .map(([of, method, body]) => `${of}.${method}(v, ${body})`),
    tie('operands').map((of) => `${of}.count()`),
    fc.array(tie('expressions'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
  ),
  expressions: fc.oneof(
    { depthSize: 'small' },
    tie('operands'),
    fc
      .tuple(tie('operands'), fc.constantFrom('==', '!=', '<', '<=', '>', '>=', 'in'), tie('operands'))
      .map((parts) => parts.join(' ')),
    fc
      .tuple(fc.array(tie('operands'), { minLength: 2, maxLength: 3 }), fc.constantFrom('&&', '||'))
      .map(([operands, operator]) => operands.join(operator)),
  ),
}));

function withoutPlaces(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutPlaces);
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node).flatMap(([key, value]) =>
      key === 'at' || key === 'spans' ? [] : [[key, withoutPlaces(value)]],
    ),
  );
}
