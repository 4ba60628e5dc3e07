import type { NewEvent, RecordedEvent } from './event-store.js';

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

const storedOf = new WeakMap<RecordedEvent, StoredEvent>();

/** The event as a reader gets it: its JSON is parsed when it is first looked at, since many readers only pass it on. */
export function parseEvent(stored: StoredEvent): RecordedEvent {
  const { stream, revision, position, id, type } = stored;
  let data: { value: unknown } | undefined;
  let metadata: { value: unknown } | undefined;
  const event: RecordedEvent = {
    stream,
    revision,
    position,
    id,
    type,
    get data() {
      data ??= { value: JSON.parse(stored.data) as unknown };
      return data.value;
    },
    get metadata() {
      metadata ??= { value: JSON.parse(stored.metadata) as unknown };
      return metadata.value;
    },
  };
  storedOf.set(event, stored);
  return event;
}

/** The JSON of an event as its store has it; undefined for one that comes from elsewhere. */
export function storedTexts(event: RecordedEvent): Pick<StoredEvent, 'data' | 'metadata'> | undefined {
  return storedOf.get(event);
}

/** The event by its JSON alone, whatever its store has made it from. */
export function onlyStored(event: RecordedEvent): RecordedEvent {
  return storedOf.has(event) ? event : parseEvent(storedEvent(event));
}

/** The event with its JSON as text, as it can be handed to another thread cheaply. */
export function storedEvent(event: RecordedEvent): StoredEvent {
  const { stream, revision, position, id, type } = event;
  return (
    storedOf.get(event) ?? {
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

/** The JSON text of an event's data or metadata. @throws {TypeError} when it has none */
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
