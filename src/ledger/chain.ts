import { jsonPiecesOfText } from '../domain/text.js';
import type { RecordedEvent } from './event-store.js';
import { PlacedText } from './placed-text.js';
import { checkedAfter, storedTexts, type StoredEvent } from './stored-event.js';

/** The metadata of every event. */
export interface EventMetadata {
  /** When it was recorded, milliseconds since the Unix epoch. */
  readonly at: number;
  /** Version of the shape of `data` for this type, from 1; see `upcast.ts`. */
  readonly schemaVersion: number;
  /** Id of the activity that the event belongs to. The name is one that EventStoreDB knows. */
  readonly $correlationId: string;
  /** Id of the event's cause. The name is one that EventStoreDB knows. */
  readonly $causationId: string;
  /** Parts were replaced in an export, so its stamp no longer verifies. Only in the stores of tests. */
  readonly redacted?: true;
  /** Link of the stream's chain, 64 lower-case hex characters; see `chainEvent`. */
  readonly hash: string;
}

const HASH_BYTES = 32;
/** The link before the first event of a stream: 32 zero bytes, in hex. */
export const GENESIS_HASH = '0'.repeat(64);

/** An event of a stream was changed, or moved to another place. */
export class BrokenChain extends Error {
  /** @param revision of the first event that does not follow the one before it */
  constructor(
    readonly stream: string,
    readonly revision: number,
    reason: string,
  ) {
    super(`the hash chain of stream \`${stream}\` is broken at revision ${revision}: ${reason}`);
    this.name = 'BrokenChain';
  }
}

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

function canonicalString(text: string): string {
  // Nearly every string needs no escape, and the test is several times cheaper than JSON.stringify.
  if (!NEEDS_CARE.test(text)) return `"${text}"`;
  return JSON.stringify(wellFormed(text));
}

function wellFormed(text: string): string {
  if (text.isWellFormed()) return text;
  throw new TypeError(`the text ${JSON.stringify(text)} has a lone surrogate: RFC 8785 allows valid Unicode only`);
}

/** An event as the chain covers it: its place, its content, and its metadata without the link. */
export interface ChainedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Omit<EventMetadata, 'hash'>;
}

/**
 * The next link of a stream's chain, 64 lower-case hex characters: SHA-256 over the 32 bytes of the previous link and
 * the UTF-8 of the canonical JSON of `{ stream, revision, id, type, data, metadata }`.
 */
export function chainEvent(previousHash: string, event: ChainedEvent): string {
  return linkTexts(previousHash, event, canonicalJson(event.data), canonicalJson(event.metadata));
}

/**
 * Checks that a recorded event follows the previous link, and returns its own link. Call it before `upcast`: the chain
 * covers events as they were recorded.
 * @throws {BrokenChain} if it does not follow
 */
export function verifyChain(previousHash: string, event: RecordedEvent): string {
  const recorded = recordedLink(event);
  // The reader has already checked it (`EventReader.read`).
  if (checkedAfter(event) === previousHash) return recorded;
  const stored = storedTexts(event);
  if (stored && linkOfStored(previousHash, stored) === recorded) return recorded;
  return verifyCanonicalChain(previousHash, event);
}

const linkMember = ',"hash":"';
const linkEnd = '"}';
/** Characters that the link takes at the end of a stored event's metadata. */
export const LINK_LENGTH = linkMember.length + 2 * HASH_BYTES + linkEnd.length;

/** The link at the end of a stored event's metadata; undefined if there is none. */
export function linkIn({ metadata }: Pick<StoredEvent, 'metadata'>): string | undefined {
  const start = metadata.length - LINK_LENGTH;
  if (!metadata.startsWith(linkMember, start) || !metadata.endsWith(linkEnd)) return undefined;
  return metadata.slice(start + linkMember.length, -linkEnd.length);
}

/**
 * The same, if it follows from the previous link: events are stored as the very text that their links cover. Undefined if
 * it does not follow from the text; it may still follow from the values.
 */
function linkOfStored(previousHash: string, event: StoredEvent): string | undefined {
  const { data, metadata } = event;
  const link = linkIn(event);
  if (link === undefined) return undefined;
  const rest = `${metadata.slice(0, -LINK_LENGTH)}}`;
  return linkTexts(previousHash, event, data, rest) === link ? link : undefined;
}

/** Like `verifyChain`, but from the values alone, however they are stored. */
export function verifyCanonicalChain(previousHash: string, event: RecordedEvent): string {
  const recorded = recordedLink(event);
  const { hash: _link, ...rest } = event.metadata as EventMetadata;
  let computed: string;
  try {
    computed = linkTexts(previousHash, event, canonicalJson(event.data), canonicalJson(rest));
  } catch (cause) {
    throw new BrokenChain(event.stream, event.revision, cause instanceof Error ? cause.message : String(cause));
  }
  if (computed === recorded) return computed;
  throw new BrokenChain(event.stream, event.revision, 'its hash does not follow from its content and its predecessor');
}

function recordedLink({ stream, revision, metadata }: RecordedEvent): string {
  if (typeof metadata === 'object' && metadata !== null && 'hash' in metadata) return metadata.hash as string;
  throw new BrokenChain(stream, revision, 'the event has no hash');
}

/** What the link of an event begins with, after the previous link. */
const linkStart = '{"data":';

/** The link of an event whose `data` and `metadata` are canonical JSON already. */
export function linkTexts(
  previousHash: string,
  event: Omit<ChainedEvent, 'data' | 'metadata'>,
  data: string,
  metadata: string,
): string {
  const rest = restOfLink(event, metadata);
  return linkPlaced(previousHash, new PlacedText([data], HASH_BYTES + linkStart.length, rest.length * 3), rest);
}

/** What the link of an event covers after its data. Written in canonical order: members need not be sorted for every event. */
export function restOfLink(event: Omit<ChainedEvent, 'data' | 'metadata'>, metadata: string): string {
  return (
    `,"id":${canonicalString(event.id)},"metadata":${metadata},"revision":${canonicalJson(event.revision)},` +
    `"stream":${canonicalString(event.stream)},"type":${canonicalString(event.type)}}`
  );
}

/** The same with data that is placed already, with room for 64 bytes before it. */
export function linkPlaced(previousHash: string, data: PlacedText, rest: string): string {
  if (previousHash.length !== 2 * HASH_BYTES) {
    throw new TypeError(`the previous hash \`${previousHash}\` is not 64 hex characters`);
  }
  return data.hashBetween(previousHash, linkStart, rest);
}
