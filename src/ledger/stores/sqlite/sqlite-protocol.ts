import type { ChainedRecord, StoredEvent } from '../../stored-event.js';

/**
 * What the SQLite adapter and its worker thread say to each other: calls, and one answer to each, in the order of the calls. Rows are
 * texts, because copying many small objects between threads costs more than reading them from disk.
 */

/** A file is written by one process; any number may read it meanwhile. */
export type OpenedFor = 'writing' | 'reading';

/** What the worker does with its file. */
export interface FileCalls {
  /** Writes a batch in one transaction: each append as a whole or not at all. Everything in it is then durable. */
  append(batch: readonly AppendCall[]): readonly Outcome[];
  /** Returns the position of the last event in the file. */
  delete(stream: string): number;
  /** Whether the lock for writing can be had. */
  probe(): void;
  readStream(stream: string, from: number): Page;
  /** The chain is checked as well, from the link before the first event on; a plain page if it is broken. */
  readChained(stream: string, from: number, after: string): ChainedPage | Page;
  readLast(stream: string, most: number): Page;
  readAll(after: number): Page;
  /** Position of the last event, 0 if there is none. */
  head(): number;
  close(): void;
}

export interface Call {
  readonly method: keyof FileCalls;
  readonly args: readonly unknown[];
}

export type Answer =
  | { readonly kind: 'done'; readonly result: unknown }
  /** Another program has the lock for writing: nothing of the call was written. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'failed'; readonly message: string };

/** Sent unasked, at most once: what is on disk is not certain any more, or not what this thread has open. */
export interface Fault {
  readonly kind: 'fault';
  /** What happened, and what to do. */
  readonly message: string;
}

/** An event as it is written. */
export type EventTexts = Pick<StoredEvent, 'id' | 'type' | 'data' | 'metadata'>;

export interface AppendCall {
  readonly stream: string;
  /** Revision of the first event. */
  readonly first: number;
  readonly events: readonly EventTexts[];
}

/** How one append of a batch has ended. */
export type Outcome =
  /** `repeated`: the same append was written before. Revision and position are those of its last event. */
  | { readonly kind: 'written' | 'repeated'; readonly revision: number; readonly position: number }
  /** The last revision of the stream, -1 if it has no events. */
  | { readonly kind: 'wrong-revision'; readonly revision: number }
  | { readonly kind: 'stream-deleted' };

/** Between two fields of a row: a control character that JSON has only as an escape. */
export const SEPARATOR = '\u001f';
/** A recorded event: position, stream, revision, id, type, data and metadata, joined where that is possible. */
export type Row = string | readonly (string | number)[];

export const FIELDS_PER_ROW = 7;

export function fieldsOf(row: Row): readonly (string | number)[] {
  return typeof row === 'string' ? row.split(SEPARATOR) : row;
}

export function storedEvent(row: Row): StoredEvent {
  const [position, stream, revision, id, type, data, metadata] = fieldsOf(row) as string[];
  return {
    position: BigInt(position!),
    stream: stream!,
    revision: Number(revision),
    id: id!,
    type: type!,
    data: data!,
    metadata: metadata!,
  };
}

export interface Page {
  readonly kind: 'page';
  readonly rows: readonly Row[];
  readonly last: boolean;
}

/** Events of a stream that were seen to follow from each other. */
export interface ChainedPage {
  readonly kind: 'chained-page';
  readonly runs: readonly ChainedRun[];
  readonly last: boolean;
}

/** Events as their links cover them. */
export interface ChainedRun {
  /** A list of `ChainedElement` as JSON, in UTF-8. */
  readonly list: Uint8Array<ArrayBuffer>;
  /** Of each. */
  readonly links: readonly string[];
}

/** An event as its link covers it. */
export interface ChainedElement {
  readonly position: number;
  /** What stands in the place of the link; it counts only if `links` says the same. */
  readonly hash?: string;
  readonly record: ChainedRecord;
}
