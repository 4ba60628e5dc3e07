import { END, START, streamNameFilter } from '@eventstore/db-client';
import type { AllStreamResolvedEvent } from '@eventstore/db-client';
import type { HealthReports } from '../../../ports/health.js';
import { checkAppend, checkDelete } from '../append-rules.js';
import { CatchUp } from './catch-up.js';
import { Connection } from './connection.js';
import type { Limits } from './connection.js';
import { findFault } from './faults.js';
import { LogReads } from './log-reads.js';
import { checkFiles, readConnectionString } from './settings.js';
import type { AppendMode, ConnectionSettings } from './settings.js';
import { Seen } from './seen.js';
import { StreamChanges } from './stream-changes.js';
import { FED_PREFIXES, isKept } from './stream-names.js';
import { AWAY_AFTER_MS, away, UNREACHABLE, Watch } from './watch.js';
import { fromWire } from './wire-events.js';
import { StoreUnavailable } from '../../event-store.js';
import type {
  Appended,
  EventStore,
  ExpectedRevision,
  NewEvent,
  RecordedEvent,
  SubscribeOptions,
  Subscription,
  TooLarge,
} from '../../event-store.js';
import { Feed } from '../feed.js';

export interface EventStoreDbOptions {
  /**
   * Wire path of appends: `classic` is one call each; `batch` is one stream for all, with two to three times the
   * throughput. Default `classic`, because the client can end the process if a batch stream breaks; `batch` where the
   * client supports nothing else, which is over TLS without `user:password`.
   */
  readonly appendMode?: AppendMode;
  /** Time limit of one attempt at a call, in milliseconds, default 3000. */
  readonly appendTimeoutMs?: number;
  /**
   * How long a call is retried until it fails as unavailable, in milliseconds, default 9000: longer than most elections,
   * and short enough that no request takes more than 10 seconds because of the store.
   */
  readonly giveUpAfterMs?: number;
  /** Pause before the second attempt, in milliseconds, default 50; it doubles up to a second. */
  readonly retryAfterMs?: number;
  /** How long `open` waits for a server, in milliseconds; like `giveUpAfterMs` by default. */
  readonly reachWithinMs?: number | undefined;
  /** Learns when the server does not respond, denies access or has lost events. */
  readonly health?: HealthReports | undefined;
}

/** Type of the event by which the server marks a deleted stream; its revision is not a real one. */
const TOMBSTONE = '$streamDeleted';
/** How long a host may take to show its protocol, in milliseconds. */
const LOOK_MS = 2_000;

/**
 * An event store in EventStoreDB 22.6 or later, or in KurrentDB. A position is the commit position of $all: the server
 * writes a committed record for each event of an append, so it increases from event to event (server sources,
 * StorageWriterService). `head` considers streams that are never deleted, and every feed gets that far.
 */
export class EventStoreDbEventStore implements EventStore {
  readonly exclusive = false;
  readonly #connection: Connection;
  readonly #reads: LogReads;
  readonly #changes: StreamChanges;
  readonly #watch: Watch;
  readonly #retryAfterMs: number;
  readonly #subscriptions = new Set<Subscription>();
  #closing: Promise<void> | undefined;
  readonly #seen = new Seen();

  private constructor(connection: Connection, limits: Limits, health: HealthReports | undefined) {
    this.#connection = connection;
    this.#reads = new LogReads(connection, limits);
    this.#changes = new StreamChanges(connection, this.#reads, limits, () => this.#watch.confirm());
    this.#watch = new Watch(connection, this.#reads, this.#seen, () => this.#changes.checkTaken(), health);
    this.#retryAfterMs = limits.retryAfterMs;
  }

  /**
   * Connects. Hosts, TLS and credentials are in the connection string, which is never logged or put into an error.
   * @throws {TypeError} if the connection string is invalid, or does not fit the append mode
   * @throws {StoreUnavailable} if no server responds, or at once if it refuses the user or its certificate is not
   * trusted
   */
  static async open(connectionString: string, options: EventStoreDbOptions = {}): Promise<EventStoreDbEventStore> {
    const settings = readConnectionString(connectionString);
    checkFiles(settings);
    const connection = Connection.acquire(connectionString.trim(), settings, options.appendMode);
    const limits = {
      appendTimeoutMs: options.appendTimeoutMs ?? 3_000,
      giveUpAfterMs: options.giveUpAfterMs ?? 9_000,
      retryAfterMs: options.retryAfterMs ?? 50,
      silentMs: () => connection.answers.silentMs,
    };
    const store = new EventStoreDbEventStore(connection, limits, options.health);
    try {
      await store.#reach(settings, options);
      store.#watch.start();
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  }

  /** Waits for a server, but not for one whose certificate is untrusted, or that speaks TLS when we do not. */
  async #reach(settings: ConnectionSettings, { reachWithinMs, health }: EventStoreDbOptions): Promise<void> {
    const input = new AbortController();
    const look = async (): Promise<void> => {
      const fault = await findFault(settings, LOOK_MS);
      if (fault !== undefined) throw new StoreUnavailable(`the event store cannot be used: ${fault}`);
    };
    const late = setTimeout(
      () => health?.raise(UNREACHABLE, 'failing', `${away}; the start waits for it`),
      AWAY_AFTER_MS,
    );
    const reading = this.#reads.allBackwards(END, 1, input.signal, reachWithinMs);
    try {
      // In parallel, because it is usually fine.
      await Promise.race([reading, look().then(() => reading)]);
      health?.clear(UNREACHABLE);
    } catch (error) {
      // It may have come up in the meantime, and this fault may be why the attempts failed.
      await look();
      throw error;
    } finally {
      clearTimeout(late);
      input.abort();
      reading.catch(() => undefined);
    }
  }

  readonly remote = {
    check: (): void => {
      this.#checkOpen();
      this.#watch.checkUsable();
      this.#changes.checkNotDenied();
    },
    latest: (): bigint | undefined => this.#seen.last?.position,
    isStalled: (): boolean => this.#connection.answers.isStalled,
  };

  /** The server's limit on the bytes of an append, or of an event, if it is lower than this. Nothing is written. */
  lowerLimit(wanted: number): Promise<TooLarge | undefined> {
    return this.#changes.lowerLimit(wanted);
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    checkAppend(stream, events, expected);
    const appended = await this.#changes.append(stream, events, expected);
    const last = events.at(-1);
    if (last && isKept(stream)) this.#seen.note(appended.position, last.id);
    return appended;
  }

  async *read(stream: string, from = 0): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    yield* this.#reads.stream(stream, from, Number.MAX_SAFE_INTEGER);
  }

  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    this.#checkOpen();
    return this.#reads.last(stream, most);
  }

  subscribe(options: SubscribeOptions): Subscription {
    this.#checkOpen();
    const catchUp = this.#catchUp(options.after);
    const feed = new Feed(
      () => catchUp.next(),
      options,
      () => {
        catchUp.stop();
        this.#subscriptions.delete(subscription);
      },
    );
    const subscription = {
      close: () => {
        // Before the feed, which waits for the server if it is just looking something up.
        catchUp.stop();
        return feed.close();
      },
    };
    this.#subscriptions.add(subscription);
    catchUp.start(() => feed.wake());
    return subscription;
  }

  async head(): Promise<bigint | undefined> {
    this.#checkOpen();
    await this.#reads.advance(this.#seen, (from, count) => this.#reads.allBackwards(from, count));
    return this.#seen.last?.position;
  }

  async delete(stream: string): Promise<void> {
    this.#checkOpen();
    checkDelete(stream);
    await this.#changes.delete(stream);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#watch.stop();
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    await this.#changes.settled();
    await this.#connection.release();
  }

  #catchUp(after: bigint | 'start'): CatchUp<AllStreamResolvedEvent> {
    return new CatchUp<AllStreamResolvedEvent>(
      {
        // No checkpoints: an event may still appear at their positions, and one was seen at 2^64 - 1.
        open: (position) =>
          this.#connection.subscribe({
            fromPosition: position === 'start' ? START : position,
            filter: streamNameFilter({ prefixes: [...FED_PREFIXES] }),
          }),
        check: (position, signal) => this.#reads.checkPosition(position, signal),
        take: ({ event }) => {
          if (event === undefined || event.type === TOMBSTONE) return undefined;
          const recorded = fromWire(event);
          if (isKept(recorded.stream)) this.#seen.note(recorded.position, recorded.id);
          return recorded;
        },
        isKept: ({ stream }) => isKept(stream),
        visible: (events, signal) => this.#reads.withoutDeleted(events, signal),
        dropped: (error) => this.#connection.failed(error),
      },
      after,
      this.#retryAfterMs,
    );
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new StoreUnavailable('the event store is closed: open it again');
    this.#watch.checkNotLost();
  }
}
