import { PolicyError, type Position, type Span } from './syntax.js';

/** Longest text of one clause, in UTF-16 code units: about 1 400 addresses in a list. */
export const maxTextLength = 65_536;

const tokenPattern =
  /(?<space>[ \t\r\n]+)|(?<integer>[0-9][0-9A-Za-z_]*)|(?<word>[A-Za-z_][0-9A-Za-z_]*)|'(?<string>[^']*)'|(?<symbol>&&|\|\||==|!=|<=|>=|\.\.|[<>!.,()[\]])/uy;

/** One word, literal or symbol of a policy's text. */
export interface Token {
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

/** User input may be long, and may contain line breaks; a message has neither. */
export function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 40 ? `${line.slice(0, 40)}…` : line;
}
