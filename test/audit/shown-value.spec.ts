import { onOneLine, shownValue } from '../../src/audit/explain/shown-value.js';

test('a text of somebody else is on one line, and has 200 characters at most, none of them halved', () => {
  expect(onOneLine(' a\n\t\u2028\u0007b ')).toBe('a b');
  expect(onOneLine('x'.repeat(200))).toBe('x'.repeat(200));
  expect(onOneLine('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`);
  expect(onOneLine(`${'x'.repeat(199)}\u{1f600}`)).toBe(`${'x'.repeat(199)}…`);
});

test('a text within a value has 200 characters at most, before it is looked at any further', () => {
  const text = 'y'.repeat(1_000_000);
  expect(shownValue([text])).toBe(onOneLine(`['${'y'.repeat(200)}…']`));
  expect(shownValue(text).length).toBeLessThan(210);
});

test('of a list ten elements are written, and of what is deep its size', () => {
  const numbers = Array.from({ length: 12 }, (_, index) => BigInt(index));
  expect(shownValue(numbers)).toBe('[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2 more]');
  expect(shownValue([[[1n, 2n, 3n]]])).toBe('[[[3…]]]');
});
