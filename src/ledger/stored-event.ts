import { UnreadableEvent, type NewEvent, type RecordedEvent } from './event-store.js';

/**
 * A recorded event with its JSON as text. Every reader gets its own values parsed from it, so that neither the writer
 * nor another reader can edit the past; freezing shared values was measured to cost more than parsing them again.
 */
export interface StoredEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

/** The event as a reader gets it: its JSON is parsed on first access, because many readers only pass it on. */
export function parseEvent(stored: StoredEvent): RecordedEvent {
  return new ParsedEvent(stored);
}

class ParsedEvent implements RecordedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  readonly id: string;
  readonly type: string;
  declare readonly data: unknown;
  declare readonly metadata: unknown;
  readonly #stored: StoredEvent;
  #data: { readonly value: unknown } | undefined;
  #metadata: { readonly value: unknown } | undefined;

  constructor(stored: StoredEvent) {
    this.stream = stored.stream;
    this.revision = stored.revision;
    this.position = stored.position;
    this.id = stored.id;
    this.type = stored.type;
    this.#stored = stored;
    // Own members, as in any plain object, so that copies and comparisons see them.
    Object.defineProperty(this, 'data', ParsedEvent.#dataMember);
    Object.defineProperty(this, 'metadata', ParsedEvent.#metadataMember);
  }

  static storedOf(event: RecordedEvent): StoredEvent | undefined {
    return #stored in event ? event.#stored : undefined;
  }

  // Shared by all events: separate getters would give each event its own hidden class.
  static readonly #dataMember = {
    enumerable: true,
    get(this: ParsedEvent) {
      return (this.#data ??= { value: parsed(this.#stored, 'data') }).value;
    },
  };
  static readonly #metadataMember = {
    enumerable: true,
    get(this: ParsedEvent) {
      return (this.#metadata ??= { value: parsed(this.#stored, 'metadata') }).value;
    },
  };
}

/** @throws {UnreadableEvent} without the parser's message, which quotes the text: that may contain a code or a token */
function parsed(stored: StoredEvent, member: 'data' | 'metadata'): unknown {
  try {
    return JSON.parse(stored[member]) as unknown;
  } catch {
    const { stream, revision, type } = stored;
    throw new UnreadableEvent(
      stream,
      revision,
      `the ${member} of the event \`${type}\` at revision ${revision} of stream \`${stream}\` is not JSON`,
    );
  }
}

/** The JSON of an event as stored; undefined for an event that was not read from a store. */
export function storedTexts(event: RecordedEvent): StoredEvent | undefined {
  return ParsedEvent.storedOf(event);
}

/** What the link of an event covers, parsed. */
export type ChainedRecord = Omit<RecordedEvent, 'position' | 'metadata'> & { readonly metadata: { hash?: string } };

/**
 * An event that was found to follow a link of the chain when it was read.
 * @param record of this event alone: its metadata gets the event's own link
 */
export function checkedEvent(record: ChainedRecord, position: bigint, hash: string, after: string): RecordedEvent {
  return new CheckedEvent(record, position, hash, after);
}

class CheckedEvent implements RecordedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: object;
  readonly #after: string;

  constructor(record: ChainedRecord, position: bigint, hash: string, after: string) {
    this.stream = record.stream;
    this.revision = record.revision;
    this.position = position;
    this.id = record.id;
    this.type = record.type;
    this.data = record.data;
    record.metadata.hash = hash;
    this.metadata = record.metadata;
    this.#after = after;
  }

  static after(event: RecordedEvent): string | undefined {
    return #after in event ? event.#after : undefined;
  }
}

/** The link of the chain that the event was found to follow when it was read; undefined if it was not checked. */
export function checkedAfter(event: RecordedEvent): string | undefined {
  return CheckedEvent.after(event);
}

/** The event built from its JSON alone. */
export function onlyStored(event: RecordedEvent): RecordedEvent {
  return ParsedEvent.storedOf(event) ? event : parseEvent(storedEvent(event));
}

/** The event with its JSON as text, which is cheap to send to another thread. */
export function storedEvent(event: RecordedEvent): StoredEvent {
  const { stream, revision, position, id, type } = event;
  return (
    ParsedEvent.storedOf(event) ?? {
      stream,
      revision,
      position,
      id,
      type,
      data: jsonText(event, 'data'),
      metadata: jsonText(event, 'metadata'),
    }
  );
}

/** The JSON text of an event's data or metadata. @throws {TypeError} if it has none */
export function jsonText(event: NewEvent, member: 'data' | 'metadata'): string {
  if (event.json !== undefined) return event.json[member];
  const value = event[member];
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) {
    throw new TypeError(
      `the ${member} of the event \`${event.type}\` is ${typeof value}, which has no JSON form: pass plain JSON`,
    );
  }
  return text;
}
