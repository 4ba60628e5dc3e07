import { printable } from '../../src/cli/layout.js';

describe('others’ text on a terminal', () => {
  test.each([
    ['an escape sequence', 'a\x1b[2Jb', 'a\\u{1b}[2Jb'],
    ['a line break', 'a\r\nb', 'a\\u{d}\\u{a}b'],
    ['a line or paragraph separator', 'a\u2028b\u2029', 'a\\u{2028}b\\u{2029}'],
    ['text from right to left', '\u202egood', '\\u{202e}good'],
    ['a character that nobody sees', 'Tom\u200b', 'Tom\\u{200b}'],
    ['half a character', 'a\ud800b', 'a\\u{d800}b'],
  ])('shows %s as an escape', (_what, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test('has a space for each tab, and is otherwise as it was written', () => {
    expect(printable('a\tb')).toBe('a b');
    expect(printable('Zoë “日本” 𝒜 🙂')).toBe('Zoë “日本” 𝒜 🙂');
  });
});
