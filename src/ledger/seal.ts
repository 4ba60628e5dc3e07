import { canonicalJson, canonicalPieces, textOf } from '../domain/canonical-json.js';
import { idFromHash } from './ids.js';
import { GENESIS_HASH, linkPlaced, restOfLink, type ChainedMetadata } from './chain.js';
import type { ExpectedRevision, NewEvent } from './event-store.js';
import { PlacedText } from './placed-text.js';
import { unchainedProblem, type Unchained } from './unchained.js';
import { schemaVersion } from './read-event.js';

/** The last known event of a stream, which the next one follows. Revision -1 for an empty stream. */
export interface Tail {
  readonly revision: number;
  readonly hash: string;
}

export const emptyTail: Tail = { revision: -1, hash: GENESIS_HASH };

/** An event before it has its place in a stream. */
export interface Fact {
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Omit<ChainedMetadata, 'schemaVersion'>;
  /** Stored next to the metadata, but covered neither by the link nor by the id. */
  readonly unchained?: Unchained;
  /**
   * The id, if it must not derive from the contents and the previous event. A store treats equal ids as a repeated
   * append, and would confirm one event while it has recorded another at the same revision that was decided elsewhere,
   * or earlier.
   */
  readonly id?: string;
}

/** Events as a store takes them, and the resulting tail. */
export interface Sealed {
  readonly events: readonly NewEvent[];
  readonly tail: Tail;
  /** Links of the chain, one for each event. */
  readonly hashes: readonly string[];
  /** Size of their JSON and names, in bytes. */
  readonly bytes: number;
}

/** What stands around the data of an event when it is hashed, but for its names and its metadata: ids, links, names of members. */
const longestAround = 256;

/** Links events into the hash chain of a stream, after its tail. Every event of ours is created here. */
export function seal(stream: string, tail: Tail, facts: readonly Fact[]): Sealed {
  let { hash, revision } = tail;
  let bytes = 0;
  const hashes: string[] = [];
  const events: NewEvent[] = [];
  const texts = new MetadataTexts();
  for (const fact of facts) {
    revision += 1;
    const { type, data } = fact;
    const { metadata, text } = texts.of(fact);
    const pieces = canonicalPieces(data);
    const before = `${stream}\0${hash}\0${type}\0`;
    const around = (text.length + before.length + longestAround) * 3;
    const placed = new PlacedText(pieces, around, around);
    const id = fact.id ?? idFromHash(placed.hashBetween('', before, `\0${text}`));
    hash = linkPlaced(hash, placed, restOfLink({ stream, revision, id, type }, text));
    hashes.push(hash);
    const beside = unchainedText(fact);
    bytes += type.length + hash.length + placed.length + Buffer.byteLength(text) + Buffer.byteLength(beside);
    const json = { data: textOf(pieces), metadata: `${text.slice(0, -1)},"hash":"${hash}"${beside}}` };
    const { unchained } = fact;
    events.push({ id, type, data, metadata: { hash, ...metadata, ...(unchained ? { unchained } : {}) }, json });
  }
  return { events, tail: { revision, hash }, hashes, bytes };
}

/** What follows the link. @throws {TypeError} if it is too large */
function unchainedText({ type, unchained }: Fact): string {
  if (unchained === undefined) return '';
  const problem = unchainedProblem(unchained);
  if (problem !== undefined) throw new TypeError(`the event \`${type}\` cannot be recorded: ${problem}`);
  return `,"unchained":${canonicalJson(unchained)}`;
}

interface WrittenMetadata {
  readonly metadata: ChainedMetadata;
  /** Its canonical JSON. */
  readonly text: string;
}

/** The metadata of events, written once for those that share it: the events of an activity, which follow each other. */
class MetadataTexts {
  #said: Fact['metadata'] | undefined;
  #latest: WrittenMetadata | undefined;

  of({ metadata: said }: Fact): WrittenMetadata {
    if (this.#latest && this.#said === said) return this.#latest;
    const metadata = { schemaVersion, ...said };
    this.#said = said;
    return (this.#latest = { metadata, text: canonicalJson(metadata) });
  }
}

/** The expectation of an append after this tail. */
export function expectedAfter({ revision }: Tail): ExpectedRevision {
  return revision < 0 ? 'no-stream' : revision;
}
