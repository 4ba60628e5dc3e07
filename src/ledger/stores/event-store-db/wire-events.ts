import type { JSONEventData, JSONType, Position, RecordedEvent as ClientEvent } from '@eventstore/db-client';
import { StoreUnavailable } from '../../event-store.js';
import type { NewEvent, RecordedEvent } from '../../event-store.js';
import { jsonText } from '../../stored-event.js';
import { isRecordedId } from '../../../domain/uuid.js';

/** An event as the client sends it. */
export function toWire(stream: string, event: NewEvent): JSONEventData {
  const { id, type } = event;
  // The server gives ids back in lower case, and the hash chain is over the text.
  if (!isRecordedId(id)) {
    throw new TypeError(`the id \`${id}\` of an event for stream \`${stream}\` is not a lower-case UUID`);
  }
  // Parsed from text at once: what the caller does to its objects later must not be in a second try.
  const data = JSON.parse(jsonText(event, 'data')) as JSONType;
  // The client drops metadata that is falsy, and takes bytes as they are.
  const metadata = new Uint8Array(Buffer.from(jsonText(event, 'metadata')));
  return { contentType: 'application/json', id, type, data, metadata };
}

/** The largest position or revision; the server writes "none" as the unsigned form of -1. */
const LARGEST = 2n ** 63n - 1n;

/** Whether the server has told where in the log an event is. */
export function isPosition({ commit, prepare }: Position): boolean {
  return commit <= LARGEST && commit === prepare;
}

/** An event as the client has read it. @throws {StoreUnavailable} when it is none of ours */
export function fromWire(event: ClientEvent): RecordedEvent {
  const { streamId: stream, id, type, data, metadata, position } = event;
  const revision = Number(event.revision);
  const where = `event \`${id}\` of stream \`${stream}\``;
  if (!Number.isSafeInteger(revision)) throw new StoreUnavailable(`${where} has the revision ${event.revision}`);
  if (!event.isJson) throw new StoreUnavailable(`${where} is not JSON: it was not written by Countersign`);
  if (position === undefined || !isPosition(position)) {
    throw new StoreUnavailable(
      `${where} has no position of its own: the server must be 22.6 or later, and no explicit transaction may write here`,
    );
  }
  return { stream, revision, position: position.commit, id, type, data, metadata };
}
