import { BACKWARDS, END, START } from '@eventstore/db-client';
import type { Position } from '@eventstore/db-client';
import { setMaxListeners } from 'node:events';
import { StoreUnavailable } from '../../event-store.js';
import type { RecordedEvent } from '../../event-store.js';
import type { LogPosition } from './catch-up.js';
import type { Connection, Limits } from './connection.js';
import { failureOf, isInvalidPosition, retry, Tries } from './failures.js';
import type { Patience } from './failures.js';
import type { Seen } from './seen.js';
import { isKept } from './stream-names.js';
import { fromWire } from './wire-events.js';

/** Concurrent checks whether a stream was deleted; a server accepts a hundred calls at once per connection. */
const MOST_CHECKS = 16;

/** An event in the whole log. */
interface InLog {
  readonly position: Position;
  readonly stream: string;
  readonly id: string;
}

/** Reads streams and the whole log, retrying while that can help. */
export class LogReads {
  readonly #connection: Connection;
  readonly #limits: Limits;

  constructor(connection: Connection, limits: Limits) {
    this.#connection = connection;
    this.#limits = limits;
  }

  /** Events of a stream from a revision, at most this many; none for a stream that does not exist or was deleted. */
  async *stream(
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
          patience,
        );
        for await (const { event } of events) {
          if (event === undefined) continue;
          const recorded = fromWire(event);
          if (recorded.revision !== next) {
            throw new StoreUnavailable(
              `stream \`${stream}\` continues at revision ${recorded.revision} instead of ${next}: remove $maxCount, $maxAge and $tb from its metadata`,
            );
          }
          next++;
          tries.progress();
          yield recorded;
        }
        return;
      } catch (error) {
        if (isMissing(error)) return;
        await tries.again(error, signal);
        if (signal?.aborted) return;
      }
    }
  }

  /** The last events of a stream, at most this many, in order. */
  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    const attempt = async (): Promise<readonly RecordedEvent[]> => {
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
        this.#limits,
      );
      try {
        for await (const { event } of read) if (event !== undefined) events.push(fromWire(event));
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
      return events.reverse();
    };
    return (await retry(`a read of stream \`${stream}\``, this.#limits, attempt)) ?? [];
  }

  /** A page of the whole log, the latest event first. */
  async allBackwards(
    from: Position | typeof END,
    maxCount: number,
    signal?: AbortSignal,
    giveUpAfterMs = this.#limits.giveUpAfterMs,
  ): Promise<readonly InLog[]> {
    const attempt = () => this.pageBackwards(from, maxCount, this.#limits);
    return (await retry('a read of $all', { ...this.#limits, giveUpAfterMs }, attempt, signal)) ?? [];
  }

  /** The same in one attempt. */
  async pageBackwards(from: Position | typeof END, maxCount: number, patience?: Patience): Promise<readonly InLog[]> {
    const page: InLog[] = [];
    const events = this.#connection.read(
      (client) => client.readAll({ direction: BACKWARDS, fromPosition: from, maxCount, requiresLeader: true }),
      this.#limits.appendTimeoutMs,
      patience,
    );
    for await (const { event } of events) {
      if (event !== undefined) page.push({ position: event.position, stream: event.streamId, id: event.id });
    }
    return page;
  }

  /** Id of the event at exactly this position, in one attempt. */
  async idAt(position: bigint): Promise<string | undefined> {
    const fromPosition = { commit: position, prepare: position };
    const events = this.#connection.read(
      (client) => client.readAll({ fromPosition, maxCount: 1, requiresLeader: true }),
      this.#limits.appendTimeoutMs,
    );
    try {
      for await (const { event } of events) if (event?.position.commit === position) return event.id;
    } catch (error) {
      if (!isInvalidPosition(error)) throw error;
    }
    return undefined;
  }

  /** Looks for the last event in a permanent stream; v6 of the client cannot filter a read of $all. */
  async advance(
    seen: Seen,
    pageOf: (from: Position | typeof END, count: number) => Promise<readonly InLog[]>,
  ): Promise<void> {
    let from: Position | typeof END = END;
    let newest: bigint | undefined;
    for (let count = 32; ; count = 1_000) {
      const page: readonly InLog[] = await pageOf(from, count);
      newest ??= page[0]?.position.commit;
      for (const { position, stream, id } of page) {
        const isNews = !seen.isKnown(position.commit);
        if (isNews && !isKept(stream)) continue;
        if (isNews) seen.note(position.commit, id);
        return seen.searched(newest ?? position.commit);
      }
      const oldest = page.at(-1)?.position;
      if (oldest === undefined || (from !== END && oldest.commit >= from.commit)) break;
      from = oldest;
    }
    if (newest !== undefined) seen.searched(newest);
  }

  /** Returns if there is an event at exactly this position. @throws {StoreUnavailable} if there is none */
  async checkPosition({ commit }: LogPosition, signal: AbortSignal): Promise<void> {
    const patience = { ...this.#limits, giveUpAfterMs: Infinity };
    const found = await retry('a read of $all', patience, async () => ({ id: await this.idAt(commit) }), signal);
    if (found === undefined || found.id !== undefined) return;
    throw new StoreUnavailable(
      `the event store has no event at position ${commit}: what was read up to there comes from another store, from one ` +
        'before a backup was restored, or from a stream that has since been deleted; read again from the start',
    );
  }

  /** The log keeps the events of a deleted stream until it is scavenged, but the port says that they are gone. */
  async withoutDeleted(events: readonly RecordedEvent[], signal: AbortSignal): Promise<readonly RecordedEvent[]> {
    const patience = { ...this.#limits, giveUpAfterMs: Infinity };
    const doubtful = [...new Set(events.map(({ stream }) => stream))].filter((stream) => !isKept(stream));
    // Each of them listens to it while it waits for its next attempt.
    setMaxListeners(MOST_CHECKS + 1, signal);
    const deleted = new Set<string>();
    for (let at = 0; at < doubtful.length; at += MOST_CHECKS) {
      await Promise.all(
        doubtful.slice(at, at + MOST_CHECKS).map(async (stream) => {
          for await (const _ of this.stream(stream, 0, 1, patience, signal)) return;
          deleted.add(stream);
        }),
      );
    }
    return deleted.size === 0 ? events : events.filter(({ stream }) => !deleted.has(stream));
  }
}

/** True for a stream that does not exist, or was deleted. */
function isMissing(error: unknown): boolean {
  const failure = failureOf(error);
  return failure === 'stream-not-found' || failure === 'stream-deleted';
}
