import { FatalError, type HealthReports } from '../../../ports/health.js';
import { StoreUnavailable } from '../../event-store.js';
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
import { Feed } from '../feed.js';
import { RecentEvents } from './recent-events.js';
import type { AppendCall, OpenedFor } from './sqlite-protocol.js';
import { chainedEventsOf, endOf, eventsOf, StoreThread } from './store-thread.js';
import { WriteQueue } from './write-queue.js';

/** Interval, in milliseconds, at which a read-only store looks for new events of the writing process. */
const LOOK_AGAIN = 250;
/** How long a confirmed append proves that the store accepts writes, in milliseconds. */
const PROVEN_FOR = 10_000;

/**
 * The embedded event store: one SQLite file, written by a worker thread and by no other process. Appends that arrive during a
 * commit share the next one. After a fault (a write that failed, a file that was deleted or replaced), it refuses everything until it is
 * opened again.
 */
export class SqliteEventStore implements EventStore {
  readonly exclusive = true;
  readonly #file: string;
  readonly #openedFor: OpenedFor;
  readonly #thread: StoreThread;
  readonly #writes: WriteQueue;
  readonly #feeds = new Set<Feed>();
  #closing: Promise<void> | undefined;
  /** Position of the last event, 0 if there is none. */
  #head = 0;
  /** Only while there are feeds. */
  readonly #recent = new RecentEvents();
  /** When the last append was confirmed, by the monotonic clock. */
  #writtenAt = -Infinity;
  #lookingAgain: NodeJS.Timeout | undefined;

  private constructor(file: string, openedFor: OpenedFor, health?: HealthReports) {
    this.#file = file;
    this.#openedFor = openedFor;
    this.#thread = new StoreThread(file, openedFor, (error, isExpected) => {
      this.#writes.refuse(error);
      this.#wakeFeeds();
      if (!isExpected) health?.fail(new FatalError(error.message));
    });
    const listener = {
      written: (append: AppendCall, position: number) => {
        this.#head = position;
        this.#writtenAt = performance.now();
        if (this.#feeds.size > 0) this.#recent.keep(append, position);
      },
      deleted: (stream: string, head: number) => {
        this.#head = head;
        this.#recent.drop(stream);
      },
      committed: () => this.#wakeFeeds(),
    };
    this.#writes = new WriteQueue(file, this.#thread, listener, health);
  }

  /**
   * Opens or creates the file (its directory must exist).
   * @param health learns of a lock that another program holds, and of a fault
   * @throws {StoreUnavailable} if another process has it open for writing, it has another format, or it is not an event store
   */
  static open(file: string, health?: HealthReports): Promise<SqliteEventStore> {
    return SqliteEventStore.#open(file, 'writing', health);
  }

  /**
   * Opens an existing file for reading only; another process may be writing it. Reads go page by page, so that a slow
   * reader does not hold up the writer.
   * @throws {StoreUnavailable} if it does not exist, it has another format, or it is not an event store
   */
  static openForReading(file: string): Promise<EventReader> {
    return SqliteEventStore.#open(file, 'reading');
  }

  static async #open(file: string, openedFor: OpenedFor, health?: HealthReports): Promise<SqliteEventStore> {
    const store = new SqliteEventStore(file, openedFor, health);
    store.#head = await store.#thread.opened();
    return store;
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    return this.#writes.append(stream, events, expected);
  }

  async *read(stream: string, from = 0, after?: string): AsyncGenerator<RecordedEvent, void> {
    this.#checkOpen();
    const pageAt = (revision: number, link: string | undefined) =>
      link === undefined
        ? this.#thread.call('readStream', stream, revision)
        : this.#thread.call('readChained', stream, revision, link);
    let begin = from;
    let before = after;
    for (let coming = pageAt(begin, before); ;) {
      const page = await coming;
      const { next, link: end } = endOf(page, begin);
      const link = after && end;
      if (!page.last) {
        // The thread reads the next page while this one is parsed and used.
        coming = pageAt(next, link);
        coming.catch(() => undefined);
      }
      if (page.kind === 'page') {
        yield* eventsOf(page);
      } else {
        for (const run of page.runs) {
          const events = chainedEventsOf(run, before!);
          // Its links cover something that is not a list of events: the rest is read as it is.
          if (events === undefined) {
            yield* this.read(stream, begin);
            return;
          }
          yield* events;
          begin += events.length;
          before = run.links.at(-1);
        }
      }
      if (page.last) return;
      [begin, before] = [next, link];
    }
  }

  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    this.#checkOpen();
    return eventsOf(await this.#thread.call('readLast', stream, most));
  }

  subscribe(options: SubscribeOptions): Subscription {
    this.#checkOpen();
    if (this.#feeds.size === 0) this.#recent.begin(BigInt(this.#head));
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
    if (this.#openedFor === 'reading') this.#head = await this.#thread.call('head');
    return this.#head === 0 ? undefined : BigInt(this.#head);
  }

  async delete(stream: string): Promise<void> {
    this.#checkOpen();
    await this.#writes.delete(stream);
  }

  /** An append of the last seconds proves it; otherwise a transaction that writes nothing does. */
  async check(): Promise<void> {
    this.#checkOpen();
    if (performance.now() - this.#writtenAt >= PROVEN_FOR) await this.#thread.call('probe');
  }

  /** From now on its thread does not keep the process alive; callers that wait for an answer must do so themselves. */
  unref(): void {
    this.#thread.unref();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#thread.expectEnd();
    await Promise.all([...this.#feeds].map((feed) => feed.close()));
    this.#writes.close();
    await this.#thread.close();
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) {
      throw new StoreUnavailable(`the event store \`${this.#file}\` is closed: open it again`);
    }
    this.#thread.checkThere();
  }

  #eventsAfter(after: bigint): Promise<readonly RecordedEvent[]> | readonly RecordedEvent[] {
    this.#thread.checkThere();
    const recent = this.#openedFor === 'writing' ? this.#recent.after(after) : undefined;
    return recent ?? this.#thread.call('readAll', Number(after)).then((page) => eventsOf(page));
  }
}
