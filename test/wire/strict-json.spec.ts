import fc from 'fast-check';
import { parseStrictJson } from '../../src/wire/strict-json.js';
import { CoordinatorError } from '../../src/domain/errors.js';

const maxJsonDepth = 32;
const maxJsonValues = 10_000;

const parse = (text: string) => parseStrictJson(Buffer.from(text));

function refusedWith(text: string | Uint8Array): string {
  try {
    parseStrictJson(typeof text === 'string' ? Buffer.from(text) : text);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    expect({ code: error.code, category: error.category }).toEqual({
      code: 'INVALID_ARGUMENT',
      category: 'REQUEST_INVALID',
    });
    return error.message;
  }
  throw new Error('was taken');
}

/** A JSON value without null members or names that are refused, as objects of a request are. */
const jsonValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.string({ unit: 'grapheme' }),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
    fc.boolean(),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(
    fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__'),
    tie('value'),
    { maxKeys: 5 },
  ),
}));

test('returns the text unchanged, and the result of JSON.parse', () => {
  fc.assert(
    fc.property(jsonValue.object, fc.constantFrom(undefined, 1, '\t'), (object, indent) => {
      const text = JSON.stringify(object, null, indent);
      expect(parse(text)).toEqual({ text, value: JSON.parse(text) as unknown });
    }),
  );
});

test('refuses whatever JSON.parse refuses, and nothing else is thrown', () => {
  fc.assert(
    fc.property(jsonValue.object, fc.nat(), fc.string({ maxLength: 2 }), (object, at, put) => {
      const text = JSON.stringify(object);
      const place = at % (text.length + 1);
      // By way of bytes, as half a character cannot be sent.
      const damaged = Buffer.from(text.slice(0, place) + put + text.slice(place + 1)).toString();
      let expected: unknown;
      try {
        expected = JSON.parse(damaged);
      } catch {
        refusedWith(damaged);
        return;
      }
      // What can be parsed may still be refused: a member twice, for one. It is never read in another way.
      try {
        expect(parse(damaged).text).toBe(damaged);
      } catch (error) {
        expect(error).toBeInstanceOf(CoordinatorError);
        return;
      }
      expect(typeof expected).toBe('object');
    }),
    { numRuns: 1_000 },
  );
});

test('any bytes are parsed or refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        parseStrictJson(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(CoordinatorError);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('null members are absent, at every depth; null elements stay', () => {
  expect(parse('{"a":null,"b":{"c":null,"d":[null,{"e":null}]}}').value).toEqual({ b: { d: [null, {}] } });
});

test.each([
  ['{"a":1,"a":1}', 'a', 7],
  ['{"a":1,"\\u0061":1}', 'a', 7],
  ['{"\\u0061":1,"a":1}', 'a', 12],
  ['{"a\\"b":1,"a\\u0022b":1}', 'a"b', 10],
  ['{"":1,"":2}', '', 6],
  ['{"a":{"x":1},"b":[{"x":1,"x":2}]}', 'x', 25],
  ['{"a":null,"a":1}', 'a', 10],
])('%s repeats a member', (text, name, at) => {
  expect(refusedWith(text)).toBe(`request body has the member \`${name}\` twice (at character ${at})`);
});

test.each([
  '{"a":1,"b":"a","c":["a","a"],"d":{"a":1}}',
  '{"a":"\\"a\\":","b":"{\\"b\\":1,\\"b\\":2}"}',
  '{"a":[["x","x"],{"x":"x"},"x"]}',
  '{"a":"\\\\","b":"\\\\\\"","c":1}',
  '{"A":1,"a":2}',
])('%s does not', (text) => {
  expect(parse(text).value).toEqual(JSON.parse(text));
});

test('the name in a message is truncated', () => {
  const name = 'x'.repeat(5_000);
  expect(refusedWith(`{"${name}":1,"${name}":2}`).length).toBeLessThan(200);
});

test.each(['{"__proto__":1}', '{"a":[{"\\u005f_proto__":{}}]}'])('%s names __proto__', (text) => {
  expect(refusedWith(text)).toBe('request body has a member `__proto__`, which is not allowed');
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('objects and arrays both count towards the depth', () => {
  const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  expect(parse(nested(maxJsonDepth)).text).toHaveLength(nested(maxJsonDepth).length);
  expect(refusedWith(nested(maxJsonDepth + 1))).toBe(`request body is nested deeper than ${maxJsonDepth} levels`);
  // Side by side is not deep.
  expect(parse(`{"a":[${Array.from({ length: 500 }, () => '[[]]').join(',')}]}`).value).toBeDefined();
});

test('ten thousand values are taken, whatever they are, and no more', () => {
  const list = (count: number, value: string) => `{"a":[${Array.from({ length: count }, () => value).join(',')}]}`;
  for (const value of ['1', '"x,y[z{"', 'null']) {
    expect(parse(list(maxJsonValues - 1, value)).value).toBeDefined();
    expect(refusedWith(list(maxJsonValues + 1, value))).toMatch(/has more than 10000 values; send them in several/);
  }
  expect(refusedWith(list(maxJsonValues / 2 + 1, '[]'))).toMatch(/more than 10000 values/);
  expect(refusedWith(`{${Array.from({ length: 11_000 }, (_, at) => `"k${at}":1`).join(',')}}`)).toMatch(/values/);
  // What was taken before there was the limit is read again when history is verified.
  expect(parseStrictJson(Buffer.from(list(maxJsonValues * 2, '1')), Infinity).value).toBeDefined();
});

test('two megabytes of anything take negligible time', () => {
  const started = performance.now();
  const size = 2 * 1024 * 1024;
  for (const text of [
    '{'.repeat(size),
    '"'.repeat(size),
    `{"a":"${'\\'.repeat(size)}`,
    `{${Array.from({ length: 120_000 }, (_, index) => `"k${index}":1`).join(',')},"k0":1}`,
    `{"a":"${'\\u0041'.repeat(size / 6)}"`,
  ]) {
    refusedWith(text);
  }
  expect(performance.now() - started).toBeLessThan(10_000);
});

test.each([
  [Buffer.alloc(0), /is empty/],
  [Buffer.from('efbbbf7b7d', 'hex'), /byte order mark/],
  [Buffer.from('7b22ff223a317d', 'hex'), /not valid UTF-8/],
  [Buffer.from('{"a":"\\udc00"}'), /surrogate/],
  [Buffer.from('{"a":["\\ud800\\u0041"]}'), /surrogate/],
  [Buffer.from('{"\\uD83D":1}'), /surrogate/],
  [Buffer.from('[]'), /must be a JSON object/],
  [Buffer.from('7'), /must be a JSON object/],
])('%s is refused', (bytes, message) => {
  expect(refusedWith(bytes)).toMatch(message);
});
