import { isMap } from 'node:util/types';
import { emptyOrganization } from '../domain/organization/organization.js';

/** A part of the state small enough to be written or read between two requests. */
export type Piece =
  | { readonly slice: string; readonly entries: readonly (readonly [unknown, unknown])[] }
  | { readonly slice: string; readonly value: unknown };

/** Entries of a map in one piece, and characters of the texts in them: an entry that has more is a piece by itself. */
const pieceEntries = 200;
const pieceCharacters = 64 * 1024;
/** The name of the fingerprints that no read model has seen yet, beside the slices of an organization. */
export const recentSlice = 'recent fingerprints';

/** A state in pieces: each can be written, and read, in a turn of the event loop. */
export function* piecesOf(slices: readonly (readonly [string, unknown])[]): Generator<Piece> {
  const isMapOf = (slice: string) => slice === recentSlice || isMap(Reflect.get(emptyOrganization(), slice));
  for (const [slice, content] of slices) {
    if (!isMapOf(slice)) {
      yield { slice, value: content };
      continue;
    }
    const entries = content as readonly (readonly [unknown, unknown])[];
    let from = 0;
    let characters = 0;
    for (let at = 0; at < entries.length; at++) {
      const own = charactersIn(entries[at]);
      if (at > from && (at - from >= pieceEntries || characters + own > pieceCharacters)) {
        yield { slice, entries: entries.slice(from, at) };
        [from, characters] = [at, 0];
      }
      characters += own;
    }
    yield { slice, entries: entries.slice(from) };
  }
}

/** Characters of all texts in a value: nearly all that it takes to write and to read it. */
function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  const parts = isMap(value) ? [...value] : Object.values(value);
  return parts.reduce<number>((sum, part) => sum + charactersIn(part), 0);
}
