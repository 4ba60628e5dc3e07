import { jsonPiecesOfText } from './text.js';

/** A string of more characters is in pieces of its own. */
const longString = 64 * 1024;

/**
 * RFC 8785 (JCS) text of a plain JSON value. An object member that is undefined is left out, as in the stored JSON.
 * @throws {TypeError} on what JSON or I-JSON cannot hold: NaN, infinities, bigint, functions, lone surrogates, `toJSON`
 */
export function canonicalJson(value: unknown): string {
  return textOf(canonicalPieces(value));
}

/** The text of pieces, without a copy of any: V8 links them, and copies when the characters are needed. */
export function textOf(pieces: readonly string[]): string {
  return pieces.reduce((before, piece) => before + piece);
}

/**
 * The same in pieces: who writes them one by one copies no long string into a longer one first.
 * @throws {TypeError} as `canonicalJson` does
 */
export function canonicalPieces(value: unknown): readonly string[] {
  const text = new CanonicalText();
  text.add(value);
  return text.pieces;
}

const NEEDS_CARE = /["\\\u0000-\u001f\ud800-\udfff]/;

class CanonicalText {
  readonly #before: string[] = [];
  #latest = '';

  get pieces(): readonly string[] {
    return [...this.#before, this.#latest];
  }

  add(value: unknown): void {
    switch (typeof value) {
      case 'string':
        return this.#addString(value);
      case 'number':
        if (!Number.isFinite(value)) throw new TypeError(`the number ${value} has no JSON form: use a finite number`);
        // RFC 8785, 3.2.2.3 is ECMAScript's Number::toString, which also turns -0 into 0.
        this.#latest += String(value);
        return;
      case 'boolean':
        this.#latest += value ? 'true' : 'false';
        return;
      case 'object':
        if (value === null) this.#latest += 'null';
        else if (Array.isArray(value)) this.#addArray(value);
        else this.#addObject(value as Record<string, unknown>);
        return;
      default:
        throw new TypeError(`a value of type ${typeof value} has no JSON form: pass plain JSON`);
    }
  }

  #addString(text: string): void {
    if (text.length <= longString) {
      this.#latest += canonicalString(text);
    } else if (NEEDS_CARE.test(text)) {
      this.#before.push(this.#latest, ...jsonPiecesOfText(wellFormed(text)));
      this.#latest = '';
    } else {
      this.#before.push(`${this.#latest}"`, text);
      this.#latest = '"';
    }
  }

  #addArray(values: readonly unknown[]): void {
    let before = '[';
    for (let index = 0; index < values.length; index++) {
      this.#latest += before;
      this.add(values[index]);
      before = ',';
    }
    this.#latest += before === '[' ? '[]' : ']';
  }

  #addObject(members: Record<string, unknown>): void {
    if (typeof members['toJSON'] === 'function') {
      throw new TypeError('an object with a `toJSON` method is not plain JSON: pass what it stands for');
    }
    let before = '{';
    for (const name of sorted(Object.keys(members))) {
      const value = members[name];
      if (value === undefined) continue;
      this.#latest += before;
      this.#latest += writtenName(name);
      this.add(value);
      before = ',';
    }
    this.#latest += before === '{' ? '{}' : '}';
  }
}

/** As many names as an insertion sort is quicker for than `sort`, which copies them. */
const fewNames = 24;

/** Names in the order of RFC 8785, 3.2.3: by UTF-16 code units, as strings compare. Sorts the list that it is given. */
function sorted(names: string[]): readonly string[] {
  if (names.length > fewNames) return names.sort();
  for (let index = 1; index < names.length; index++) {
    const name = names[index]!;
    let place = index;
    for (; place > 0 && names[place - 1]! > name; place--) names[place] = names[place - 1]!;
    names[place] = name;
  }
  return names;
}

/** The names of members as they are written, most of which every event has. Bounded, because callers name members, too. */
const writtenNames = new Map<string, string>();
const mostNames = 1_024;
const longestName = 64;

function writtenName(name: string): string {
  let written = writtenNames.get(name);
  if (written === undefined) {
    written = `${canonicalString(name)}:`;
    if (writtenNames.size < mostNames && name.length <= longestName) writtenNames.set(name, written);
  }
  return written;
}

/** A text as `canonicalJson` writes it. @throws {TypeError} if it has a lone surrogate */
export function canonicalString(text: string): string {
  // Nearly every string needs no escape, and the test is several times cheaper than JSON.stringify.
  if (!NEEDS_CARE.test(text)) return `"${text}"`;
  return JSON.stringify(wellFormed(text));
}

function wellFormed(text: string): string {
  if (text.isWellFormed()) return text;
  throw new TypeError(`the text ${JSON.stringify(text)} has a lone surrogate: RFC 8785 allows valid Unicode only`);
}
