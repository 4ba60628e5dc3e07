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
/** What a soft delete truncates a stream before: every event that it has had. */
const EVERYTHING = TOMBSTONE_REVISION;
const NO_BYTES = new Uint8Array();

/** The part of the metadata of a stream that is known here: its `$maxCount` and `$tb`. */
function retentionOf({ data }: Proposed): Retention {
  const { $maxCount, $tb } = JSON.parse(Buffer.from(data).toString('utf8')) as { $maxCount?: number; $tb?: number };
  return {
    ...($maxCount === undefined ? {} : { maxCount: $maxCount }),
    ...($tb === undefined ? {} : { truncateBefore: BigInt($tb) }),
  };
}

/** What the metadata of a stream says about which of its events there still are. */
interface Retention {
  readonly maxCount?: number;
  readonly truncateBefore?: bigint;
}

/**
 * What a server keeps: one log with sparse positions. As in the server, each event of an append has its own position
 * (server sources: an append writes one committed record per event), an append is answered with its last event's,
 * and the events of a deleted stream stay in the log until it is scavenged.
 */
export class Log {
  events: LogEvent[] = [];
  readonly #streams = new Map<string, LogEvent[]>();
  readonly #deleted = new Set<string>();
  readonly #retention = new Map<string, Retention>();
  readonly #wakers = new Set<() => void>();
  /** Where the record of each event that has not been scavenged ends. */
  readonly #ends = new Map<bigint, bigint>();
  #end = 1_000n;

  /** What a backup of it has. */
  copy(): Log {
    const copy = new Log();
    copy.events = [...this.events];
    for (const [stream, events] of this.#streams) copy.#streams.set(stream, [...events]);
    for (const stream of this.#deleted) copy.#deleted.add(stream);
    for (const [stream, retention] of this.#retention) copy.#retention.set(stream, retention);
    for (const [position, end] of this.#ends) copy.#ends.set(position, end);
    copy.#end = this.#end;
    return copy;
  }

  /** The position that the next event will get. */
  get end(): bigint {
    return this.#end;
  }

  append(stream: string, events: readonly Proposed[], expected: Expectation): AppendOutcome {
    if (this.#deleted.has(stream)) return { kind: 'deleted' };
    const recorded = this.#streams.get(stream) ?? [];
    const current = recorded.length === 0 ? undefined : BigInt(recorded.length) - 1n;
    const exact = expected === 'no_stream' || typeof expected === 'bigint';
    // A stream that was deleted softly is there and is not: both expectations hold.
    const isRevived = expected === 'no_stream' && this.#retention.get(stream)?.truncateBefore === EVERYTHING;
    const first = exact ? (expected === 'no_stream' ? 0 : Number(expected) + 1) : this.#placeOf(recorded, events);
    if (!isRevived && first !== undefined && first !== recorded.length) {
      const repeated = recorded.slice(first, first + events.length);
      const last = repeated.at(-1);
      if (last !== undefined && events.every(({ id }, index) => id === repeated[index]?.id)) {
        return { kind: 'written', revision: last.revision, position: last.position };
      }
      if (exact) return { kind: 'wrong', current };
    }
    if (expected === 'stream_exists' && current === undefined) return { kind: 'wrong', current };
    if (isRevived) this.retain(stream, { truncateBefore: BigInt(recorded.length) });
    for (const event of events) this.#push(recorded, { ...event, stream, revision: BigInt(recorded.length) });
    this.#streams.set(stream, recorded);
    const metadata = stream.startsWith('$$') ? events.at(-1) : undefined;
    if (metadata) this.retain(stream.slice(2), retentionOf(metadata));
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

  /** Soft delete: the stream reads as missing, and may be written again, where its revisions go on. */
  softDelete(stream: string): void {
    this.retain(stream, { truncateBefore: EVERYTHING });
  }

  /** Sets `$maxCount` and `$tb` of a stream. */
  retain(stream: string, retention: Retention): void {
    this.#retention.set(stream, retention);
  }

  /** Removes what was deleted, but for the tombstones, and what retention has ended, but for a stream's last event. */
  scavenge(): void {
    this.events = this.events.filter((event) => {
      const { stream, type, position } = event;
      const isLast = this.#streams.get(stream)?.at(-1) === event;
      const stays = this.#deleted.has(stream) ? type === '$streamDeleted' : isLast || this.#isVisible(event);
      if (!stays) this.#ends.delete(position);
      return stays;
    });
  }

  read(stream: string): readonly LogEvent[] | 'deleted' | undefined {
    if (this.#deleted.has(stream)) return 'deleted';
    const visible = this.#streams.get(stream)?.filter((event) => this.#isVisible(event));
    return visible?.length === 0 ? undefined : visible;
  }

  /** True for a position that lies between the beginning and the end of a record. */
  isInsideRecord(position: bigint): boolean {
    const before = this.events.findLast((event) => event.position <= position);
    const end = before === undefined ? undefined : this.#ends.get(before.position);
    return before !== undefined && end !== undefined && before.position < position && position < end;
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
    this.#ends.set(kept.position, this.#end);
    recorded.push(kept);
    this.events.push(kept);
  }

  #isVisible({ stream, revision }: LogEvent): boolean {
    const { maxCount = Infinity, truncateBefore = 0n } = this.#retention.get(stream) ?? {};
    const length = this.#streams.get(stream)?.length ?? 0;
    return revision >= truncateBefore && Number(revision) >= length - maxCount;
  }

  /** Where the first of some events is already. */
  #placeOf(recorded: readonly LogEvent[], [first]: readonly Proposed[]): number | undefined {
    const place = recorded.findLastIndex(({ id }) => id === first?.id);
    return place < 0 ? undefined : place;
  }

  #wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }
}
