import { NO_STREAM } from '@eventstore/db-client';
import type { AppendResult, JSONEventData } from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { firstRevision } from '../append-rules.js';
import { isCut, sendsKept, StoreRefused, StoreUnavailable, StreamDeleted, WrongRevision } from '../../event-store.js';
import type { Appended, ExpectedRevision, NewEvent, TooLarge } from '../../event-store.js';
import type { Connection, Limits } from './connection.js';
import { failureOf, isDenied, refused, retry, tooLarge, Tries } from './failures.js';
import type { LogReads } from './log-reads.js';
import { isPosition, toWire } from './wire-events.js';

/** Expected revision of an append that must be refused; no stream gets this long. */
const NO_SUCH_REVISION = 2n ** 53n;
const LIMIT_STREAM = 'installation-append-limit';
/** How long megabytes may take to send, in milliseconds. */
const LIMIT_PATIENCE_MS = 10_000;
/** What an attempt contains besides its data: type, metadata, quotes. */
const LIMIT_OVERHEAD = 64;

/** Appends and deletions: one after the other for each stream, retried while that can help. */
export class StreamChanges {
  readonly #connection: Connection;
  readonly #reads: LogReads;
  readonly #limits: Limits;
  /** The last accepted change of each stream that has one in progress: retries must not overtake what follows. */
  readonly #changes = new Map<string, Promise<unknown>>();
  /** The last append that was denied, until one is accepted again. */
  #denied: { readonly stream: string; readonly error: StoreUnavailable } | undefined;

  /** Resolves once it is certain that the server has not lost anything. */
  readonly #confirm: () => Promise<void>;

  constructor(connection: Connection, reads: LogReads, limits: Limits, confirm: () => Promise<void>) {
    this.#confirm = confirm;
    this.#connection = connection;
    this.#reads = reads;
    this.#limits = limits;
  }

  /** Writes events, captured as they are now. */
  append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    const written = events.map((event) => toWire(stream, event));
    return this.#inOrder(stream, async () => {
      if (isCut(stream) && expected === 'no-stream') await this.#keepLast(stream);
      return this.#append(stream, written, expected);
    });
  }

  delete(stream: string): Promise<void> {
    return this.#inOrder(stream, () => this.#delete(stream));
  }

  /** Resolves once everything accepted has been attempted. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#changes.values());
  }

  /**
   * The server's limit on the bytes of an append, or of an event, if it is lower than this. Nothing is written: the server
   * checks the size first, and then a revision that no stream has.
   */
  async lowerLimit(wanted: number): Promise<TooLarge | undefined> {
    const data = 'x'.repeat(wanted - LIMIT_OVERHEAD);
    const error = await this.#attempt(LIMIT_STREAM, data, LIMIT_PATIENCE_MS);
    return error instanceof StoreRefused && error.refusal.kind === 'too-large' ? error.refusal : undefined;
  }

  /** @throws {StoreRefused} if the last append was denied, and still would be */
  async checkTaken(): Promise<void> {
    if (this.#denied === undefined) return;
    const error = await this.#attempt(this.#denied.stream, '');
    if (error instanceof StoreRefused) throw error;
    this.#denied = undefined;
  }

  /** @throws {StoreRefused} if the last append was denied */
  checkNotDenied(): void {
    if (this.#denied) throw this.#denied.error;
  }

  /** The error of an append that cannot succeed, tried once: shows whether access is granted. */
  async #attempt(stream: string, data: string, appendTimeoutMs = this.#limits.appendTimeoutMs): Promise<unknown> {
    const event = toWire(stream, { id: randomUUID(), type: 'Attempted', data, metadata: null });
    try {
      await this.#connection.append(stream, [event], NO_SUCH_REVISION, { ...this.#limits, appendTimeoutMs });
      return undefined;
    } catch (error) {
      return (
        tooLarge(stream, error, () => data.length) ??
        (failureOf(error) === 'final' ? refused(`an append to stream \`${stream}\``, error) : error)
      );
    }
  }

  /** Makes the server forget all but the last events of a stream that has none yet. */
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
      // Someone else has set it.
      if (!(error instanceof WrongRevision)) throw error;
    }
  }

  async #append(stream: string, events: JSONEventData[], expected: ExpectedRevision): Promise<Appended> {
    const tries = new Tries(`an append to stream \`${stream}\``, this.#limits);
    const expectedRevision = expected === 'no-stream' ? NO_STREAM : BigInt(expected);
    const bytes = () => events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
    let ambiguous = false;
    for (;;) {
      try {
        const result = await this.#connection.append(stream, events, expectedRevision, this.#limits);
        this.#denied = undefined;
        return await this.#appended(stream, firstRevision(expected) + events.length - 1, result);
      } catch (error) {
        const oversize = tooLarge(stream, error, bytes);
        if (oversize) throw oversize;
        switch (failureOf(error)) {
          case 'stream-deleted':
            throw new StreamDeleted(stream);
          case 'wrong-revision': {
            // An attempt that seemed to fail may have written these very events, and the server may no longer know
            // them.
            const own = ambiguous && (await this.#ownEvents(stream, firstRevision(expected), events));
            if (own) return own;
            const actual = actualRevision(error);
            // The writer has read more than there is: a wrong number, or the server has lost something.
            if (firstRevision(actual) < firstRevision(expected)) await this.#confirm();
            throw new WrongRevision(stream, expected, actual);
          }
          default:
            if (isDenied(error)) this.#denied = { stream, error: refused(`an append to stream \`${stream}\``, error) };
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
        `the event store reports stream \`${stream}\` at ${nextExpectedRevision} after an append that ends at ${revision}`,
      );
    }
    // The server may have no position for what it has found to be written already.
    const at =
      position !== undefined && isPosition(position) ? position.commit : await this.#positionOf(stream, revision);
    return { revision, position: at };
  }

  async #positionOf(stream: string, revision: number): Promise<bigint> {
    for await (const { position } of this.#reads.stream(stream, revision, 1)) return position;
    throw new StoreUnavailable(`revision ${revision} of stream \`${stream}\` was appended and cannot be read`);
  }

  async #ownEvents(stream: string, from: number, events: readonly JSONEventData[]): Promise<Appended | undefined> {
    let count = 0;
    for await (const { id, revision, position } of this.#reads.stream(stream, from, events.length)) {
      if (id !== events[count++]?.id) return undefined;
      if (count === events.length) return { revision, position };
    }
    return undefined;
  }

  /**
   * A hard delete: after a soft one, `no-stream` would succeed again. The bytes leave the disks when the operator
   * scavenges the nodes.
   */
  async #delete(stream: string): Promise<void> {
    await retry(`the deletion of stream \`${stream}\``, this.#limits, async () => {
      try {
        await this.#connection.tombstone(stream, this.#limits);
      } catch (error) {
        if (failureOf(error) !== 'stream-deleted') throw error;
      }
    });
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
}

function actualRevision(error: unknown): ExpectedRevision {
  const actual = typeof error === 'object' && error !== null && 'actualVersion' in error ? error.actualVersion : -1n;
  return typeof actual === 'bigint' && actual >= 0n ? Number(actual) : 'no-stream';
}
