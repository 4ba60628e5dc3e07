import type { ChainedRecord, StoredEvent } from '../../stored-event.js';

/**
 * What the SQLite adapter and its worker thread say to each other: one answer to each request, in the order of the
 * requests. Lists are flat, because copying many small objects between threads costs more than writing them to disk.
 */

/** A recorded event in seven fields: position, stream, revision, id, type, data and metadata as JSON text. */
export const FIELDS_PER_ROW = 7;
export type Fields = readonly (string | number)[];

/** Between two fields in a text of many: a control character that JSON has only as an escape. */
export const SEPARATOR = '\u001f';
/** Events that follow each other: the fields of all, joined where that is possible. */
export type Run = string | Fields;

/** The events of a run. */
export function* storedIn(run: Run): Generator<StoredEvent> {
  const fields = typeof run === 'string' ? run.split(SEPARATOR) : run;
  for (let at = 0; at < fields.length; at += FIELDS_PER_ROW) {
    yield {
      position: BigInt(fields[at]!),
      stream: fields[at + 1] as string,
      revision: Number(fields[at + 2]),
      id: fields[at + 3] as string,
      type: fields[at + 4] as string,
      data: fields[at + 5] as string,
      metadata: fields[at + 6] as string,
    };
  }
}

/** A file is written by one process; any number may read it meanwhile. */
export type OpenedFor = 'writing' | 'reading';

export type Request =
  /** Per append: stream, first revision, number of events, then id, type, data and metadata of each. */
  | { readonly kind: 'append'; readonly batch: readonly (string | number)[] }
  | { readonly kind: 'read-stream'; readonly stream: string; readonly from: number }
  /** The chain is checked as well, from the link before the first event on; the answer is a page if it is broken. */
  | { readonly kind: 'read-chained'; readonly stream: string; readonly from: number; readonly after: string }
  | { readonly kind: 'read-last'; readonly stream: string; readonly most: number }
  | { readonly kind: 'read-all'; readonly after: number }
  | { readonly kind: 'delete'; readonly stream: string }
  | { readonly kind: 'head' }
  /** Whether the lock for writing can be had. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'close' };

export type Answer =
  /** The file is open; `head` is the position of its last event, 0 when it has none. */
  | { readonly kind: 'opened'; readonly head: number }
  /** Per append an outcome and two numbers: see `OUTCOME`. Everything in it is durable. */
  | { readonly kind: 'appended'; readonly outcomes: readonly number[] }
  | Page
  | ChainedPage
  | { readonly kind: 'deleted'; readonly head: number }
  | { readonly kind: 'head'; readonly head: number }
  | { readonly kind: 'closed' }
  | { readonly kind: 'writable' }
  /** Another program has the lock for writing: nothing of the request was written. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'failed'; readonly message: string };

/** Sent unasked, at most once: what is on disk is not certain any more, or not what this thread has open. */
export interface Fault {
  readonly kind: 'fault';
  /** What happened, and what to do. */
  readonly message: string;
}

interface PageOf<R> {
  readonly runs: readonly R[];
  readonly last: boolean;
  /** Of its last event in its stream; absent if there is no event. */
  readonly revision?: number;
}

export interface Page extends PageOf<Run> {
  readonly kind: 'page';
}

/** Events of a stream that were seen to follow from each other. */
export interface ChainedPage extends PageOf<ChainedRun> {
  readonly kind: 'chained-page';
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

/** How one append of a batch has ended, and what the two numbers behind it mean. */
export const OUTCOME = {
  /** Last revision, last position. */
  written: 0,
  /** The same append was written before: last revision, last position. */
  repeated: 1,
  /** Last revision the stream really has (-1: it has no events), 0. */
  wrongRevision: 2,
  /** 0, 0. */
  streamDeleted: 3,
} as const;
