import { PolicyError, type Position } from './syntax.js';

/** Longest text of one clause, in UTF-16 code units: about 1 400 addresses in a list. */
export const maxTextLength = 65_536;

/** Of each kind of token, and of spaces; each matches where its `lastIndex` says. */
const patterns = {
  word: /[A-Za-z_][0-9A-Za-z_]*/y,
  symbol: /&&|\|\||==|!=|<=|>=|\.\.|[<>!.,()[\]]/y,
  integer: /[0-9][0-9A-Za-z_]*/y,
  string: /'[^']*'/y,
  space: /[ \t\r\n]+/y,
} as const;
type Kind = keyof typeof patterns;

/** By character code, the only kind that begins with the character. */
const kindByFirst: readonly (Kind | undefined)[] = Array.from({ length: 128 }, (_, code) => {
  // Twice, as `&&` and an empty string are written.
  const text = String.fromCharCode(code, code);
  return (Object.keys(patterns) as Kind[]).find((kind) => matches(kind, text, 0));
});

/** One word, literal or symbol of a policy's text. */
export interface Token {
  readonly kind: 'integer' | 'word' | 'string' | 'symbol' | 'end';
  readonly text: string;
  readonly at: Position;
  /** Its first character. */
  readonly from: number;
  /** Behind its last character. */
  readonly to: number;
}

const hints: Readonly<Record<string, string>> = {
  '"': 'strings are written in single quotes',
  "'": 'the string has no closing quote',
  '=': 'equality is written `==`',
  '&': 'and is written `&&`',
  '|': 'or is written `||`',
};

/**
 * The tokens of a text, the last of which is its end. @throws {PolicyError} for a text that is too long, or a character
 * that starts no token
 */
export function tokenize(text: string): Token[] {
  let at: Position = { line: 1, column: 1 };
  if (text.length > maxTextLength) {
    throw new PolicyError(`the text has ${text.length} characters, the most is ${maxTextLength}`, at);
  }
  const tokens: Token[] = [];
  let offset = 0;
  while (offset < text.length) {
    const kind = kindByFirst[text.charCodeAt(offset)];
    if (kind === undefined || !matches(kind, text, offset)) {
      const character = String.fromCodePoint(text.codePointAt(offset)!);
      const hint = Object.hasOwn(hints, character) ? `: ${hints[character]}` : '';
      throw new PolicyError(`unexpected character \`${character}\`${hint}`, at);
    }
    const end = patterns[kind].lastIndex;
    if (kind !== 'space') {
      const inner = kind === 'string' ? text.slice(offset + 1, end - 1) : text.slice(offset, end);
      tokens.push({ kind, text: inner, at, from: offset, to: end });
    }
    at = kind === 'space' || kind === 'string' ? after(at, text, offset, end) : moved(at, end - offset);
    offset = end;
  }
  tokens.push({ kind: 'end', text: '', at, from: offset, to: offset });
  return tokens;
}

function matches(kind: Kind, text: string, offset: number): boolean {
  patterns[kind].lastIndex = offset;
  return patterns[kind].test(text);
}

function moved(at: Position, characters: number): Position {
  return { line: at.line, column: at.column + characters };
}

/** The position behind `text[from..to]`, which may have line breaks. */
function after(at: Position, text: string, from: number, to: number): Position {
  let { line } = at;
  let start = from;
  for (let index = from; index < to; index += 1) {
    if (text.charCodeAt(index) !== 10) continue;
    line += 1;
    start = index + 1;
  }
  return line === at.line ? moved(at, to - from) : { line, column: to - start + 1 };
}

/** User input may be long, and may contain line breaks; a message has neither. */
export function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 40 ? `${line.slice(0, 40)}…` : line;
}
