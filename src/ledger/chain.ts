import { errorMessage } from '../domain/errors.js';
import { canonicalJson, canonicalString } from '../domain/canonical-json.js';
import { BrokenChain, UnreadableEvent, type RecordedEvent } from './event-store.js';
import { PlacedText } from './placed-text.js';
import { checkedAfter, storedTexts, type StoredEvent } from './stored-event.js';
import { unchainedProblem, type Unchained } from './unchained.js';

export { BrokenChain } from './event-store.js';

/** The metadata of every event. */
export interface EventMetadata {
  /** When it was recorded, milliseconds since the Unix epoch. */
  readonly at: number;
  /** Version of the shape of `data` for this type, from 1; see `read-event.ts`. */
  readonly schemaVersion: number;
  /** Id of the activity that the event belongs to. The name is one that EventStoreDB knows. */
  readonly $correlationId: string;
  /** Id of the event's cause. The name is one that EventStoreDB knows. */
  readonly $causationId: string;
  /** Parts were replaced in an export, so its stamp no longer verifies. Only in the stores of tests. */
  readonly redacted?: true;
  /** Link of the stream's chain, 64 lower-case hex characters; see `chainEvent`. */
  readonly hash: string;
  /** Not covered by the link: `traceparent`, `salt`, members of later releases. At most 1,024 bytes of JSON. */
  readonly unchained?: Unchained;
}

/** The metadata that the link covers. */
export type ChainedMetadata = Omit<EventMetadata, 'hash' | 'unchained'>;

const HASH_BYTES = 32;
/** The link before the first event of a stream: 32 zero bytes, in hex. */
export const GENESIS_HASH = '0'.repeat(64);

/** An event as the chain covers it: its place, its content, and its chained metadata. */
export interface ChainedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: ChainedMetadata;
}

/**
 * The next link of a stream's chain, 64 lower-case hex characters: SHA-256 over the 32 bytes of the previous link and
 * the UTF-8 of the canonical JSON of `{ stream, revision, id, type, data, metadata }`.
 */
export function chainEvent(previousHash: string, event: ChainedEvent): string {
  return linkTexts(previousHash, event, canonicalJson(event.data), canonicalJson(event.metadata));
}

/**
 * Checks that a recorded event follows the previous link, and returns its own link. Call it before `readEvent`: the chain
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

/** The link of an event as it is recorded, unchecked; undefined if it has none that can be read. */
export function linkOf(event: RecordedEvent): string | undefined {
  try {
    return (event.metadata as Partial<EventMetadata> | null)?.hash;
  } catch (error) {
    if (error instanceof UnreadableEvent) return undefined;
    throw error;
  }
}

const linkMember = ',"hash":"';
const linkEnd = '"}';
/** Characters that the link takes at the end of a stored event's metadata, unless unchained metadata follows it. */
export const LINK_LENGTH = linkMember.length + 2 * HASH_BYTES + linkEnd.length;
/** Where its hash begins and ends among these characters. */
export const HASH_IN_LINK = [linkMember.length, linkMember.length + 2 * HASH_BYTES] as const;
/** What stands between the hash and unchained metadata. An unescaped quote is never inside a JSON string. */
const unchainedMember = '","unchained":{';

/** The stored text of an event's metadata, divided. */
interface MetadataParts {
  /** The JSON that the link covers. */
  readonly chained: string;
  readonly link: string;
}

/** Undefined if the text does not end with a link, or with a link and unchained metadata and nothing else. */
function partsOf(metadata: string): MetadataParts | undefined {
  if (metadata.endsWith(linkEnd)) return partsAround(metadata, metadata.length - linkEnd.length);
  const end = metadata.indexOf(unchainedMember);
  return end !== -1 && isUnchainedAlone(metadata.slice(end + 1)) ? partsAround(metadata, end) : undefined;
}

/** @param end where the hash ends */
function partsAround(metadata: string, end: number): MetadataParts | undefined {
  const start = end - 2 * HASH_BYTES;
  const chained = start - linkMember.length;
  if (!metadata.startsWith(linkMember, chained)) return undefined;
  return { chained: `${metadata.slice(0, chained)}}`, link: metadata.slice(start, end) };
}

/** INVARIANT: no other member may follow the link, or it would replace a chained one of the same name when parsed. */
function isUnchainedAlone(rest: string): boolean {
  try {
    const members = JSON.parse(`{${rest.slice(1)}`) as Readonly<Record<string, unknown>>;
    return Object.keys(members).length === 1 && unchainedProblem(members['unchained']) === undefined;
  } catch {
    return false;
  }
}

/** The link in a stored event's metadata; undefined if it is not where we put it. */
export function linkIn({ metadata }: Pick<StoredEvent, 'metadata'>): string | undefined {
  return partsOf(metadata)?.link;
}

/**
 * The same, if it follows from the previous link: events are stored as the very text that their links cover. Undefined if
 * it does not follow from the text; it may still follow from the values.
 */
function linkOfStored(previousHash: string, event: StoredEvent): string | undefined {
  const parts = partsOf(event.metadata);
  if (parts === undefined) return undefined;
  return linkTexts(previousHash, event, event.data, parts.chained) === parts.link ? parts.link : undefined;
}

/** Like `verifyChain`, but from the values alone, however they are stored. */
export function verifyCanonicalChain(previousHash: string, event: RecordedEvent): string {
  const recorded = recordedLink(event);
  const { hash: _link, unchained, ...rest } = event.metadata as EventMetadata;
  const problem = unchained === undefined ? undefined : unchainedProblem(unchained);
  if (problem !== undefined) throw new BrokenChain(event.stream, event.revision, problem);
  let computed: string;
  try {
    computed = linkTexts(previousHash, event, canonicalJson(event.data), canonicalJson(rest));
  } catch (cause) {
    throw new BrokenChain(event.stream, event.revision, reasonOf(cause));
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
    throw new BrokenChain(stream, revision, reasonOf(cause));
  }
  if (typeof metadata === 'object' && metadata !== null && 'hash' in metadata) return metadata.hash as string;
  throw new BrokenChain(stream, revision, 'the event has no hash');
}

function reasonOf(cause: unknown): string {
  // The message names the event once more.
  if (cause instanceof UnreadableEvent) return 'it is not JSON';
  return errorMessage(cause);
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
