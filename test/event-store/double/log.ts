/** An event as the double keeps it; data and metadata are the bytes of the wire. */
export interface LogEvent {
  readonly position: bigint;
  readonly stream: string;
  readonly revision: bigint;
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  readonly created: Date;
}

export interface Proposed {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export type Expectation = bigint | 'no_stream' | 'any' | 'stream_exists';

export type AppendOutcome =
  | { readonly kind: 'written'; readonly revision: bigint; readonly position: bigint }
  | { readonly kind: 'wrong'; readonly current: bigint | undefined }
  | { readonly kind: 'deleted' };

/** The revision of the event that a hard delete leaves behind. */
const TOMBSTONE_REVISION = 2n ** 63n - 1n;
const NO_BYTES = new Uint8Array();

/**
 * What a server keeps: one log with sparse positions. As in the server, each event of an append has its own position
 * (server sources: an append writes one committed record per event), an append is answered with its last event's,
 * and the events of a deleted stream stay in the log until it is scavenged.
 */
export class Log {
  events: LogEvent[] = [];
  readonly #streams = new Map<string, LogEvent[]>();
  readonly #deleted = new Set<string>();
  readonly #wakers = new Set<() => void>();
  #end = 1_000n;

  append(stream: string, events: readonly Proposed[], expected: Expectation): AppendOutcome {
    if (this.#deleted.has(stream)) return { kind: 'deleted' };
    const recorded = this.#streams.get(stream) ?? [];
    const current = BigInt(recorded.length) - 1n;
    if (expected === 'no_stream' || typeof expected === 'bigint') {
      const first = expected === 'no_stream' ? 0 : Number(expected) + 1;
      if (first !== recorded.length) {
        const repeated = recorded.slice(first, first + events.length);
        const last = repeated.at(-1);
        if (last !== undefined && events.every(({ id }, index) => id === repeated[index]?.id)) {
          return { kind: 'written', revision: last.revision, position: last.position };
        }
        return { kind: 'wrong', current: current < 0n ? undefined : current };
      }
    }
    for (const event of events) this.#push(recorded, { ...event, stream, revision: BigInt(recorded.length) });
    this.#streams.set(stream, recorded);
    this.#wake();
    return { kind: 'written', revision: BigInt(recorded.length) - 1n, position: this.events.at(-1)?.position ?? 0n };
  }

  /** Hard delete: the stream can neither be read nor written any more, its events stay in the log. */
  tombstone(stream: string): bigint | 'deleted' {
    if (this.#deleted.has(stream)) return 'deleted';
    this.#deleted.add(stream);
    this.#streams.delete(stream);
    const tombstone = { id: '00000000-0000-0000-0000-000000000000', type: '$streamDeleted', contentType: '' };
    this.#push([], { ...tombstone, stream, revision: TOMBSTONE_REVISION, data: NO_BYTES, metadata: NO_BYTES });
    this.#wake();
    return this.events.at(-1)?.position ?? 0n;
  }

  /** Removes what was deleted, but for the tombstones. */
  scavenge(): void {
    this.events = this.events.filter(({ stream, type }) => !this.#deleted.has(stream) || type === '$streamDeleted');
  }

  read(stream: string): readonly LogEvent[] | 'deleted' | undefined {
    return this.#deleted.has(stream) ? 'deleted' : this.#streams.get(stream);
  }

  /** What is in the log after a position, at most so much. */
  after(position: bigint, count: number): readonly LogEvent[] {
    let low = 0;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.events[middle]?.position ?? 0n) > position) high = middle;
      else low = middle + 1;
    }
    return this.events.slice(low, low + count);
  }

  /** Resolves at the next change, or when the signal says that nobody waits any more. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener('abort', wake);
        this.#wakers.delete(wake);
        resolve();
      };
      signal.addEventListener('abort', wake);
      this.#wakers.add(wake);
    });
  }

  #push(recorded: LogEvent[], event: Omit<LogEvent, 'position' | 'created'>): void {
    const kept: LogEvent = { ...event, position: this.#end, created: new Date() };
    this.#end += 100n + BigInt(event.data.length + event.metadata.length);
    recorded.push(kept);
    this.events.push(kept);
  }

  #wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }
}
