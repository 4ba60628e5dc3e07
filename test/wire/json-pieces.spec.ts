import fc from 'fast-check';
import { longestSlice } from '../../src/domain/text.js';
import { isLong, joined, jsonPieces } from '../../src/wire/json-pieces.js';

const longest = longestSlice;
/** From this length on, a value is written in pieces. */
const long = 64 * 1024;
const noTurn = () => undefined;

async function textOf(value: unknown): Promise<string> {
  const json = await joined(jsonPieces(value), noTurn);
  return typeof json === 'string' ? json : Buffer.concat(json).toString();
}

/** Texts around the length of a piece, of characters that JSON escapes, and of two code units. */
const longText = fc
  .tuple(
    fc.integer({ min: longest - 3, max: longest + 3 }),
    fc.integer({ min: 1, max: 3 }),
    fc.string({ unit: 'binary' }),
  )
  .map(([length, times, end]) => '"a\u{1f600}\u0001é'.repeat(longest).slice(0, length * times) + end)
  .filter((text) => text.isWellFormed());
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    longText,
    fc.string({ unit: 'binary' }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie('value'), { maxKeys: 4 }),
  ),
})).value;

test('the pieces together are what JSON.stringify writes', async () => {
  const all = fc.asyncProperty(value, longText, async (anything, text) => {
    const object = { anything, text };
    expect(await textOf(object)).toBe(JSON.stringify(object));
  });
  await fc.assert(all, { seed: 12, numRuns: 60 });
});

test('no character is divided between two pieces', async () => {
  for (const before of [0, 1]) {
    const text = 'a'.repeat(before) + '\u{1f600}'.repeat(longest);
    expect(await textOf([text])).toBe(JSON.stringify([text]));
  }
});

test('a text that was written before is divided, and what is already encoded is taken as it is', async () => {
  const text = '\u{1f600}'.repeat(longest);
  const parts = await joined(['[', text, ',', [Buffer.from('1'), Buffer.from(',2')], ']'], noTurn);
  expect(Buffer.concat(parts as Uint8Array[]).toString()).toBe(`[${text},1,2]`);
  for (const part of parts as Uint8Array[]) expect(part.length).toBeLessThanOrEqual((longest + 1) * 2 * 2);
});

test('others have their turn before the next part is written', async () => {
  let isWaiting = false;
  let turns = 0;
  const turn = async () => {
    turns += 1;
    isWaiting = true;
    await new Promise((resolve) => setImmediate(resolve));
    isWaiting = false;
  };
  function* observed() {
    for (const piece of jsonPieces({ text: 'a'.repeat(10 * longest) })) {
      expect(isWaiting).toBe(false);
      yield piece;
    }
  }
  const parts = await joined(observed(), turn);
  expect(turns).toBeGreaterThanOrEqual(5);
  expect(parts).toHaveLength(turns + 1);
});

test('what is short is one text, in one turn', async () => {
  const turn = () => Promise.reject(new Error('nobody was to be waited for'));
  expect(await joined(jsonPieces({ a: [1, undefined], b: undefined }), turn)).toBe('{"a":[1,null]}');
});

test.each([
  ['a text', 'a'.repeat(long + 1)],
  ['many short texts', Array.from({ length: long / 8 }, () => 'a')],
  ['many numbers', { numbers: Array.from({ length: long / 8 + 1 }, () => 1) }],
  ['texts at different depths', ['a'.repeat(long / 2), [[['a'.repeat(long / 2)]]]]],
])('%s may be long', (_what, value) => {
  expect(isLong(value)).toBe(true);
  expect(isLong({ text: 'a'.repeat(long / 2), of: [1, null, undefined, false] })).toBe(false);
});
