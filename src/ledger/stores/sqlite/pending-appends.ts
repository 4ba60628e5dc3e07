import { StoreUnavailable, StreamDeleted, WrongRevision } from '../../event-store.js';
import type { Appended, ExpectedRevision, NewEvent } from '../../event-store.js';
import { jsonText } from '../../stored-event.js';
import { checkAppend, firstRevision } from '../append-rules.js';
import { OUTCOME } from './sqlite-protocol.js';
import type { StoreThread } from './store-thread.js';
import type { WriteLock } from './write-lock.js';

/** An append that waits for its commit, with the id, type, data and metadata of each event as text. */
interface PendingAppend {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly fields: readonly string[];
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Most text of appends that are sent together, in UTF-16 units, but for a single longer one: this thread is held up while it is
 * copied for the other.
 */
const MOST_TEXT = 2 ** 20;

/** Called after writes. */
export interface CommitListener {
  written(stream: string, fields: readonly string[], revision: number, position: number): void;
  /** After all appends of a commit, if it wrote any. */
  committed(): void;
}

/** Appends on their way to the worker. Those that arrive during a commit share the next one. */
export class PendingAppends {
  readonly #thread: StoreThread;
  readonly #lock: WriteLock;
  readonly #listener: CommitListener;
  #queue: PendingAppend[] = [];
  #commitsRunning = 0;
  #flushScheduled = false;
  /** Why no further writes are possible. */
  #failure: string | undefined;
  #isClosing = false;

  constructor(thread: StoreThread, lock: WriteLock, listener: CommitListener) {
    this.#thread = thread;
    this.#lock = lock;
    this.#listener = listener;
  }

  /** @throws immediately for invalid appends, and {StoreUnavailable} after a fault, or while another program keeps the lock */
  add(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
    resolve: PendingAppend['resolve'],
    reject: PendingAppend['reject'],
  ): void {
    if (this.#failure !== undefined) throw new StoreUnavailable(this.#failure);
    this.#lock.check();
    checkAppend(stream, events, expected);
    const fields: string[] = [];
    for (const event of events) {
      fields.push(event.id, event.type, jsonText(event, 'data'), jsonText(event, 'metadata'));
    }
    this.#queue.push({ stream, expected, fields, resolve, reject });
    this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#commitsRunning > 0 || this.#lock.isTaken) return;
    this.#flushScheduled = true;
    // After the microtasks of this callback, which make its other appends. Not one turn of the event loop later: that could first
    // process many requests, and later appends share the next commit anyway.
    process.nextTick(() => {
      this.#flushScheduled = false;
      if (this.#commitsRunning === 0 && this.#queue.length > 0) this.#send(this.#next());
    });
  }

  /** Sends the whole queue to the worker. */
  flush(): void {
    while (this.#queue.length > 0) this.#send(this.#next());
  }

  /** Takes those from the queue that are sent together. */
  #next(): readonly PendingAppend[] {
    let text = 0;
    const end = this.#queue.findIndex(({ fields }, place) => {
      text += fields.reduce((sum, field) => sum + field.length, 0);
      return place > 0 && text > MOST_TEXT;
    });
    return this.#queue.splice(0, end < 0 ? this.#queue.length : end);
  }

  /** Sends these to the worker as one transaction. */
  #send(appends: readonly PendingAppend[]): void {
    const batch: (string | number)[] = [];
    for (const { stream, expected, fields } of appends) {
      batch.push(stream, firstRevision(expected), fields.length / 4);
      for (const field of fields) batch.push(field);
    }
    this.#commitsRunning++;
    this.#thread.send({ kind: 'append', batch }, (answer) => {
      this.#commitsRunning--;
      if (answer.kind === 'appended') {
        this.#settle(appends, answer.outcomes);
        if (this.#queue.length > 0) this.#scheduleFlush();
      } else if (answer.kind === 'locked') {
        // Nothing was written. They wait before all others.
        this.#queue.unshift(...appends);
        this.#waitForLock();
      } else {
        const error = this.#thread.unexpected(answer);
        for (const append of appends) append.reject(error);
        this.refuse(error);
      }
    });
  }

  /** Has the queue sent when the lock is free; refuses it, for certain, if that takes too long. */
  #waitForLock(): void {
    if (this.#isClosing) return this.#rejectAll(this.#lock.refusal());
    this.#lock.wait().then(
      () => this.#scheduleFlush(),
      (error: unknown) => this.#rejectAll(error),
    );
  }

  #rejectAll(error: unknown): void {
    for (const append of this.#queue.splice(0)) append.reject(error);
  }

  /** Sends what is left, once. */
  close(): void {
    this.#isClosing = true;
    this.flush();
  }

  #settle(appends: readonly PendingAppend[], outcomes: readonly number[]): void {
    let hasWritten = false;
    for (let index = 0, at = 0; index < appends.length; index++, at += 3) {
      const append = appends[index];
      const revision = outcomes[at + 1] ?? 0;
      const position = outcomes[at + 2] ?? 0;
      if (append === undefined) continue;
      switch (outcomes[at]) {
        case OUTCOME.written:
          hasWritten = true;
          this.#listener.written(append.stream, append.fields, revision, position);
          append.resolve({ revision, position: BigInt(position) });
          break;
        case OUTCOME.repeated:
          append.resolve({ revision, position: BigInt(position) });
          break;
        case OUTCOME.wrongRevision:
          append.reject(new WrongRevision(append.stream, append.expected, revision < 0 ? 'no-stream' : revision));
          break;
        case OUTCOME.streamDeleted:
          append.reject(new StreamDeleted(append.stream));
          break;
      }
    }
    if (hasWritten) this.#listener.committed();
  }

  /** Refuses all waiting appends, and all later ones. */
  refuse(error: StoreUnavailable): void {
    this.#failure = error.message;
    this.#rejectAll(error);
  }
}
