/**
 * The port to the event store, the only source of facts. Adapters: `in-memory.ts`, `sqlite.ts`, `event-store-db.ts`; one
 * contract suite (`test/contracts/event-store.contract.ts`) holds for all of them.
 */

/** An event to be written. `data` and `metadata` are plain JSON (no undefined, no bigint, no Date). */
export interface NewEvent {
  /** UUID, chosen by the writer: repeating an append with the same ids and the same expectation writes nothing. */
  readonly id: string;
  /** Stable name in the past tense, without a version. */
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  /** The JSON of both, if the writer has it already, so that it is not serialized again. */
  readonly json?: Readonly<Record<'data' | 'metadata', string>>;
}

/** An event as it was recorded. */
export interface RecordedEvent extends Omit<NewEvent, 'json'> {
  readonly stream: string;
  /** Its place in its stream, from 0, without gaps. */
  readonly revision: number;
  /** Its place in the whole store: grows, may have gaps. Outside the adapter, only compare it. */
  readonly position: bigint;
}

/** What the writer has read: nothing yet, or everything up to and including this revision. */
export type ExpectedRevision = 'no-stream' | number;

/** Where the events of an append are. */
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
   * Exclusive: events after this position are delivered. It is the position of an event that was read or delivered. If it must
   * remain valid after deletions and for other subscriptions, the event must be one that is never deleted (`isKept`).
   */
  readonly after: bigint | 'start';
  /** Called with one batch at a time, in position order; the next batch waits until it has resolved. */
  readonly onEvents: (events: readonly RecordedEvent[]) => Promise<void> | void;
  /** The feed has ended with this error, of the handler or the store. It does not restart by itself. */
  readonly onError: (error: unknown) => void;
}

/** The part for readers; another process may write at the same time. */
export type EventReader = Pick<EventStore, 'read' | 'subscribe' | 'head' | 'close'>;

/** How many of the last events of a `message-counts-…` stream are kept; a store may drop earlier ones. */
export const sendsKept = 64;

export interface EventStore {
  /** True if no other process can write to this store while it is open, so that what was read stays current. */
  readonly exclusive: boolean;

  /**
   * Writes all events, or none, as the next revisions of the stream. Resolves when they are durable.
   * @throws {WrongRevision} if the stream is not at `expected`; nothing is written
   * @throws {StreamDeleted} if the stream was deleted; nothing is written
   * @throws {StoreLocked} if another program has the lock for writing; nothing is written
   * @throws {StoreUnavailable} if the store cannot say whether it has written
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended>;

  /**
   * The events of a stream from a revision (inclusive, default 0), in order. A missing stream reads as empty.
   * @param after link of the chain before the first of them. A store that reads in a separate thread checks there that each event
   *   follows, as `verifyChain` does; `verifyChain` still checks the others.
   */
  read(stream: string, from?: number, after?: string): AsyncIterable<RecordedEvent>;

  /** At most so many of the last events of a stream, in order: the only way to read a `message-counts-…` stream, which loses its first ones. */
  last(stream: string, most: number): Promise<readonly RecordedEvent[]>;

  /**
   * Delivers everything recorded after a position and then everything new, once and in order. Events of `renewals-…` and
   * `message-counts-…` may be missing, and in rare cases an event of a stream that can be deleted comes twice.
   */
  subscribe(options: SubscribeOptions): Subscription;

  /** Position of the last event in the store; undefined if it is empty. */
  head(): Promise<bigint | undefined>;

  /** Removes a `vault-…` (crypto-shredding), `snapshot-…` or `renewals-…` stream permanently; its name must not be used again. */
  delete(stream: string): Promise<void>;

  /** Only of stores on other machines: what was learnt of it in the background. */
  readonly remote?: RemoteStore | undefined;

  /**
   * Resolves if the store accepts our writes, as far as that can be known without writing. Only a store in this process has it.
   * @throws {StoreUnavailable} if it does not
   */
  check?(): Promise<void>;

  /** From now on it does not keep the process alive; callers that wait for an answer must do so themselves. */
  unref?(): void;
  /** Finishes accepted work, then releases the store. */
  close(): Promise<void>;
}

/** What is known of a store on other machines, without asking it. */
interface RemoteStore {
  /** @throws {StoreUnavailable} if the store has not responded for some seconds, or refuses to take our writes */
  check(): void;
  /** Position of the last event, as of a second or two ago, or of the last response. */
  latest(): bigint | undefined;
  /** Whether it does not respond, or has just left a call without a response, such as a write to a disk that hangs. */
  isStalled(): boolean;
}

/** Position of the last event, at once. */
export async function latestPosition(store: Pick<EventStore, 'head' | 'remote'>): Promise<bigint> {
  return (store.remote ? store.remote.latest() : await store.head()) ?? -1n;
}

/** Whether a stream has an event. @throws {StoreUnavailable} */
export async function isBegun(store: Pick<EventStore, 'read'>, stream: string): Promise<boolean> {
  for await (const _ of store.read(stream)) return true;
  return false;
}

export const EVENT_STORE = Symbol('EventStore');

/** True for a stream that is never deleted or truncated: a reader may resume after any of its events. */
export function isKept(stream: string): boolean {
  return !/^(vault|snapshot|renewals|message-counts)-./.test(stream);
}

/** True for a stream that keeps only its last events (`sendsKept`). */
export function isCut(stream: string): boolean {
  return stream.startsWith('message-counts-');
}

/** The stream is not at the expected revision: read it again and decide again. */
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

/** The store did not answer, or failed: the outcome of the call is unknown. */
export class StoreUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreUnavailable';
  }
}

/** Another program has the store's lock for writing, and has kept it for too long: nothing was written, nor will be. */
export class StoreLocked extends StoreUnavailable {
  constructor(message: string) {
    super(message);
    this.name = 'StoreLocked';
  }
}

/** Why a store refuses, also when asked again: a missing right, or an append that is too large. */
export type StoreRefusal = { readonly kind: 'access-denied' } | TooLarge;

/** An append, or one of its events, is larger than the store accepts. */
export interface TooLarge {
  readonly kind: 'too-large';
  /** In bytes; absent if the store does not say it. */
  readonly limit?: number | undefined;
  /** The setting of the store that an operator can raise, default `MaxAppendSize`. */
  readonly setting?: string | undefined;
}

/**
 * The store refuses, and will refuse the same call again until somebody changes its settings. An append that is too large was
 * not written; if access is denied, an earlier attempt may have been.
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

/** An event cannot be read: it was damaged, or a later release wrote it. Nothing may be decided on a stream that has it. */
export class UnreadableEvent extends Error {
  /** Its place in the store, if known. */
  position?: bigint;

  constructor(
    readonly stream: string,
    readonly revision: number,
    message: string,
  ) {
    super(message);
    this.name = 'UnreadableEvent';
  }
}

/** An event of a stream was changed, or moved to another place. */
export class BrokenChain extends UnreadableEvent {
  /** @param revision of the first event that does not follow the one before it */
  constructor(stream: string, revision: number, reason: string) {
    super(stream, revision, `the hash chain of stream \`${stream}\` is broken at revision ${revision}: ${reason}`);
    this.name = 'BrokenChain';
  }
}
