import { failureOf, refused, Tries } from './event-store-db-failures.js';
import type { Patience } from './event-store-db-failures.js';
import type { RecordedEvent } from './event-store.js';
import { PAGE_SIZE } from './feed.js';

/** A place in $all as the server counts it. */
export interface LogPosition {
  readonly commit: bigint;
  readonly prepare: bigint;
}

/** An open subscription: a stream in object mode, which ends or fails when the server drops it. */
export interface LiveStream<Item> {
  readonly readableLength: number;
  on(event: 'data', listener: (item: Item) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end' | 'close', listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  unsubscribe(): Promise<void>;
}

/** How a catch-up gets at the server. */
export interface CatchUpSource<Item> {
  /** Subscribes after a position; `passed` is called with positions up to which the server has nothing more for us. */
  open(after: LogPosition | 'start', passed: (position: LogPosition) => void): LiveStream<Item>;
  /** The position of an item, and its event if it is one to deliver. */
  take(item: Item): { readonly position: LogPosition; readonly event: RecordedEvent | undefined };
  /** What is left of a batch when it is to be delivered; after the signal nobody wants to know. */
  visible(events: readonly RecordedEvent[], signal: AbortSignal): Promise<readonly RecordedEvent[]>;
  /** Told of every drop, before the next subscription. */
  dropped(error: unknown): void;
}

/**
 * Keeps a subscription alive: the client's never comes back, so each drop is answered with a new one after the last
 * position received. Holds at most a page of events; while it is full nothing is read from the network.
 */
export class CatchUp<Item> {
  readonly #source: CatchUpSource<Item>;
  readonly #tries: Tries;
  readonly #stopped = new AbortController();
  #wake: () => void = () => undefined;
  #received: LogPosition | 'start';
  #buffer: RecordedEvent[] = [];
  #stream: LiveStream<Item> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(source: CatchUpSource<Item>, after: bigint | 'start', retryAfterMs: number) {
    this.#source = source;
    this.#received = after === 'start' ? 'start' : { commit: after, prepare: after };
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

  /** What has come, oldest first. @throws when nothing will come any more */
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

  /** Resolves with the reason when the subscription has ended. */
  async #follow(): Promise<unknown> {
    const stream = this.#source.open(this.#received, (position) => {
      // Only then is everything before that position in our buffer.
      if (stream.readableLength === 0 && this.#isNews(position)) this.#received = position;
      this.#tries.progress();
    });
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
    // A stream that was given up may still have something in its hands.
    if (stream !== this.#stream) return;
    const { position, event } = this.#source.take(item);
    if (!this.#isNews(position)) return;
    this.#received = position;
    this.#tries.progress();
    if (event === undefined) return;
    this.#buffer.push(event);
    if (this.#buffer.length >= PAGE_SIZE) stream.pause();
    this.#wake();
  }

  #isNews({ commit }: LogPosition): boolean {
    return this.#received === 'start' || commit > this.#received.commit;
  }

  #close(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    // Without a listener, what the client says afterwards would end the process.
    stream.on('error', () => undefined);
    stream.unsubscribe().catch(() => undefined);
    // The call behind it ends only when somebody takes what has already come.
    stream.resume();
  }
}

function patient(retryAfterMs: number): Patience {
  return { retryAfterMs, giveUpAfterMs: Infinity };
}
