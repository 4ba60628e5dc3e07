import fc from 'fast-check';
import { readFileSync } from 'node:fs';
import { canonicalJson, canonicalPieces } from '../../src/domain/canonical-json.js';
import { longestSlice } from '../../src/domain/text.js';

interface Vectors {
  readonly numbers: readonly { readonly ieee754: string; readonly json: string }[];
  readonly notNumbers: readonly string[];
  readonly sample: { readonly input: string; readonly utf8: string };
  readonly sorting: { readonly input: string; readonly values: readonly string[] };
}

const rfc8785 = JSON.parse(readFileSync(new URL('../vectors/jcs/rfc8785.json', import.meta.url), 'utf8')) as Vectors;

describe('canonicalPieces', () => {
  const long = 64 * 1024 + 1;

  test('a long string is a piece by itself', () => {
    const text = 'a'.repeat(long);
    expect(canonicalPieces({ b: [text, 1], a: true })).toEqual(['{"a":true,"b":["', text, '",1]}']);
    expect(canonicalJson([text])).toBe(JSON.stringify([text]));
  });

  test('a short one is not', () => {
    const text = 'a'.repeat(long - 1);
    expect(canonicalPieces([text])).toEqual([JSON.stringify([text])]);
  });

  test.each([
    ['one with what JSON escapes', '"'.repeat(long)],
    ['one with characters of two code units', '😀'.repeat(long)],
  ])('%s is in slices', (_what, text) => {
    const pieces = canonicalPieces([text]);
    expect(pieces.join('')).toBe(JSON.stringify([text]));
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(2 * longestSlice);
  });

  test('half a surrogate pair in a long one is refused', () => {
    expect(() => canonicalPieces([`${'a'.repeat(long)}\ud83d`])).toThrow('has a lone surrogate');
  });
});

describe('canonicalJson', () => {
  it.each(rfc8785.numbers)('writes the number $ieee754 as $json (RFC 8785, Appendix B)', ({ ieee754, json }) => {
    expect(canonicalJson(ieee754Number(ieee754))).toBe(json);
  });

  it.each(rfc8785.notNumbers)('refuses %s (RFC 8785, Appendix B)', (bits) => {
    expect(() => canonicalJson(ieee754Number(bits))).toThrow('has no JSON form');
  });

  it('writes the sample of RFC 8785, section 3.2.2, as the bytes of section 3.2.4', () => {
    const text = canonicalJson(JSON.parse(rfc8785.sample.input));
    expect(Buffer.from(text, 'utf8').toString('hex')).toBe(rfc8785.sample.utf8);
  });

  it('sorts members by UTF-16 code units (RFC 8785, section 3.2.3)', () => {
    const input = JSON.parse(rfc8785.sorting.input) as Record<string, string>;
    const keys = Object.keys(input);
    const expected = rfc8785.sorting.values.map((value) => {
      const key = keys.find((candidate) => input[candidate] === value);
      return `${JSON.stringify(key)}:${JSON.stringify(value)}`;
    });
    expect(canonicalJson(input)).toBe(`{${expected.join(',')}}`);
  });

  it('sorts integer-like members as text, though an object keeps them as numbers', () => {
    expect(canonicalJson({ 10: 1, 9: 2, 1: 3, a: { b: 1, a: 2 } })).toBe('{"1":3,"10":1,"9":2,"a":{"a":2,"b":1}}');
  });

  it('leaves no white space and handles empty values', () => {
    expect(canonicalJson({ b: [], a: {}, c: '', d: [[], [{}], null] })).toBe(
      '{"a":{},"b":[],"c":"","d":[[],[{}],null]}',
    );
  });

  it('escapes exactly what RFC 8785, section 3.2.2.2, asks for', () => {
    const controls = Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('');
    expect(canonicalJson(`${controls}"\\/\u007f\u0080\u2028\u2029é🔐`)).toBe(
      '"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f\\u0010\\u0011\\u0012\\u0013' +
        '\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f' +
        '\\"\\\\/\u007f\u0080\u2028\u2029é🔐"',
    );
  });

  it.each([
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udfffa'],
    ['surrogates in the wrong order', '\udc00\ud800'],
    ['one in a key', { 'a\ud800': 1 }],
    ['undefined', undefined],
    ['undefined in an array', [undefined]],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a symbol', Symbol('a')],
    ['NaN', [Number.NaN]],
    ['a date', { at: new Date(0) }],
  ])('refuses %s', (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError);
  });

  it('leaves out undefined members, as the stored JSON does', () => {
    expect(canonicalJson({ b: undefined, a: 1, c: undefined })).toBe('{"a":1}');
    expect(canonicalJson({ b: undefined })).toBe('{}');
  });

  it('sorts few members and many alike, however long their names, when names come again too', () => {
    const name = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 100 }),
      fc.constantFrom('a', 'b', `${'long'.repeat(16)}1`, `${'long'.repeat(16)}2`, '\ue000', '\u{1f600}'),
    );
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 60 }), (names) => {
        // As two bytes in this order, code units sort like the strings that they make.
        const codeUnits = (text: string): string => Buffer.from(text, 'utf16le').swap16().toString('hex');
        const inOrder = names.toSorted((one, other) => (codeUnits(one) < codeUnits(other) ? -1 : 1));
        const value = Object.fromEntries(names.map((each, index) => [each, index] as const));
        const expected = inOrder.map((each) => `${JSON.stringify(each)}:${names.indexOf(each)}`);
        expect(canonicalJson(value)).toBe(`{${expected.join(',')}}`);
      }),
      { numRuns: 500 },
    );
  });

  it('takes `__proto__` as a member like any other', () => {
    expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1},"b":1}');
  });

  it('is the same for what comes back from JSON, and means the same', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(JSON.stringify(value)))).toBe(text);
      }),
    );
  });
});

function ieee754Number(bits: string): number {
  return Buffer.from(bits, 'hex').readDoubleBE();
}
