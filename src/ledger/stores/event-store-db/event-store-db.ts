import { ANY, BACKWARDS, END, EventStoreDBClient, NO_STREAM, START, streamNameFilter } from '@eventstore/db-client';
import type {
  AllStreamResolvedEvent,
  AppendResult,
  Credentials,
  JSONEventData,
  JSONType,
  Position,
  RecordedEvent as ClientEvent,
  StreamingRead,
} from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { checkAppend, checkDelete, firstRevision } from '../append-rules.js';
import { CatchUp } from './catch-up.js';
import type { LogPosition } from './catch-up.js';
import { failureOf, isDenied, isInvalidPosition, leavesClientStuck, refused, Tries, within } from './failures.js';
import type { Patience } from './failures.js';
import { findFault } from './faults.js';
import { checkFiles, readConnectionString } from './settings.js';
import type { ConnectionSettings } from './settings.js';
import { isCut, sendsKept, StoreRefused, StoreUnavailable, StreamDeleted, WrongRevision } from '../../event-store.js';
import type {
  Appended,
  EventStore,
  ExpectedRevision,
  NewEvent,
  RecordedEvent,
  SubscribeOptions,
  Subscription,
} from '../../event-store.js';
import { Feed } from '../feed.js';
import { jsonText } from '../../stored-event.js';

type AppendMode = 'batch' | 'classic';

export interface EventStoreDbOptions {
  /**
   * Wire path of appends: `classic` is one call each; `batch` is one stream for all, two to three times the throughput.
   * Default `classic`, since the client can end the process when a batch stream breaks; `batch` where the client knows
   * nothing else, which is over TLS without `user:password`.
   */
  readonly appendMode?: AppendMode;
  /** How long one try of a call may take, in milliseconds, default 3000. */
  readonly appendTimeoutMs?: number;
  /** How long a call is tried until it fails as unavailable, in milliseconds, default 12000: longer than an election. */
  readonly giveUpAfterMs?: number;
  /** Pause before the second try, in milliseconds, default 50; it doubles up to a second. */
  readonly retryAfterMs?: number;
}

interface Limits extends Patience {
  readonly appendTimeoutMs: number;
}

/** Streams that are never deleted: what a reader waits for must not be able to vanish. */
const KEPT_PREFIXES = ['organization-', 'denials-', 'claims-', 'installation-', 'lease-', 'webhook-deliveries-'];
/** Renewals of leases and counts of messages are not among them: they come by the thousand, and no feed has a use for them. */
const DELETABLE_PREFIXES = ['vault-', 'snapshot-'];
/** Type of the event by which the server marks a deleted stream; its revision is no revision. */
const TOMBSTONE = '$streamDeleted';
/** How long a host may take to show how it speaks, in milliseconds. */
const LOOK_MS = 2_000;
/** Of an append that is to be refused; no stream gets so long. */
const NO_SUCH_REVISION = 2n ** 53n;
const LIMIT_STREAM = 'installation-append-limit';
/** How long megabytes may take on their way, in milliseconds. */
const LIMIT_PATIENCE_MS = 10_000;
/** What an attempt has beside its data: type, metadata, quotes. */
const LIMIT_OVERHEAD = 64;
/** Of checks whether a stream was deleted; a server takes a hundred calls at once from a connection. */
const MOST_CHECKS = 16;

/**
 * An event store in EventStoreDB 22.6 or later, or in KurrentDB. A position is the commit position of $all: the server
 * writes a committed record for each event of an append, so that it grows from event to event (server sources,
 * StorageWriterService). `head` looks at streams that are never deleted, and every feed gets as far as that.
 */
export class EventStoreDbEventStore implements EventStore {
  readonly exclusive = false;
  readonly #connection: Connection;
  readonly #limits: Limits;
  readonly #subscriptions = new Set<Subscription>();
  /** The last accepted change of each stream that has one under way: retries must not overtake what follows. */
  readonly #changes = new Map<string, Promise<unknown>>();
  #closing: Promise<void> | undefined;
  /** The highest position seen in a kept stream: `head` need not look below. */
  #known: bigint | undefined;
  /** The stream of the last append that was denied, until one is taken again. */
  #denied: string | undefined;

  private constructor(connection: Connection, limits: Limits) {
    this.#connection = connection;
    this.#limits = limits;
  }

  /**
   * Connects. Hosts, TLS and credentials are in the connection string, which is never logged or put into an error.
   * @throws {TypeError} when the connection string is wrong, or does not go with the append mode
   * @throws {StoreUnavailable} when no server answers, or at once when it refuses the user or its certificate is not trusted
   */
  static async open(connectionString: string, options: EventStoreDbOptions = {}): Promise<EventStoreDbEventStore> {
    const limits = {
      appendTimeoutMs: options.appendTimeoutMs ?? 3_000,
      giveUpAfterMs: options.giveUpAfterMs ?? 12_000,
      retryAfterMs: options.retryAfterMs ?? 50,
    };
    const settings = readConnectionString(connectionString);
    checkFiles(settings);
    const connection = Connection.acquire(connectionString.trim(), settings, options.appendMode);
    const store = new EventStoreDbEventStore(connection, limits);
    try {
      await store.#reach(settings);
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  }

  /** Waits for a server, but not for one whose certificate is not trusted, or that speaks TLS where we do not. */
  async #reach(settings: ConnectionSettings): Promise<void> {
    const given = new AbortController();
    const look = async (): Promise<void> => {
      const fault = await findFault(settings, LOOK_MS);
      if (fault !== undefined) throw new StoreUnavailable(`the event store cannot be used: ${fault}`);
    };
    const reading = this.#allBackwards(END, 1, given.signal);
    try {
      // Side by side, since it is fine as a rule.
      await Promise.race([reading, look().then(() => reading)]);
    } catch (error) {
      // It may have come up meanwhile, and its fault be what the tries failed for.
      await look();
      throw error;
    } finally {
      given.abort();
      reading.catch(() => undefined);
    }
  }

  /**
   * How many bytes an append may have, when the server takes fewer than so many. Nothing is written: the server looks at
   * the size first, and then at a revision that no stream has.
   */
  async lowerLimit(wanted: number): Promise<number | undefined> {
    const data = 'x'.repeat(wanted - LIMIT_OVERHEAD);
    const error = await this.#attempt(LIMIT_STREAM, data, LIMIT_PATIENCE_MS);
    return error instanceof StoreRefused && error.refusal.kind === 'too-large' ? error.refusal.limit : undefined;
  }

  async check(): Promise<void> {
    this.#checkOpen();
    if (this.#denied === undefined) return;
    const error = await this.#attempt(this.#denied, '');
    if (error instanceof StoreRefused) throw error;
    this.#denied = undefined;
  }

  /** What an append that cannot succeed comes to, tried once: whether it would be let in. */
  async #attempt(stream: string, data: string, appendTimeoutMs = this.#limits.appendTimeoutMs): Promise<unknown> {
    const event = toWire(stream, { id: randomUUID(), type: 'Attempted', data, metadata: null });
    try {
      await this.#connection.append(stream, [event], NO_SUCH_REVISION, { ...this.#limits, appendTimeoutMs });
      return undefined;
    } catch (error) {
      return failureOf(error) === 'final' ? refused(`an append to stream \`${stream}\``, error) : error;
    }
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    checkAppend(stream, events, expected);
    const written = events.map((event) => toWire(stream, event));
    return this.#inOrder(stream, async () => {
      if (isCut(stream) && expected === 'no-stream') await this.#keepLast(stream);
      return this.#append(stream, written, expected);
    });
  }

  /** Has the server forget all but the last events of a stream that has none yet. */
  async #keepLast(stream: string): Promise<void> {
    const about = `$$${stream}`;
    const metadata = toWire(about, {
      id: randomUUID(),
      type: '$metadata',
      data: { $maxCount: sendsKept },
      metadata: null,
    });
    try {
      await this.#append(about, [metadata], 'no-stream');
    } catch (error) {
      // Somebody else has said so.
      if (!(error instanceof WrongRevision)) throw error;
    }
  }

  async *read(stream: string, from = 0): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    yield* this.#read(stream, from, Number.MAX_SAFE_INTEGER);
  }

  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    this.#checkOpen();
    const tries = new Tries(`a read of stream \`${stream}\``, this.#limits);
    for (;;) {
      try {
        const events: RecordedEvent[] = [];
        const read = this.#connection.read(
          (client) =>
            client.readStream(stream, {
              direction: BACKWARDS,
              fromRevision: END,
              maxCount: most,
              requiresLeader: true,
            }),
          this.#limits.appendTimeoutMs,
        );
        for await (const { event } of read) if (event !== undefined) events.push(fromWire(event));
        return events.reverse();
      } catch (error) {
        const failure = failureOf(error);
        if (failure === 'stream-not-found' || failure === 'stream-deleted') return [];
        await tries.again(error);
      }
    }
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
        // Before the feed: it waits for the server when it is just looking something up.
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
    // v6 of the client cannot filter a read of $all, so this looks at what others have written since we last looked.
    let from: Position | typeof END = END;
    for (let count = 32; ; count = 1_000) {
      const page = await this.#allBackwards(from, count);
      for (const { position, stream } of page) {
        if (this.#known !== undefined && position.commit <= this.#known) return this.#known;
        if (isKept(stream)) return this.#see(position.commit);
      }
      const oldest = page.at(-1)?.position;
      if (oldest === undefined || (from !== END && oldest.commit >= from.commit)) return this.#known;
      from = oldest;
    }
  }

  async delete(stream: string): Promise<void> {
    this.#checkOpen();
    checkDelete(stream);
    await this.#inOrder(stream, () => this.#delete(stream));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    await Promise.allSettled(this.#changes.values());
    await this.#connection.release();
  }

  async #append(stream: string, events: JSONEventData[], expected: ExpectedRevision): Promise<Appended> {
    const tries = new Tries(`an append to stream \`${stream}\``, this.#limits);
    const expectedRevision = expected === 'no-stream' ? NO_STREAM : BigInt(expected);
    let ambiguous = false;
    for (;;) {
      try {
        const result = await this.#connection.append(stream, events, expectedRevision, this.#limits);
        this.#denied = undefined;
        return await this.#appended(stream, firstRevision(expected) + events.length - 1, result);
      } catch (error) {
        switch (failureOf(error)) {
          case 'stream-deleted':
            throw new StreamDeleted(stream);
          case 'wrong-revision': {
            // A try that seemed to fail may have written these very events, and the server not know them any more.
            const own = ambiguous && (await this.#ownEvents(stream, firstRevision(expected), events));
            if (own) return own;
            throw new WrongRevision(stream, expected, actualRevision(error));
          }
          default:
            if (isDenied(error)) this.#denied = stream;
            ambiguous = true;
            await tries.again(error);
        }
      }
    }
  }

  async #appended(
    stream: string,
    revision: number,
    { nextExpectedRevision, position }: AppendResult,
  ): Promise<Appended> {
    if (nextExpectedRevision !== BigInt(revision)) {
      throw new StoreUnavailable(
        `the event store says that stream \`${stream}\` is at ${nextExpectedRevision} after an append that ends at ${revision}`,
      );
    }
    // The server may have no position for what it has found to be written already.
    const at =
      position !== undefined && isPosition(position) ? position.commit : await this.#positionOf(stream, revision);
    if (isKept(stream)) this.#see(at);
    return { revision, position: at };
  }

  async #positionOf(stream: string, revision: number): Promise<bigint> {
    for await (const { position } of this.#read(stream, revision, 1)) return position;
    throw new StoreUnavailable(`revision ${revision} of stream \`${stream}\` was appended and cannot be read`);
  }

  async #ownEvents(stream: string, from: number, events: readonly JSONEventData[]): Promise<Appended | undefined> {
    let count = 0;
    for await (const { id, revision, position } of this.#read(stream, from, events.length)) {
      if (id !== events[count++]?.id) return undefined;
      if (count === events.length) return { revision, position };
    }
    return undefined;
  }

  async *#read(
    stream: string,
    from: number,
    most: number,
    patience: Patience = this.#limits,
    signal?: AbortSignal,
  ): AsyncGenerator<RecordedEvent> {
    const tries = new Tries(`a read of stream \`${stream}\``, patience);
    const end = from + most;
    let next = from;
    for (;;) {
      try {
        const events = this.#connection.read(
          (client) =>
            client.readStream(stream, {
              fromRevision: next === 0 ? START : BigInt(next),
              maxCount: Math.min(end - next, Number.MAX_SAFE_INTEGER),
              requiresLeader: true,
            }),
          this.#limits.appendTimeoutMs,
        );
        for await (const { event } of events) {
          if (event === undefined) continue;
          const recorded = fromWire(event);
          if (recorded.revision !== next) {
            throw new StoreUnavailable(
              `stream \`${stream}\` goes on at revision ${recorded.revision} instead of ${next}: remove $maxCount, $maxAge and $tb from its metadata`,
            );
          }
          next++;
          tries.progress();
          yield recorded;
        }
        return;
      } catch (error) {
        const failure = failureOf(error);
        if (failure === 'stream-not-found' || failure === 'stream-deleted') return;
        await tries.again(error, signal);
        if (signal?.aborted) return;
      }
    }
  }

  async #allBackwards(
    from: Position | typeof END,
    maxCount: number,
    signal?: AbortSignal,
  ): Promise<{ position: Position; stream: string }[]> {
    const tries = new Tries('a read of $all', this.#limits);
    for (;;) {
      try {
        const page: { position: Position; stream: string }[] = [];
        const events = this.#connection.read(
          (client) => client.readAll({ direction: BACKWARDS, fromPosition: from, maxCount, requiresLeader: true }),
          this.#limits.appendTimeoutMs,
        );
        for await (const { event } of events) {
          if (event !== undefined) page.push({ position: event.position, stream: event.streamId });
        }
        return page;
      } catch (error) {
        await tries.again(error, signal);
        if (signal?.aborted) return [];
      }
    }
  }

  #catchUp(after: bigint | 'start'): CatchUp<AllStreamResolvedEvent> {
    return new CatchUp<AllStreamResolvedEvent>(
      {
        // No checkpoints: at their positions an event may come yet, and one was seen at 2^64 - 1.
        open: (position) =>
          this.#connection.client.subscribeToAll({
            fromPosition: position === 'start' ? START : position,
            filter: streamNameFilter({ prefixes: [...KEPT_PREFIXES, ...DELETABLE_PREFIXES] }),
          }),
        check: (position, signal) => this.#checkPosition(position, signal),
        take: ({ event }) => {
          if (event === undefined || event.type === TOMBSTONE) return undefined;
          const recorded = fromWire(event);
          if (isKept(recorded.stream)) this.#see(recorded.position);
          return recorded;
        },
        isKept: ({ stream }) => isKept(stream),
        visible: (events, signal) => this.#withoutDeleted(events, signal),
        dropped: (error) => this.#connection.failed(error),
      },
      after,
      this.#limits.retryAfterMs,
    );
  }

  async #checkPosition(position: LogPosition, signal: AbortSignal): Promise<void> {
    const tries = new Tries('a read of $all', { ...this.#limits, giveUpAfterMs: Infinity });
    while (!signal.aborted) {
      try {
        const events = this.#connection.read(
          (client) => client.readAll({ fromPosition: position, maxCount: 1, requiresLeader: true }),
          this.#limits.appendTimeoutMs,
        );
        for await (const { event } of events) if (event?.position.commit === position.commit) return;
        throw noEventAt(position);
      } catch (error) {
        if (isInvalidPosition(error)) throw noEventAt(position, error);
        await tries.again(error, signal);
      }
    }
  }

  /** The log keeps the events of a deleted stream until it is scavenged: the port says that they are gone. */
  async #withoutDeleted(events: readonly RecordedEvent[], signal: AbortSignal): Promise<readonly RecordedEvent[]> {
    const patience = { ...this.#limits, giveUpAfterMs: Infinity };
    const doubtful = [...new Set(events.map(({ stream }) => stream))].filter((stream) => !isKept(stream));
    const deleted = new Set<string>();
    for (let at = 0; at < doubtful.length; at += MOST_CHECKS) {
      await Promise.all(
        doubtful.slice(at, at + MOST_CHECKS).map(async (stream) => {
          for await (const _ of this.#read(stream, 0, 1, patience, signal)) return;
          deleted.add(stream);
        }),
      );
    }
    return deleted.size === 0 ? events : events.filter(({ stream }) => !deleted.has(stream));
  }

  /**
   * A hard delete: after a soft one `no-stream` would succeed again. The bytes leave the disks when the operator
   * scavenges the nodes.
   */
  async #delete(stream: string): Promise<void> {
    const tries = new Tries(`the deletion of stream \`${stream}\``, this.#limits);
    for (;;) {
      try {
        return await this.#connection.tombstone(stream, this.#limits.appendTimeoutMs);
      } catch (error) {
        if (failureOf(error) === 'stream-deleted') return;
        await tries.again(error);
      }
    }
  }

  async #inOrder<T>(stream: string, change: () => Promise<T>): Promise<T> {
    const before = this.#changes.get(stream) ?? Promise.resolve();
    const running = before.then(change, change);
    this.#changes.set(stream, running);
    try {
      return await running;
    } finally {
      if (this.#changes.get(stream) === running) this.#changes.delete(stream);
    }
  }

  #see(position: bigint): bigint {
    if (this.#known === undefined || position > this.#known) this.#known = position;
    return this.#known;
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new StoreUnavailable('the event store is closed: open it again');
  }
}

/** More writes waiting in one gRPC stream than this make the client hold some back, and reject them where nobody can catch it. */
const MOST_BATCH_APPENDS = 15;
const MOST_CLASSIC_APPENDS = 64;
/** The client is to send an append as one message, for the same reason. */
const BATCH_MESSAGE_BYTES = 16 * 1024 * 1024;
/** How long a client may take to end its streams: without a server it takes for ever. */
const DISPOSE_MS = 1_000;
/** A client that has just been made is not replaced because of what others still wait for. */
const YOUNG_MS = 500;

/**
 * The client objects of this process for one connection string, shared by all stores on it. The client keeps its batch
 * appends in flight in one table for all client objects: a stream that fails rejects those of every other, and an
 * answer that comes after that ends the process. So a single client appends in batches, it does nothing else (any
 * failed call makes a client change its connection), and it is not replaced before its streams are closed.
 */
class Connection {
  static readonly #shared = new Map<string, Connection>();

  readonly mode: AppendMode;
  readonly #connectionString: string;
  /** Given with each classic append: this is what makes the client take that path. */
  readonly #credentials: Credentials | undefined;
  readonly #appends: Gate;
  #client: EventStoreDBClient;
  #madeAt = performance.now();
  #batch: Promise<EventStoreDBClient> | undefined;
  #users = 0;

  private constructor(connectionString: string, mode: AppendMode, credentials: Credentials | undefined) {
    this.#connectionString = connectionString;
    this.mode = mode;
    this.#credentials = credentials;
    this.#appends = new Gate(mode === 'batch' ? MOST_BATCH_APPENDS : MOST_CLASSIC_APPENDS);
    this.#client = newClient(connectionString);
  }

  static acquire(
    connectionString: string,
    { credentials, tls }: ConnectionSettings,
    wanted: AppendMode | undefined,
  ): Connection {
    // Without TLS the client sends no credentials, but still goes by whether it was given some.
    const classic = credentials ?? (tls ? undefined : { username: 'nobody', password: 'nothing' });
    const mode = wanted ?? (classic === undefined ? 'batch' : 'classic');
    if (mode === 'classic' && classic === undefined) {
      throw new TypeError('append mode `classic` over TLS needs `user:password` in the connection string');
    }
    const key = `${mode} ${connectionString}`;
    let connection = this.#shared.get(key);
    if (connection === undefined) {
      if (mode === 'batch' && [...this.#shared.values()].some((other) => other.mode === 'batch')) {
        throw new TypeError('one process can append in batches to one EventStoreDB only: use append mode `classic`');
      }
      connection = new Connection(connectionString, mode, classic);
      this.#shared.set(key, connection);
    }
    connection.#users++;
    return connection;
  }

  /** For everything but batch appends. */
  get client(): EventStoreDBClient {
    return this.#client;
  }

  async release(): Promise<void> {
    if (--this.#users > 0) return;
    // INVARIANT: still shared while it closes, so that nobody makes a second batch client meanwhile.
    await Promise.all([dispose(this.#client), this.#batch?.then(dispose)]);
    if (this.#users === 0) Connection.#shared.delete(`${this.mode} ${this.#connectionString}`);
  }

  append(
    stream: string,
    events: JSONEventData[],
    expectedRevision: bigint | typeof NO_STREAM,
    { appendTimeoutMs: timeoutMs, giveUpAfterMs }: Limits,
  ): Promise<AppendResult> {
    const common = { expectedRevision, requiresLeader: true };
    return this.#appends.pass(async () => {
      if (this.mode === 'batch') {
        this.#batch ??= Promise.resolve(newClient(this.#connectionString));
        const batch = this.#batch;
        try {
          // No deadline for the server: on this path it is a time of day, and the clocks may differ.
          const appending = (await batch).appendToStream(stream, events, {
            ...common,
            batchAppendSize: BATCH_MESSAGE_BYTES,
          });
          return await within(appending, timeoutMs);
        } catch (error) {
          if (leavesClientStuck(error) && this.#batch === batch) {
            this.#batch = batch.then(async (client) => {
              await dispose(client);
              return newClient(this.#connectionString);
            });
          }
          throw error;
        }
      }
      const credentials = this.#credentials === undefined ? {} : { credentials: this.#credentials };
      return this.#call(
        (client) => client.appendToStream(stream, events, { ...common, ...credentials, deadline: timeoutMs }),
        timeoutMs,
      );
    }, giveUpAfterMs);
  }

  async tombstone(stream: string, timeoutMs: number): Promise<void> {
    await this.#call(
      (client) => client.tombstoneStream(stream, { expectedRevision: ANY, requiresLeader: true, deadline: timeoutMs }),
      timeoutMs,
    );
  }

  /** The events of a read; it fails when the server is silent for so long while somebody waits for the next one. */
  async *read<E>(open: (client: EventStoreDBClient) => StreamingRead<E>, timeoutMs: number): AsyncGenerator<E> {
    const stream = open(this.#client);
    try {
      const events = stream[Symbol.asyncIterator]() as AsyncIterator<E>;
      for (;;) {
        const next = await within(events.next(), timeoutMs);
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      this.failed(error);
      throw error;
    } finally {
      // Ending the iteration would not end the call behind it, and that ends only when somebody takes what has come.
      stream.on('error', () => undefined);
      stream.cancel().catch(() => undefined);
      stream.resume();
    }
  }

  /** To be told of errors of calls: what the client would go on with, it must not. */
  failed(error: unknown): void {
    if (!leavesClientStuck(error) || performance.now() - this.#madeAt < YOUNG_MS) return;
    // The old one is left to its calls: each ends by its own timer.
    this.#client = newClient(this.#connectionString);
    this.#madeAt = performance.now();
  }

  async #call<T>(call: (client: EventStoreDBClient) => Promise<T>, timeoutMs: number): Promise<T> {
    try {
      return await within(call(this.#client), timeoutMs);
    } catch (error) {
      this.failed(error);
      throw error;
    }
  }
}

/** Lets so many through at once, the others in the order in which they came. */
class Gate {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(width: number) {
    this.#free = width;
  }

  /** @throws {NoAnswer} when it is not let through in time: behind calls that nobody answers */
  async pass<T>(work: () => Promise<T>, patienceMs: number): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(patienceMs);
    try {
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#free++;
      else next();
    }
  }

  async #wait(patienceMs: number): Promise<void> {
    let enter = (): void => undefined;
    const entered = new Promise<void>((resolve) => {
      enter = () => {
        this.#waiting.delete(enter);
        resolve();
      };
    });
    this.#waiting.add(enter);
    try {
      await within(entered, patienceMs);
    } catch (error) {
      this.#waiting.delete(enter);
      throw error;
    }
  }
}

function newClient(connectionString: string): EventStoreDBClient {
  try {
    return EventStoreDBClient.connectionString(connectionString);
  } catch (error) {
    // The client's own error has the connection string, with the password, in a member and parts of it in its text.
    const aboutFiles = error instanceof Error && error.message.includes('userCertFile') ? error.message : '';
    throw new TypeError(
      `the connection string cannot be used: ${aboutFiles || 'check hosts, ports and option values'}`,
    );
  }
}

async function dispose(client: EventStoreDBClient): Promise<void> {
  await within(client.dispose(), DISPOSE_MS).catch(() => undefined);
}

/** Lower case, as the server gives ids back: the hash chain is over the text. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function toWire(stream: string, event: NewEvent): JSONEventData {
  const { id, type } = event;
  if (!UUID.test(id)) {
    throw new TypeError(`the id \`${id}\` of an event for stream \`${stream}\` is no UUID in lower case`);
  }
  // Parsed from text at once: what the caller does to its objects later must not be in a second try.
  const data = JSON.parse(jsonText(event, 'data')) as JSONType;
  // The client drops metadata that is falsy, and takes bytes as they are.
  const metadata = new Uint8Array(Buffer.from(jsonText(event, 'metadata')));
  return { contentType: 'application/json', id, type, data, metadata };
}

/** The largest position or revision; the server writes "none" as the unsigned form of -1. */
const LARGEST = 2n ** 63n - 1n;

function isPosition({ commit, prepare }: Position): boolean {
  return commit <= LARGEST && commit === prepare;
}

function fromWire(event: ClientEvent): RecordedEvent {
  const { streamId: stream, id, type, data, metadata, position } = event;
  const revision = Number(event.revision);
  const where = `event \`${id}\` of stream \`${stream}\``;
  if (!Number.isSafeInteger(revision)) throw new StoreUnavailable(`${where} has the revision ${event.revision}`);
  if (!event.isJson) throw new StoreUnavailable(`${where} is no JSON: it was not written by Countersign`);
  if (position === undefined || !isPosition(position)) {
    throw new StoreUnavailable(
      `${where} has no position of its own: the server must be 22.6 or later, and no explicit transaction may write here`,
    );
  }
  return { stream, revision, position: position.commit, id, type, data, metadata };
}

function noEventAt({ commit }: LogPosition, cause?: unknown): StoreUnavailable {
  return new StoreUnavailable(
    `the event store has no event at position ${commit}: what was read up to there is of another store, of one from ` +
      'before a backup was restored, or of a stream that was deleted since; read again from the start',
    { cause },
  );
}

function isKept(stream: string): boolean {
  return KEPT_PREFIXES.some((prefix) => stream.startsWith(prefix));
}

function actualRevision(error: unknown): ExpectedRevision {
  const actual = typeof error === 'object' && error !== null && 'actualVersion' in error ? error.actualVersion : -1n;
  return typeof actual === 'bigint' && actual >= 0n ? Number(actual) : 'no-stream';
}
