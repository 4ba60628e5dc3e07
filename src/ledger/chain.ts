import { canonicalJson, canonicalString } from '../domain/canonical-json.js';
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
/** Where its hash begins and ends among these characters. */
export const HASH_IN_LINK = [linkMember.length, linkMember.length + 2 * HASH_BYTES] as const;

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

function recordedLink(event: RecordedEvent): string {
  const { stream, revision } = event;
  let metadata: unknown;
  try {
    // A stored text is parsed only now.
    ({ metadata } = event);
  } catch (cause) {
    throw new BrokenChain(stream, revision, cause instanceof Error ? cause.message : String(cause));
  }
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
