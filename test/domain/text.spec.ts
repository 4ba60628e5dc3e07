import fc from 'fast-check';
import { jsonPiecesOfText, longestSlice, slicesOf, textOfUtf8 } from '../../src/domain/text.js';

/** Texts of few and of many characters; ASCII, Latin-1, and all planes. */
const anyText = fc
  .tuple(
    fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('a', 'é', '\ufeff', '\u{1f600}', '"\\\u0001')),
    fc.constantFrom(1, 2, longestSlice - 1, longestSlice, longestSlice + 1),
  )
  .map(([text, times]) => text.repeat(Math.min(times, Math.ceil((2 * longestSlice) / (text.length || 1)))))
  .filter((text) => text.isWellFormed());

test('the text of UTF-8 is what was encoded, a byte order mark included, wherever the bytes lie', () => {
  fc.assert(
    fc.property(anyText, fc.nat({ max: 3 }), (text, before) => {
      const bytes = Buffer.from(`${'x'.repeat(before)}${text}`);
      const placed = new Uint8Array(bytes.buffer, bytes.byteOffset + before, bytes.length - before);
      expect(textOfUtf8(placed)).toBe(text);
    }),
  );
});

test('slices are the text, and none ends within a character', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const slices = [...slicesOf(text)];
      expect(slices.join('')).toBe(text);
      expect(slices.every((slice) => slice.isWellFormed() && slice.length <= longestSlice + 1)).toBe(true);
    }),
  );
});

test('the pieces of the JSON of a text are its JSON', () => {
  fc.assert(fc.property(anyText, (text) => expect([...jsonPiecesOfText(text)].join('')).toBe(JSON.stringify(text))));
});
