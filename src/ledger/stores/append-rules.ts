import { isCut, isKept } from '../event-store.js';
import type { ExpectedRevision, NewEvent } from '../event-store.js';

/** Revision of an append's first event if the stream is where the writer thinks it is. */
export function firstRevision(expected: ExpectedRevision): number {
  return expected === 'no-stream' ? 0 : expected + 1;
}

/** The state of a stream with this many events, as an expectation names it. */
export function revisionOf(length: number): ExpectedRevision {
  return length === 0 ? 'no-stream' : length - 1;
}

/** @throws {TypeError} for a call that no state of the store could make valid */
export function checkAppend(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): void {
  if (stream === '') throw new TypeError('a stream needs a name: pass for example `organization-<id>`');
  if (events.length === 0) throw new TypeError(`nothing to append to stream \`${stream}\`: pass at least one event`);
  for (const { id, type } of events) {
    if (typeof id !== 'string' || id === '' || typeof type !== 'string' || type === '') {
      throw new TypeError(`an event for stream \`${stream}\` has no id or type: pass a UUID and a name`);
    }
  }
  if (expected !== 'no-stream' && (!Number.isSafeInteger(expected) || expected < 0)) {
    throw new TypeError(`the expected revision \`${expected}\` is neither a revision (0, 1, …) nor \`no-stream\``);
  }
}

/** @throws {TypeError} unless the stream is of a deletable kind: nothing else may ever be forgotten */
export function checkDelete(stream: string): void {
  if (isKept(stream) || isCut(stream)) {
    throw new TypeError(
      `stream \`${stream}\` is permanent: only \`vault-…\`, \`snapshot-…\` and \`renewals-…\` can be deleted`,
    );
  }
}
