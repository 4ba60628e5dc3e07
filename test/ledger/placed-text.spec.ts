import { createHash } from 'node:crypto';
import { PlacedText } from '../../src/ledger/placed-text.js';

const link = 'c3'.repeat(32);

/** What it must be: the bytes hashed one after the other. */
const expected = (before: string, text: string, after: string): string =>
  createHash('sha256').update(Buffer.from(link, 'hex')).update(before).update(text).update(after).digest('hex');

// In this order: the buffer is as long as the longest before.
test.each([
  ['an empty text', ''],
  ['a short one', '{"data":"€ 😀"}'],
  ['one longer than the first buffer', '\u20ac'.repeat(100_000)],
  ['one of the longest body, all of it quoted', '"'.repeat(2_000_000)],
  ['one longer than any buffer that is kept', 'a'.repeat(9_000_000)],
  ['a short one after it', 'short'],
])('%s is hashed with what stands around it, as often as one likes', (_what, text) => {
  const middle = text.indexOf('a', text.length / 2);
  const placed = new PlacedText([text.slice(0, middle), text.slice(middle)], 200, 300);
  expect(placed.length).toBe(Buffer.byteLength(text));
  expect(placed.hashBetween(link, 'before €', 'after')).toBe(expected('before €', text, 'after'));
  expect(placed.hashBetween(link, '', '')).toBe(expected('', text, ''));
  expect(placed.hashBetween(link, 'b', '😀'.repeat(75))).toBe(expected('b', text, '😀'.repeat(75)));
});

test('what does not fit around the text is refused, and hashes nothing else', () => {
  const placed = new PlacedText(['text'], 40, 10);
  expect(() => placed.hashBetween(link, 'longer than 8', '')).toThrow(RangeError);
  const own = new PlacedText(['\u20ac'.repeat(6_000_000)], 40, 10);
  expect(() => own.hashBetween(link, '', 'longer than 10')).toThrow(RangeError);
});
