import { ANY, EventStoreDBClient } from '@eventstore/db-client';
import type { AppendResult, Credentials, JSONEventData, NO_STREAM, StreamingRead } from '@eventstore/db-client';
import { leavesClientStuck, within } from './failures.js';
import type { Patience } from './failures.js';
import { Gate } from './gate.js';
import type { ConnectionSettings } from './settings.js';

/**
 * Wire path of appends: `classic` is one call each; `batch` is one stream for all, with two to three times the
 * throughput.
 */
export type AppendMode = 'batch' | 'classic';

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
/** How long a client may take to end its streams: without a server it takes forever. */
const DISPOSE_MS = 1_000;
/** A new client is not replaced because of calls that others are still waiting for. */
const YOUNG_MS = 500;

/**
 * The client objects of this process for one connection string, shared by all stores on it. The client keeps its batch
 * appends in flight in one table for all client objects: a stream that fails rejects those of every other, and a
 * response that arrives after that ends the process. So a single client does the batch appends and nothing else (any
 * failed call makes a client change its connection), and it is not replaced before its streams are closed.
 */
export class Connection {
  static readonly #shared = new Map<string, Connection>();

  readonly mode: AppendMode;
  readonly #connectionString: string;
  /** Passed with each classic append, because this makes the client take that path. */
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
    // Without TLS the client sends no credentials, but it still behaves differently if it was given some.
    const classic = credentials ?? (tls ? undefined : { username: 'nobody', password: 'nothing' });
    const mode = wanted ?? (classic === undefined ? 'batch' : 'classic');
    if (mode === 'classic' && classic === undefined) {
      throw new TypeError('append mode `classic` over TLS needs `user:password` in the connection string');
    }
    const key = `${mode} ${connectionString}`;
    let connection = this.#shared.get(key);
    if (connection === undefined) {
      if (mode === 'batch' && [...this.#shared.values()].some((other) => other.mode === 'batch')) {
        throw new TypeError('one process can append in batches to only one EventStoreDB: use append mode `classic`');
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
    // INVARIANT: still shared while it closes, so that nobody creates a second batch client in the meantime.
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

  /** The events of a read; it fails if the server is silent for this long while someone waits for the next one. */
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
      // Ending the iteration does not end the call behind it, which ends only once someone takes what has arrived.
      stream.on('error', () => undefined);
      stream.cancel().catch(() => undefined);
      stream.resume();
    }
  }

  /** Must be called with errors of calls after which the client must not continue on the same connection. */
  failed(error: unknown): void {
    if (!leavesClientStuck(error) || performance.now() - this.#madeAt < YOUNG_MS) return;
    // The old one keeps its calls: each ends by its own timer.
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

function newClient(connectionString: string): EventStoreDBClient {
  try {
    return EventStoreDBClient.connectionString(connectionString);
  } catch (error) {
    // The client's own error has the connection string, with the password, in a member, and parts of it in its text.
    const aboutFiles = error instanceof Error && error.message.includes('userCertFile') ? error.message : '';
    throw new TypeError(
      `the connection string cannot be used: ${aboutFiles || 'check hosts, ports and option values'}`,
    );
  }
}

async function dispose(client: EventStoreDBClient): Promise<void> {
  await within(client.dispose(), DISPOSE_MS).catch(() => undefined);
}
