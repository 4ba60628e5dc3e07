import { ANY } from '@eventstore/db-client';
import type {
  AllStreamSubscription,
  AppendResult,
  Credentials,
  EventStoreDBClient,
  JSONEventData,
  NO_STREAM,
  StreamingRead,
  SubscribeToAllOptions,
} from '@eventstore/db-client';
import { Answers } from './responsiveness.js';
import { close, newClient } from './client.js';
import { failureOf, isSilence, isTooSilent, leavesClientStuck, NoAnswer, within } from './failures.js';
import type { Patience } from './failures.js';
import { Gate } from './gate.js';
import { appendPath, type AppendMode, type ConnectionSettings } from './settings.js';

/** Time limits of calls. */
export interface Limits extends Patience {
  /** For one attempt, in milliseconds. */
  readonly appendTimeoutMs: number;
}

/**
 * With more writes than this waiting in one gRPC stream, the client holds some back, and rejects them where nobody can
 * catch it.
 */
const MOST_BATCH_APPENDS = 15;
const MOST_CLASSIC_APPENDS = 64;
/** Makes the client send an append as one message, for the same reason. */
const BATCH_MESSAGE_BYTES = 16 * 1024 * 1024;
/** A new client is not replaced because of calls that others are still waiting for. */
const YOUNG_MS = 500;
/** How long a client that was replaced keeps its calls, in milliseconds. */
const RETIRED_MS = 60_000;

/**
 * The client objects of this process for one connection string, shared by all stores on it. The client keeps its batch
 * appends in flight in one table for all client objects: a stream that fails rejects those of every other, and a
 * response that arrives after that ends the process. So a single client does the batch appends and nothing else (any
 * failed call makes a client change its connection), and it is not replaced before its streams are closed.
 */
export class Connection {
  static readonly #shared = new Map<string, Connection>();

  readonly mode: AppendMode;
  /** Whether the server answers, on the present connection. */
  readonly answers = new Answers();
  readonly #connectionString: string;
  readonly #settings: ConnectionSettings;
  /** Passed with each classic append, because this makes the client take that path. */
  readonly #credentials: Credentials | undefined;
  readonly #appends: Gate;
  #client: EventStoreDBClient;
  #madeAt = performance.now();
  #batch: Promise<EventStoreDBClient> | undefined;
  #users = 0;
  /** Counts the TCP connections that were given up. */
  #generation = 0;
  /** Ends what waits for an answer on the present connection. */
  readonly #waiting = new Set<(error: unknown) => void>();

  private constructor(
    connectionString: string,
    settings: ConnectionSettings,
    mode: AppendMode,
    credentials: Credentials | undefined,
  ) {
    this.#connectionString = connectionString;
    this.#settings = settings;
    this.mode = mode;
    this.#credentials = credentials;
    this.#appends = new Gate(mode === 'batch' ? MOST_BATCH_APPENDS : MOST_CLASSIC_APPENDS);
    this.#client = newClient(this.#settings, this.#generation);
  }

  static acquire(connectionString: string, settings: ConnectionSettings, wanted: AppendMode | undefined): Connection {
    const { mode, classic } = appendPath(settings, wanted);
    const key = `${mode} ${connectionString}`;
    let connection = this.#shared.get(key);
    if (connection === undefined) {
      if (mode === 'batch' && [...this.#shared.values()].some((other) => other.mode === 'batch')) {
        throw new TypeError('one process can append in batches to only one EventStoreDB: use append mode `classic`');
      }
      connection = new Connection(connectionString, settings, mode, classic);
      this.#shared.set(key, connection);
    }
    connection.#users++;
    return connection;
  }

  /**
   * Leaves the present connection, on which nothing is answered any more: calls fail, subscriptions end, and the next call
   * asks for the leader and connects again.
   */
  giveUp(error: unknown): void {
    const old = this.#client;
    this.#generation++;
    this.answers.startAgain();
    this.#client = newClient(this.#settings, this.#generation);
    this.#madeAt = performance.now();
    if (this.#batch !== undefined) this.#replaceBatch(this.#batch);
    for (const lose of [...this.#waiting]) lose(error);
    void close(old);
  }

  subscribe(options: SubscribeToAllOptions): AllStreamSubscription {
    const stream = this.#client.subscribeToAll(options);
    const lose = (error: unknown): void =>
      void stream.destroy(error instanceof Error ? error : new Error(String(error)));
    this.#waiting.add(lose);
    stream.once('close', () => this.#waiting.delete(lose));
    return stream;
  }

  async release(): Promise<void> {
    if (--this.#users > 0) return;
    // INVARIANT: still shared while it closes, so that nobody creates a second batch client in the meantime.
    await Promise.all([close(this.#client), this.#batch?.then(close)]);
    if (this.#users === 0) Connection.#shared.delete(`${this.mode} ${this.#connectionString}`);
  }

  append(
    stream: string,
    events: JSONEventData[],
    expectedRevision: bigint | typeof NO_STREAM,
    limits: Limits,
  ): Promise<AppendResult> {
    const { appendTimeoutMs: timeoutMs, giveUpAfterMs } = limits;
    const common = { expectedRevision, requiresLeader: true };
    return this.#appends.pass(async () => {
      this.#checkSilence(limits);
      if (this.mode === 'batch') {
        this.#batch ??= Promise.resolve(newClient(this.#settings, this.#generation));
        const batch = this.#batch;
        try {
          // No deadline for the server: on this path it is a time of day, and the clocks may differ.
          const appending = (await batch).appendToStream(stream, events, {
            ...common,
            batchAppendSize: BATCH_MESSAGE_BYTES,
          });
          return await this.#answer(appending, timeoutMs);
        } catch (error) {
          if (leavesClientStuck(error) && this.#batch === batch) this.#replaceBatch(batch);
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

  async tombstone(stream: string, limits: Limits): Promise<void> {
    this.#checkSilence(limits);
    const { appendTimeoutMs: timeoutMs } = limits;
    await this.#call(
      (client) => client.tombstoneStream(stream, { expectedRevision: ANY, requiresLeader: true, deadline: timeoutMs }),
      timeoutMs,
    );
  }

  /** The events of a read; it fails if the server is silent for this long while someone waits for the next one. */
  async *read<E>(
    open: (client: EventStoreDBClient) => StreamingRead<E>,
    timeoutMs: number,
    patience?: Patience,
  ): AsyncGenerator<E> {
    if (patience) this.#checkSilence(patience);
    const stream = open(this.#client);
    try {
      const events = stream[Symbol.asyncIterator]() as AsyncIterator<E>;
      for (;;) {
        const next = await this.#answer(events.next(), timeoutMs);
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      this.failed(error);
      throw error;
    } finally {
      // Ending the iteration does not end the call behind it, which ends only once someone takes what has arrived.
      stream.on('error', () => undefined);
      stream.cancel().catch(() => undefined);
      stream.resume();
    }
  }

  /** Must be called with errors of calls after which the client must not continue on the same connection. */
  failed(error: unknown): void {
    if (!leavesClientStuck(error) || performance.now() - this.#madeAt < YOUNG_MS) return;
    const old = this.#client;
    this.#client = newClient(this.#settings, this.#generation);
    this.#madeAt = performance.now();
    // The old one keeps its calls: each ends by its own timer.
    setTimeout(() => void close(old), RETIRED_MS).unref();
  }

  async #call<T>(call: (client: EventStoreDBClient) => Promise<T>, timeoutMs: number): Promise<T> {
    try {
      return await this.#answer(call(this.#client), timeoutMs);
    } catch (error) {
      this.failed(error);
      throw error;
    }
  }

  /** Waits for an answer, but not on a connection that is given up. */
  async #answer<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
    const generation = this.#generation;
    const responded = (): void => {
      if (generation === this.#generation) this.answers.responded();
    };
    try {
      const value = await within(answer, timeoutMs, this.#waiting);
      responded();
      return value;
    } catch (error) {
      const failure = failureOf(error);
      if (isSilence(error)) this.answers.unanswered();
      if (failure !== 'passing' && failure !== 'final') responded();
      throw error;
    }
  }

  /** @throws {NoAnswer} if the server has been silent for too long to send anything */
  #checkSilence(patience: Patience): void {
    if (isTooSilent({ ...patience, silentMs: () => this.answers.silentMs }))
      throw new NoAnswer(Math.round(this.answers.silentMs));
  }

  #replaceBatch(batch: Promise<EventStoreDBClient>): void {
    this.#batch = batch.then(async (client) => {
      await close(client);
      return newClient(this.#settings, this.#generation);
    });
  }
}
