import { errorMessage } from '../domain/errors.js';
import { readForm } from '../domain/activity/recorded-form.js';
import { UnreadableEvent, type RecordedEvent } from './event-store.js';

/** The version of the shape of every event's `data`. CONTRIBUTING.md says how an event changes after release 0.1.0. */
export const schemaVersion = 1;

/** What folding reads of an event. */
export interface ReadEvent {
  readonly type: string;
  readonly data: unknown;
}

/**
 * What a recorded event says as readers see it: what the store keeps once is put where they look for it. Pure; call it
 * after `verifyChain`, which covers what is recorded.
 * @throws {UnreadableEvent} unless the event has the schema version of this release
 */
export function readEvent(event: RecordedEvent): ReadEvent {
  const { metadata, type } = event;
  const version = isObject(metadata) ? metadata['schemaVersion'] : undefined;
  if (version !== schemaVersion) {
    throw new UnreadableEvent(
      event.stream,
      event.revision,
      `the event \`${type}\` at revision ${event.revision} of stream \`${event.stream}\` has the schema version \`${String(version)}\`, ` +
        `and this release reads only ${schemaVersion}: start the release that wrote it`,
    );
  }
  return { type, data: readForm(type, event.data) };
}

/** What kept an event from being read, as an error that names the event. */
export function unreadableEvent({ stream, revision, position, type }: RecordedEvent, cause: unknown): UnreadableEvent {
  const error =
    cause instanceof UnreadableEvent
      ? cause
      : new UnreadableEvent(
          stream,
          revision,
          `the event \`${type}\` at revision ${revision} of stream \`${stream}\` cannot be read: ${errorMessage(cause)}`,
        );
  error.position = position;
  return error;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
