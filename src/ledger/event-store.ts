/**
 * The port to the one place where facts live. Adapters: `in-memory.ts`, `sqlite.ts`, `event-store-db.ts`; one
 * contract suite (`test/contracts/event-store.contract.ts`) says what all of them must do.
 */

/** An event on its way into the store. `data` and `metadata` are plain JSON (no undefined, no bigint, no Date). */
export interface NewEvent {
  /** UUID, chosen by the writer: repeating an append with the same ids and the same expectation writes nothing. */
  readonly id: string;
  /** Stable name in the past tense, without a version. */
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  /** The JSON of both, from a writer who has made it already: it is not made again. */
  readonly json?: Readonly<Record<'data' | 'metadata', string>>;
}

/** An event as it was recorded. */
export interface RecordedEvent extends Omit<NewEvent, 'json'> {
  readonly stream: string;
  /** Place in its stream, from 0, without gaps. */
  readonly revision: number;
  /** Place in the whole store: grows, may have gaps. Opaque outside the adapter but for comparing. */
  readonly position: bigint;
}

/** What the writer has read: nothing yet, or everything up to and including this revision. */
export type ExpectedRevision = 'no-stream' | number;

/** Where an append has put its events. */
export interface Appended {
  /** Revision of the last event of the append. */
  readonly revision: number;
  /** Position of the last event of the append. */
  readonly position: bigint;
}

/** A live feed of everything recorded. */
export interface Subscription {
  /** Stops the feed; resolves when the handler that was running has returned. */
  close(): Promise<void>;
}

export interface SubscribeOptions {
  /**
   * Exclusive: events after this position are delivered. The position of an event that was read or delivered, and of one
   * that is kept for ever (`isKept`) when it is to hold after a deletion and for another subscription.
   */
  readonly after: bigint | 'start';
  /** Called with one batch at a time, in position order; the next batch waits until it has resolved. */
  readonly onEvents: (events: readonly RecordedEvent[]) => Promise<void> | void;
  /** The feed has ended because of this error (the handler's, or the store's). It does not go on by itself. */
  readonly onError: (error: unknown) => void;
}

/** What there is for whoever only reads, also while another process writes. */
export type EventReader = Pick<EventStore, 'read' | 'subscribe' | 'head' | 'close'>;

/** So many of the last events of a `sends-…` stream are kept; a store may forget those before. */
export const sendsKept = 64;

export interface EventStore {
  /** True when no other process can write to this store while it is open: what was read here stays true here. */
  readonly exclusive: boolean;

  /**
   * Writes all events, or none, as the next revisions of the stream. Resolves when they are durable.
   * @throws {WrongRevision} when the stream is not at `expected`; nothing is written
   * @throws {StreamDeleted} when the stream was deleted; nothing is written
   * @throws {StoreUnavailable} when the store cannot say whether it has written
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;

  /**
   * The events of a stream from a revision (inclusive, default 0), in order. A missing stream reads as empty.
   * @param after the link of the chain before the first of them. A store that reads in a thread of its own checks there that
   *   each follows, as `verifyChain` does; what it has not checked, `verifyChain` still does.
   */
  read(stream: string, from?: number, after?: string): AsyncIterable<RecordedEvent>;

  /** The last events of a stream, at most so many, in order: the one way to read a `sends-…` stream, whose first ones go. */
  last(stream: string, most: number): Promise<readonly RecordedEvent[]>;

  /**
   * Everything recorded after a position, then everything that comes, once and in order; `renewals-…` and `sends-…` may be
   * left out, and an event of a stream that can be deleted may in rare cases come twice.
   */
  subscribe(options: SubscribeOptions): Subscription;

  /** Position of the last event in the store, or undefined when it is empty. */
  head(): Promise<bigint | undefined>;

  /** Removes a `vault-…` (crypto-shredding), `snapshot-…` or `renewals-…` stream for good; its name must not be used again. */
  delete(stream: string): Promise<void>;

  /**
   * Resolves when the store takes what we write, as far as that can be known without writing; only where a store can be
   * there and refuse.
   * @throws {StoreUnavailable} when it does not
   */
  check?(): Promise<void>;

  /** Nothing of it keeps the process alive any more, where something did: whoever waits for an answer has to. */
  unref?(): void;
  /** Finishes what was accepted, then releases the store. */
  close(): Promise<void>;
}

export const EVENT_STORE = Symbol('EventStore');

/** True for a stream that is never deleted nor cut: a reader may begin again behind any of its events. */
export function isKept(stream: string): boolean {
  return !/^(vault|snapshot|renewals|sends)-./.test(stream);
}

/** True for a stream of which the last events are kept only (`sendsKept`). */
export function isCut(stream: string): boolean {
  return stream.startsWith('sends-');
}

/** The stream is not where the writer thought it was: read again and decide again. */
export class WrongRevision extends Error {
  constructor(
    readonly stream: string,
    readonly expected: ExpectedRevision,
    readonly actual: ExpectedRevision,
  ) {
    super(`stream \`${stream}\` is at ${actual}, not at ${expected}`);
    this.name = 'WrongRevision';
  }
}

/** The stream was deleted, and its name must not be used again. */
export class StreamDeleted extends Error {
  constructor(stream: string) {
    super(`stream \`${stream}\` was deleted and its name cannot be reused: choose a new id`);
    this.name = 'StreamDeleted';
  }
}

/** The store did not answer, or has failed: the outcome of the call is unknown to us. */
export class StoreUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreUnavailable';
  }
}

/** Why a store refuses, whoever asks again: a right that was taken away, or more in one append than it takes. */
export type StoreRefusal = { readonly kind: 'access-denied' } | { readonly kind: 'too-large'; readonly limit: number };

/**
 * The store answers and refuses, until somebody changes its settings: the same call again is refused again. What is too
 * large was not written; of what is denied an earlier try may have been.
 */
export class StoreRefused extends StoreUnavailable {
  constructor(
    message: string,
    readonly refusal: StoreRefusal,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'StoreRefused';
  }
}
