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

/** The event as a reader gets it. */
export function parseEvent({ stream, revision, position, id, type, data, metadata }: StoredEvent): RecordedEvent {
  return {
    stream,
    revision,
    position,
    id,
    type,
    data: JSON.parse(data) as unknown,
    metadata: JSON.parse(metadata) as unknown,
  };
}

/** The JSON text of an event's data or metadata. @throws {TypeError} when it has none */
export function jsonText(event: NewEvent, member: 'data' | 'metadata'): string {
  const value = event[member];
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) {
    throw new TypeError(
      `the ${member} of the event \`${event.type}\` is ${typeof value}, which has no JSON form: pass plain JSON`,
    );
  }
  return text;
}
