import { isUtf8 } from 'node:buffer';
import { CoordinatorError } from '../domain/errors.js';
import { textOfUtf8 } from '../domain/text.js';
import { withoutNulls } from '../domain/without-nulls.js';

const bad = (what: string): CoordinatorError =>
  new CoordinatorError('INVALID_ARGUMENT', `request body ${what}`, { category: 'REQUEST_INVALID' });

/** Maximum nesting of objects and arrays in a request. */
const maxJsonDepth = 32;
/** Maximum values in a request, counting each element and member: parsing and checking that many takes 30 ms. */
const maxJsonValues = 10_000;

/**
 * Parses a request body as one JSON object (RFC 8259), stricter than `JSON.parse`: valid UTF-8 without a byte order
 * mark, no repeated member (two parsers could pick different ones, and one of them checked the policy), no `__proto__`,
 * at most 32 levels and 10,000 values. Members that are null are dropped: null means absent (docs/protocol.md, request bodies).
 * @param mostValues more than `maxJsonValues` for a body that was accepted already
 * @throws {CoordinatorError} INVALID_ARGUMENT that says what is wrong and where
 */
export function parseStrictJson(
  body: Uint8Array,
  mostValues = maxJsonValues,
): { readonly text: string; readonly value: Record<string, unknown> } {
  if (body.length === 0) throw bad('is empty; send a JSON object');
  const { text, value } = parseWholeJson(body, mostValues);
  return { text, value: withoutNulls(value) as Record<string, unknown> };
}

/**
 * The same with its null members, for anything but requests.
 * @throws {CoordinatorError} as `parseStrictJson` does
 */
export function parseWholeJson(
  body: Uint8Array,
  mostValues = maxJsonValues,
  maxDepth = maxJsonDepth,
): { readonly text: string; readonly value: Record<string, unknown>; readonly values: number } {
  if (!isUtf8(body)) throw bad('is not valid UTF-8');
  const text = textOfUtf8(body);
  if (text.charCodeAt(0) === 0xfeff) throw bad('starts with a byte order mark; send plain UTF-8');
  const values = checkMembers(text, mostValues, maxDepth);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw bad(`is not JSON: ${error instanceof Error ? error.message.split('\n')[0] : 'unreadable'}`);
  }
  // An escape can produce half a surrogate pair, which is not valid text and has no canonical form to hash.
  if (/\\u[dD]/.test(text) && hasLoneSurrogate(value)) throw bad('contains a string with half of a surrogate pair');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw bad('must be a JSON object');
  return { text, value: value as Record<string, unknown>, values };
}

/**
 * One pass over the text for what `JSON.parse` accepts: depth, repeated members, and number of values. It only tracks
 * strings, brackets and commas; the parser decides whether the text is JSON at all.
 * @returns the number of values
 */
function checkMembers(text: string, mostValues: number, maxDepth: number): number {
  const open: (Set<string> | undefined)[] = [];
  let expectKey = false;
  let values = 0;
  const countValue = () => {
    if (++values > mostValues) throw bad(`has more than ${mostValues} values; send them in several requests`);
  };
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(text, at);
        if (expectKey) {
          const names = open.at(-1);
          const raw = text.slice(at + 1, end);
          const name = raw.includes('\\') ? unescape(raw) : raw;
          if (name === '__proto__') throw bad('has a member `__proto__`, which is not allowed');
          if (names?.has(name)) throw bad(`has the member \`${name.slice(0, 64)}\` twice (at character ${at})`);
          names?.add(name);
          expectKey = false;
        }
        at = end;
        break;
      }
      case 0x7b:
      case 0x5b: {
        countValue();
        const isObject = text.charCodeAt(at) === 0x7b;
        if (open.length >= maxDepth) throw bad(`is nested deeper than ${maxDepth} levels`);
        open.push(isObject ? new Set() : undefined);
        expectKey = isObject;
        break;
      }
      case 0x7d:
      case 0x5d:
        open.pop();
        expectKey = false;
        break;
      case 0x2c:
        countValue();
        expectKey = open.at(-1) !== undefined;
        break;
    }
  }
  return values;
}

function endOfString(text: string, start: number): number {
  const quote = text.indexOf('"', start + 1);
  if (quote === -1) return text.length;
  if (text.charCodeAt(quote - 1) !== 0x5c) return quote;
  // From the first quotation mark that may be escaped, a character at a time: a search for each costs many times as much.
  let at = quote - 1;
  while (text.charCodeAt(at - 1) === 0x5c) at--;
  for (; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === 0x22) return at;
    if (character === 0x5c) at++;
  }
  return text.length;
}

function unescape(raw: string): string {
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    // Not a JSON string: the parser reports that, with its position.
    return raw;
  }
}

function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === 'string') return /\p{Surrogate}/u.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => hasLoneSurrogate(name) || hasLoneSurrogate(member));
}
