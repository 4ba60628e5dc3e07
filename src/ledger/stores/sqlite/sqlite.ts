import { Worker } from 'node:worker_threads';
import { checkAppend, checkDelete, firstRevision } from '../append-rules.js';
import { StoreUnavailable, StreamDeleted, WrongRevision } from '../../event-store.js';
import type {
  Appended,
  EventReader,
  EventStore,
  ExpectedRevision,
  NewEvent,
  RecordedEvent,
  SubscribeOptions,
  Subscription,
} from '../../event-store.js';
import { eventsAfter, Feed } from '../feed.js';
import { FIELDS_PER_ROW, OUTCOME } from './sqlite-protocol.js';
import type { Answer, OpenedFor, Request } from './sqlite-protocol.js';
import { jsonText, parseEvent } from '../../stored-event.js';
import type { StoredEvent } from '../../stored-event.js';
import { workerFile } from '../../../worker-file.js';

type Fields = (string | number)[];

/** An append that waits for its commit: what was asked, and its events as id, type, data and metadata text. */
interface PendingAppend {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly fields: readonly string[];
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

/** Just committed events kept for the feeds that have caught up, so that those need not read them from disk. */
const MAX_RECENT = 1_024;
/** Larger events (UTF-16 units of text) are read from disk instead, which bounds the memory of the above. */
const MAX_RECENT_TEXT = 16 * 1024;
/** Milliseconds after which whoever only reads looks for what the writing process has added. */
const LOOK_AGAIN = 250;

/**
 * The embedded event store: one SQLite file, written by a worker thread, and by no other process meanwhile. Appends
 * that wait while a commit runs share the next one; a write that fails makes the store read-only until it is reopened.
 */
export class SqliteEventStore implements EventStore {
  readonly exclusive = true;
  readonly #file: string;
  readonly #openedFor: OpenedFor;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  /** INVARIANT: the worker answers each request once and in order, so the first one here is whose answer is next. */
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly #feeds = new Set<Feed>();
  #queue: PendingAppend[] = [];
  #commitsRunning = 0;
  #flushScheduled = false;
  #closing: Promise<void> | undefined;
  /** Why nothing can be written any more. */
  #writeFailure: string | undefined;
  /** Why nothing can be asked any more. */
  #gone: string | undefined;
  /** Position of the last event, 0 when there is none. */
  #head = 0;
  /** Everything recorded after `#recentAfter`, while there are feeds. */
  #recent: StoredEvent[] = [];
  #recentAfter = 0n;
  #lookingAgain: NodeJS.Timeout | undefined;

  private constructor(file: string, openedFor: OpenedFor, worker: Worker) {
    this.#file = file;
    this.#openedFor = openedFor;
    this.#worker = worker;
    worker.on('message', (answer: Answer) => this.#waiting.shift()?.(answer));
    worker.on('error', (error) => this.#lose(error.message));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', () => {
        this.#lose(this.#closing === undefined ? 'its thread has ended' : 'it is closed');
        resolve();
      });
    });
  }

  /**
   * Opens or creates the file (its directory must exist).
   * @throws {StoreUnavailable} when another process writes it, a newer release wrote it, or it is no event store
   */
  static open(file: string): Promise<SqliteEventStore> {
    return SqliteEventStore.#open(file, 'writing');
  }

  /**
   * Opens a file that is there for reading only, whoever writes it meanwhile. Reads are page by page, so that a slow
   * reader keeps nothing from the writer.
   * @throws {StoreUnavailable} when it is not there, a newer release wrote it, or it is no event store
   */
  static openForReading(file: string): Promise<EventReader> {
    return SqliteEventStore.#open(file, 'reading');
  }

  static async #open(file: string, openedFor: OpenedFor): Promise<SqliteEventStore> {
    // Flags of the process such as --input-type or --watch are not meant for the thread, and some would stop it.
    const options = { workerData: { file, openedFor }, name: 'event-store', execArgv: [] };
    const store = new SqliteEventStore(
      file,
      openedFor,
      new Worker(workerFile('./sqlite-worker.js', import.meta.url), options),
    );
    const answer = await new Promise<Answer>((resolve) => store.#waiting.push(resolve));
    if (answer.kind !== 'opened') {
      await store.#exited;
      throw new StoreUnavailable(answer.kind === 'failed' ? answer.message : `unexpected answer ${answer.kind}`);
    }
    store.#head = answer.head;
    return store;
  }

  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#checkOpen();
      if (this.#writeFailure !== undefined) throw new StoreUnavailable(this.#writeFailure);
      checkAppend(stream, events, expected);
      const fields: string[] = [];
      for (const event of events) {
        fields.push(event.id, event.type, jsonText(event, 'data'), jsonText(event, 'metadata'));
      }
      this.#queue.push({ stream, expected, fields, resolve, reject });
      this.#scheduleFlush();
    });
  }

  async *read(stream: string, from = 0): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    let next = this.#page({ kind: 'read-stream', stream, from });
    for (;;) {
      const { events, last } = await next;
      const lastRevision = events.at(-1)?.revision;
      if (!last && lastRevision !== undefined) {
        // The next page is on its way while the caller works on this one.
        next = this.#page({ kind: 'read-stream', stream, from: lastRevision + 1 });
        next.catch(() => undefined);
      }
      yield* events;
      if (last) return;
    }
  }

  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    this.#checkOpen();
    return (await this.#page({ kind: 'read-last', stream, most })).events;
  }

  subscribe(options: SubscribeOptions): Subscription {
    this.#checkOpen();
    if (this.#feeds.size === 0) this.#forgetRecent();
    const feed: Feed = new Feed(
      (after) => this.#eventsAfter(after),
      options,
      () => {
        this.#feeds.delete(feed);
        if (this.#feeds.size > 0) return;
        clearInterval(this.#lookingAgain);
        this.#lookingAgain = undefined;
      },
    );
    this.#feeds.add(feed);
    if (this.#openedFor === 'reading') this.#lookingAgain ??= setInterval(() => this.#wakeFeeds(), LOOK_AGAIN).unref();
    return feed;
  }

  #wakeFeeds(): void {
    for (const feed of this.#feeds) feed.wake();
  }

  async head(): Promise<bigint | undefined> {
    this.#checkOpen();
    if (this.#openedFor === 'reading') {
      const answer = await this.#ask({ kind: 'head' });
      if (answer.kind !== 'head') throw this.#unexpected(answer);
      this.#head = answer.head;
    }
    return this.#head === 0 ? undefined : BigInt(this.#head);
  }

  async delete(stream: string): Promise<void> {
    this.#checkOpen();
    checkDelete(stream);
    // What was accepted before must reach the worker before.
    this.#flush();
    const answer = await this.#ask({ kind: 'delete', stream });
    if (answer.kind !== 'deleted') throw this.#unexpected(answer);
    this.#recent = this.#recent.filter((event) => event.stream !== stream);
    this.#head = answer.head;
  }

  /** Its thread no longer keeps the process alive: whoever waits for an answer has to. */
  unref(): void {
    this.#worker.unref();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#feeds].map((feed) => feed.close()));
    if (this.#gone === undefined) {
      this.#flush();
      void this.#ask({ kind: 'close' });
    }
    await this.#exited;
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) {
      throw new StoreUnavailable(`the event store \`${this.#file}\` is closed: open it again`);
    }
    if (this.#gone !== undefined) throw this.#isGone(this.#gone);
  }

  #isGone(reason: string): StoreUnavailable {
    return new StoreUnavailable(`the event store \`${this.#file}\` cannot be asked: ${reason}`);
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled || this.#commitsRunning > 0) return;
    this.#flushScheduled = true;
    // After the microtasks of this turn, which are where the other appends of the same turn come from.
    setImmediate(() => {
      this.#flushScheduled = false;
      if (this.#commitsRunning === 0) this.#flush();
    });
  }

  /** Hands the whole queue to the worker, as one transaction. */
  #flush(): void {
    if (this.#queue.length === 0) return;
    const appends = this.#queue;
    this.#queue = [];
    const batch: Fields = [];
    for (const { stream, expected, fields } of appends) {
      batch.push(stream, firstRevision(expected), fields.length / 4);
      for (const field of fields) batch.push(field);
    }
    this.#commitsRunning++;
    this.#send({ kind: 'append', batch }, (answer) => {
      this.#commitsRunning--;
      if (answer.kind === 'appended') {
        this.#settle(appends, answer.outcomes);
        if (this.#queue.length > 0) this.#scheduleFlush();
      } else {
        this.#refuse(appends, this.#unexpected(answer));
      }
    });
  }

  #settle(appends: readonly PendingAppend[], outcomes: readonly number[]): void {
    const before = this.#head;
    for (let index = 0, at = 0; index < appends.length; index++, at += 3) {
      const append = appends[index];
      const revision = outcomes[at + 1] ?? 0;
      const position = outcomes[at + 2] ?? 0;
      if (append === undefined) continue;
      switch (outcomes[at]) {
        case OUTCOME.written:
          this.#head = position;
          if (this.#feeds.size > 0) this.#keepRecent(append, revision, position);
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
    if (this.#head > before) this.#wakeFeeds();
  }

  #refuse(appends: readonly PendingAppend[], error: StoreUnavailable): void {
    this.#writeFailure = error.message;
    for (const append of [...appends, ...this.#queue.splice(0)]) append.reject(error);
  }

  #keepRecent({ stream, fields }: PendingAppend, lastRevision: number, lastPosition: number): void {
    const count = fields.length / 4;
    for (let index = 0; index < count; index++) {
      const [id = '', type = '', data = '', metadata = ''] = fields.slice(4 * index, 4 * index + 4);
      const behind = count - 1 - index;
      const position = BigInt(lastPosition - behind);
      if (data.length + metadata.length > MAX_RECENT_TEXT) {
        this.#recent = [];
        this.#recentAfter = position;
      } else {
        this.#recent.push({ stream, revision: lastRevision - behind, position, id, type, data, metadata });
      }
    }
    if (this.#recent.length > 2 * MAX_RECENT) {
      this.#recentAfter = this.#recent[this.#recent.length - MAX_RECENT - 1]?.position ?? this.#recentAfter;
      this.#recent = this.#recent.slice(-MAX_RECENT);
    }
  }

  #forgetRecent(): void {
    this.#recent = [];
    this.#recentAfter = BigInt(this.#head);
  }

  #eventsAfter(after: bigint): Promise<readonly RecordedEvent[]> | readonly RecordedEvent[] {
    if (this.#gone !== undefined) throw this.#isGone(this.#gone);
    if (this.#openedFor === 'writing' && after >= this.#recentAfter) return eventsAfter(this.#recent, after);
    return this.#page({ kind: 'read-all', after: Number(after) }).then(({ events }) => events);
  }

  async #page(request: Request): Promise<{ events: RecordedEvent[]; last: boolean }> {
    const answer = await this.#ask(request);
    if (answer.kind !== 'page') throw this.#unexpected(answer);
    const events: RecordedEvent[] = [];
    const { rows } = answer;
    for (let at = 0; at < rows.length; at += FIELDS_PER_ROW) {
      const [position, stream, revision, id, type, data, metadata] = rows.slice(at, at + FIELDS_PER_ROW) as [
        number,
        string,
        number,
        string,
        string,
        string,
        string,
      ];
      events.push(parseEvent({ position: BigInt(position), stream, revision, id, type, data, metadata }));
    }
    return { events, last: answer.last };
  }

  #ask(request: Request): Promise<Answer> {
    return new Promise((resolve) => this.#send(request, resolve));
  }

  #send(request: Request, onAnswer: (answer: Answer) => void): void {
    if (this.#gone !== undefined) {
      onAnswer({ kind: 'failed', message: this.#isGone(this.#gone).message });
      return;
    }
    this.#waiting.push(onAnswer);
    this.#worker.postMessage(request);
  }

  #unexpected(answer: Answer): StoreUnavailable {
    return new StoreUnavailable(
      answer.kind === 'failed' ? answer.message : `the event store \`${this.#file}\` answered ${answer.kind}`,
    );
  }

  /** The worker is gone: nobody may wait for it any longer. */
  #lose(reason: string): void {
    if (this.#gone !== undefined) return;
    this.#gone = reason;
    const { message } = this.#isGone(reason);
    for (const onAnswer of this.#waiting.splice(0)) onAnswer({ kind: 'failed', message });
    this.#refuse([], new StoreUnavailable(message));
    this.#wakeFeeds();
  }
}
