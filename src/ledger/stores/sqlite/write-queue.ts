import type { HealthReports } from '../../../ports/health.js';
import { StoreLocked, StoreUnavailable, StreamDeleted, WrongRevision } from '../../event-store.js';
import type { Appended, ExpectedRevision, NewEvent } from '../../event-store.js';
import { jsonText } from '../../stored-event.js';
import { checkAppend, checkDelete, firstRevision } from '../append-rules.js';
import type { AppendCall, EventTexts, Outcome } from './sqlite-protocol.js';
import type { StoreThread } from './store-thread.js';

interface PendingAppend extends AppendCall {
  readonly kind: 'append';
  readonly expected: ExpectedRevision;
  resolve(appended: Appended): void;
  reject(error: unknown): void;
}

interface PendingDelete {
  readonly kind: 'delete';
  readonly stream: string;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Most text of appends that are sent together, in UTF-16 units, but for a single longer one: this thread is held up while it is
 * copied for the other.
 */
const MOST_TEXT = 2 ** 20;
/** Milliseconds between two attempts to get the lock that another program has. */
const LOCK_RETRY_MS = 100;
/** Milliseconds of a lock after which requests are refused; they retry later. */
const LOCK_REFUSED_MS = 4_500;
/** Milliseconds of a lock after which the store gives up. */
const LOCK_MOST_MS = 30_000;

const LOCKED = 'event-store-locked';

/** Called after writes. */
export interface WriteListener {
  written(append: AppendCall, position: number): void;
  deleted(stream: string, head: number): void;
  /** After all appends of a commit, if it wrote any. */
  committed(): void;
}

/**
 * Writes on their way to the worker, in order. Appends that arrive during a commit share the next one. While another program has the
 * lock for writing, SQLite has written nothing for certain, so all wait here, and the thread reads meanwhile.
 */
export class WriteQueue {
  readonly #file: string;
  readonly #thread: StoreThread;
  readonly #listener: WriteListener;
  readonly #health: HealthReports | undefined;
  #queue: (PendingAppend | PendingDelete)[] = [];
  #running = 0;
  #isScheduled = false;
  /** Why no further writes are possible. */
  #failure: string | undefined;
  #isClosing = false;
  #lockedSince: number | undefined;
  #lockRetry: NodeJS.Timeout | undefined;

  constructor(file: string, thread: StoreThread, listener: WriteListener, health: HealthReports | undefined) {
    this.#file = file;
    this.#thread = thread;
    this.#listener = listener;
    this.#health = health;
  }

  /**
   * @throws {StoreUnavailable} after a fault
   * @throws {StoreLocked} while another program keeps the lock
   */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#checkOpen();
      checkAppend(stream, events, expected);
      const texts = events.map((event): EventTexts => {
        return { id: event.id, type: event.type, data: jsonText(event, 'data'), metadata: jsonText(event, 'metadata') };
      });
      this.#add({ kind: 'append', stream, first: firstRevision(expected), events: texts, expected, resolve, reject });
    });
  }

  /** @throws as `append` */
  delete(stream: string): Promise<void> {
    return new Promise((resolve, reject) => {
      checkDelete(stream);
      this.#checkOpen();
      this.#add({ kind: 'delete', stream, resolve, reject });
    });
  }

  #checkOpen(): void {
    if (this.#failure !== undefined) throw new StoreUnavailable(this.#failure);
    if (this.#lockedMs() >= LOCK_REFUSED_MS) throw this.#thread.locked();
  }

  #add(write: PendingAppend | PendingDelete): void {
    this.#queue.push(write);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#running > 0 || this.#lockedSince !== undefined) return;
    this.#isScheduled = true;
    // After the microtasks of this callback, which make its other appends. Not one turn of the event loop later: that could first
    // process many requests, and later appends share the next commit anyway.
    process.nextTick(() => {
      this.#isScheduled = false;
      if (this.#running === 0 && this.#queue.length > 0) void this.#sendNext();
    });
  }

  /** Sends the first writes of the queue to the worker: a deletion, or appends as one transaction. */
  async #sendNext(): Promise<void> {
    const writes = this.#next();
    const [first] = writes;
    this.#running++;
    try {
      if (first?.kind === 'delete') await this.#delete(first);
      else await this.#append(writes.filter(({ kind }) => kind === 'append') as PendingAppend[]);
      this.#running--;
      if (this.#queue.length > 0) this.#schedule();
    } catch (error) {
      this.#running--;
      if (error instanceof StoreLocked) {
        // Nothing was written. They wait before all others.
        this.#queue.unshift(...writes);
        this.#waitForLock();
      } else {
        for (const { reject } of writes) reject(error);
        this.refuse(error as StoreUnavailable);
      }
    }
  }

  #next(): readonly (PendingAppend | PendingDelete)[] {
    let text = 0;
    const end = this.#queue.findIndex((write, place) => {
      if (write.kind === 'delete') return true;
      for (const { data, metadata } of write.events) text += data.length + metadata.length;
      return place > 0 && text > MOST_TEXT;
    });
    return this.#queue.splice(0, end < 0 ? this.#queue.length : Math.max(end, 1));
  }

  async #delete({ stream, resolve }: PendingDelete): Promise<void> {
    this.#listener.deleted(stream, await this.#thread.call('delete', stream));
    resolve();
  }

  async #append(appends: readonly PendingAppend[]): Promise<void> {
    const batch = appends.map(({ stream, first, events }) => ({ stream, first, events }));
    const outcomes = await this.#thread.call('append', batch);
    for (const [index, outcome] of outcomes.entries()) this.#settle(appends[index]!, outcome);
    if (outcomes.some(({ kind }) => kind === 'written')) this.#listener.committed();
  }

  #settle(append: PendingAppend, outcome: Outcome): void {
    const { stream, expected, resolve, reject } = append;
    switch (outcome.kind) {
      case 'written':
        this.#listener.written(append, outcome.position);
        return resolve({ revision: outcome.revision, position: BigInt(outcome.position) });
      case 'repeated':
        return resolve({ revision: outcome.revision, position: BigInt(outcome.position) });
      case 'wrong-revision':
        return reject(new WrongRevision(stream, expected, outcome.revision < 0 ? 'no-stream' : outcome.revision));
      case 'stream-deleted':
        return reject(new StreamDeleted(stream));
    }
  }

  #waitForLock(): void {
    if (this.#isClosing) return this.#rejectAll(this.#thread.locked());
    if (this.#lockedSince === undefined) {
      this.#lockedSince = performance.now();
      this.#health?.raise(
        LOCKED,
        'degraded',
        `another program has the write lock of \`${this.#file}\`; end its transaction, and never write to this file`,
      );
    }
    this.#lockRetry ??= setTimeout(() => void this.#tryLock(), LOCK_RETRY_MS);
  }

  async #tryLock(): Promise<void> {
    this.#lockRetry = undefined;
    const error: unknown = await this.#thread.call('probe').catch((reason: unknown) => reason);
    if (!(error instanceof StoreLocked)) {
      this.#lockedSince = undefined;
      this.#health?.clear(LOCKED);
      if (this.#queue.length > 0) this.#schedule();
    } else if (this.#lockedMs() >= LOCK_MOST_MS) {
      this.#thread.fail(
        `another program has had the write lock of \`${this.#file}\` for ${LOCK_MOST_MS / 1000} s; end its transaction, then ` +
          'restart the coordinator',
      );
    } else {
      if (this.#lockedMs() >= LOCK_REFUSED_MS) this.#rejectAll(error);
      if (!this.#isClosing) this.#waitForLock();
    }
  }

  #lockedMs(): number {
    return this.#lockedSince === undefined ? 0 : performance.now() - this.#lockedSince;
  }

  #rejectAll(error: unknown): void {
    for (const { reject } of this.#queue.splice(0)) reject(error);
  }

  /** Refuses all waiting writes, and all later ones. */
  refuse(error: StoreUnavailable): void {
    this.#failure = error.message;
    clearTimeout(this.#lockRetry);
    this.#rejectAll(error);
  }

  /** Sends what is left, once. */
  close(): void {
    this.#isClosing = true;
    clearTimeout(this.#lockRetry);
    while (this.#queue.length > 0) void this.#sendNext();
  }
}
