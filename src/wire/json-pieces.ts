import { jsonPiecesOfText, longestSlice, slicesOf } from '../domain/text.js';

/**
 * The JSON of large values, in pieces, so that the thread may be given back between two of them. It is never one text:
 * the text that `JSON.stringify` makes of a large value is a tree of thousands of pieces, which each collection of garbage
 * copies until it is encoded, and which takes fresh memory of its size twice when it is.
 */

/** JSON that was written before: a text, or its UTF-8 in parts. */
export type WrittenJson = string | readonly Uint8Array[];

/** Its UTF-8, in parts. */
export function partsOf(json: WrittenJson): readonly Uint8Array[] {
  return typeof json === 'string' ? [Buffer.from(json)] : json;
}

/** Length of its UTF-8 in bytes. */
export function bytesOf(json: WrittenJson): number {
  return typeof json === 'string' ? Buffer.byteLength(json) : json.reduce((sum, { length }) => sum + length, 0);
}

/** A value whose JSON is longer is written in pieces, in characters. */
const longValue = 64 * 1024;
/** Length of what is encoded at once, in characters, but for its last piece. */
const longestPart = 2 * longestSlice;
/** What a value counts for besides its text, in characters. */
const charactersOfValue = 8;

/** Whether the JSON of a value is to be written in pieces, looked at only as far as it takes to know. */
export function isLong(value: unknown): boolean {
  return roomAfter(value, longValue) < 0;
}

function roomAfter(value: unknown, before: number): number {
  let room = before - charactersOfValue;
  if (typeof value === 'string') return room - value.length;
  if (typeof value !== 'object' || value === null) return room;
  if (Array.isArray(value)) {
    for (const element of value as readonly unknown[]) if (room >= 0) room = roomAfter(element, room);
    return room;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members)) if (room >= 0) room = roomAfter(members[name], room);
  return room;
}

/** The JSON of a value of objects, lists, texts, numbers and Booleans, in pieces; each is made when it is asked for. */
export function* jsonPieces(value: unknown): Generator<string> {
  if (!isLong(value)) {
    yield JSON.stringify(value);
  } else if (typeof value === 'string') {
    yield* jsonPiecesOfText(value);
  } else if (Array.isArray(value)) {
    let before = '[';
    for (const element of value as readonly unknown[]) {
      yield before;
      yield* jsonPieces(element === undefined ? null : element);
      before = ',';
    }
    yield ']';
  } else {
    let before = '{';
    for (const [name, member] of Object.entries(value as object)) {
      if (member === undefined) continue;
      yield `${before}${JSON.stringify(name)}:`;
      yield* jsonPieces(member);
      before = ',';
    }
    yield '}';
  }
}

/**
 * What the pieces are together: a text if it is short, else its UTF-8 in parts.
 * @param turn awaited between two parts
 */
export async function joined(
  pieces: Iterable<WrittenJson>,
  turn: () => Promise<void> | undefined,
): Promise<string | Uint8Array[]> {
  const parts: Uint8Array[] = [];
  let text = '';
  const encode = () => {
    if (text !== '') parts.push(Buffer.from(text));
    text = '';
  };
  for (const piece of pieces) {
    if (typeof piece !== 'string') {
      encode();
      parts.push(...piece);
      continue;
    }
    for (const slice of slicesOf(piece)) {
      text += slice;
      if (text.length < longestPart) continue;
      encode();
      const wait = turn();
      if (wait) await wait;
    }
  }
  if (parts.length === 0) return text;
  encode();
  return parts;
}
