import { failureOf, refused, Tries } from './failures.js';
import type { Patience } from './failures.js';
import type { RecordedEvent } from '../../event-store.js';
import { PAGE_SIZE } from '../feed.js';

/** A place in $all as the server counts it. */
export interface LogPosition {
  readonly commit: bigint;
  readonly prepare: bigint;
}

/** An open subscription: a stream in object mode, which ends or fails when the server drops it. */
export interface LiveStream<Item> {
  on(event: 'data', listener: (item: Item) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  unsubscribe(): Promise<void>;
}

/** How a catch-up reaches the server. */
export interface CatchUpSource<Item> {
  /** Subscribes after a position. */
  open(after: LogPosition | 'start'): LiveStream<Item>;
  /** Confirms that there is an event at the position. @throws {StoreUnavailable} if there is none */
  check(position: LogPosition, signal: AbortSignal): Promise<void>;
  /** The event of an item, if it is to be delivered. */
  take(item: Item): RecordedEvent | undefined;
  /** True for an event that no scavenge can remove. */
  isKept(event: RecordedEvent): boolean;
  /** Called with the rest of a batch when it is due for delivery; not after the signal. */
  visible(events: readonly RecordedEvent[], signal: AbortSignal): Promise<readonly RecordedEvent[]>;
  /** Called for every drop, before the next subscription. */
  dropped(error: unknown): void;
}

/** Maximum number of events recognized as repeated. */
const MOST_REMEMBERED = 10_000;

/**
 * Keeps a subscription alive: the client never restores one, so each drop is answered with a new one. It starts only
 * after the last event received from a permanent stream (docs/adr/0021): after a scavenged event, and after a
 * checkpoint, servers may skip events. Repeated events are recognized by stream and revision. Holds at most a page of
 * events; while it is full, nothing is read from the network.
 */
export class CatchUp<Item> {
  readonly #source: CatchUpSource<Item>;
  readonly #tries: Tries;
  readonly #stopped = new AbortController();
  #wake: () => void = () => undefined;
  /** Of the last event received from a permanent stream, or where the subscriber starts. */
  #after: LogPosition | 'start';
  /** What has arrived after that, and may arrive again. */
  readonly #since = new Set<string>();
  #isChecked: boolean;
  #buffer: RecordedEvent[] = [];
  #stream: LiveStream<Item> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(source: CatchUpSource<Item>, after: bigint | 'start', retryAfterMs: number) {
    this.#source = source;
    this.#after = after === 'start' ? 'start' : { commit: after, prepare: after };
    this.#isChecked = after === 'start';
    this.#tries = new Tries('a subscription', patient(retryAfterMs));
  }

  /** @param wake called when there is something for `next` */
  start(wake: () => void): void {
    this.#wake = wake;
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
    this.#close();
  }

  /** What has arrived, oldest first. @throws if nothing will arrive any more */
  async next(): Promise<readonly RecordedEvent[]> {
    const events = this.#buffer;
    if (events.length === 0) {
      if (this.#failure !== undefined) throw this.#failure.error;
      return events;
    }
    this.#buffer = [];
    this.#stream?.resume();
    return this.#source.visible(events, this.#stopped.signal);
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        await this.#checkBeginning();
        if (this.#stopped.signal.aborted) return;
        const error = await this.#follow();
        if (this.#stopped.signal.aborted) return;
        this.#source.dropped(error);
        await this.#tries.again(error, this.#stopped.signal);
      } catch (error) {
        this.#failure = { error: failureOf(error) === 'final' ? refused('a subscription', error) : error };
        this.#wake();
        return;
      }
    }
  }

  /** Some servers deliver nothing for a position inside a record, and never say so. */
  async #checkBeginning(): Promise<void> {
    if (this.#isChecked || this.#after === 'start') return;
    await this.#source.check(this.#after, this.#stopped.signal);
    this.#isChecked = true;
  }

  /** Resolves with the reason once the subscription has ended. */
  async #follow(): Promise<unknown> {
    const stream = this.#source.open(this.#after);
    this.#stream = stream;
    try {
      return await new Promise<unknown>((resolve) => {
        stream.on('error', resolve);
        stream.on('end', () => resolve(new Error('the server has ended the subscription')));
        stream.on('close', () => resolve(new Error('the subscription was closed')));
        stream.on('data', (item: Item) => {
          try {
            this.#take(item, stream);
          } catch (error) {
            this.#failure = { error };
            this.stop();
            this.#wake();
          }
        });
      });
    } finally {
      this.#close();
    }
  }

  #take(item: Item, stream: LiveStream<Item>): void {
    // A stream that was given up may still hold something.
    if (stream !== this.#stream) return;
    const event = this.#source.take(item);
    this.#tries.progress();
    if (event === undefined || !this.#isNews(event)) return;
    this.#buffer.push(event);
    if (this.#buffer.length >= PAGE_SIZE) stream.pause();
    this.#wake();
  }

  #isNews(event: RecordedEvent): boolean {
    const { stream, revision, position } = event;
    if (this.#after !== 'start' && position <= this.#after.commit) return false;
    if (this.#source.isKept(event)) {
      this.#after = { commit: position, prepare: position };
      this.#since.clear();
      return true;
    }
    const name = `${revision} ${stream}`;
    if (this.#since.has(name)) return false;
    const [oldest] = this.#since;
    // Better twice than never, and better twice than without bound.
    if (oldest !== undefined && this.#since.size >= MOST_REMEMBERED) this.#since.delete(oldest);
    this.#since.add(name);
    return true;
  }

  #close(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    // Without a listener, later errors of the client would end the process.
    stream.on('error', () => undefined);
    stream.unsubscribe().catch(() => undefined);
    // The call behind it ends only once someone takes what has already arrived.
    stream.resume();
  }
}

function patient(retryAfterMs: number): Patience {
  return { retryAfterMs, giveUpAfterMs: Infinity };
}
