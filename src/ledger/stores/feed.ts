import type { RecordedEvent, SubscribeOptions, Subscription } from '../event-store.js';
import { parseEvent } from '../stored-event.js';
import type { StoredEvent } from '../stored-event.js';

/** Maximum events that a handler gets at once, and maximum rows read from disk at once. */
export const PAGE_SIZE = 500;

/** Where a feed takes its events from: what follows a position, oldest first, or nothing at the end. */
export type NextEvents = (after: bigint) => Promise<readonly RecordedEvent[]> | readonly RecordedEvent[];

/**
 * The loop behind a subscription, the same for catching up and for live events: take what follows the last delivered
 * position, deliver it, repeat; if there is nothing, sleep until `wake`. So there is no hand-over between two modes in
 * which an event could get lost or be delivered twice, and a slow handler slows only its own feed.
 */
export class Feed implements Subscription {
  readonly #next: NextEvents;
  readonly #options: SubscribeOptions;
  readonly #ended: () => void;
  readonly #done: Promise<void>;
  #closed = false;
  #news = false;
  #sleeper: (() => void) | undefined;

  /** @param ended called once when the feed will not call `next` again */
  constructor(next: NextEvents, options: SubscribeOptions, ended: () => void) {
    this.#next = next;
    this.#options = options;
    this.#ended = ended;
    this.#done = this.#run();
  }

  /** Call this after every recorded event; cheap if the feed is busy anyway. */
  wake(): void {
    this.#news = true;
    this.#sleeper?.();
  }

  close(): Promise<void> {
    this.#closed = true;
    this.wake();
    return this.#done;
  }

  async #run(): Promise<void> {
    let failure: { error: unknown } | undefined;
    try {
      // The subscriber must have its subscription before the first event can reach it.
      await Promise.resolve();
      await this.#deliver();
    } catch (error) {
      failure = { error };
    }
    this.#closed = true;
    this.#ended();
    if (failure !== undefined) this.#options.onError(failure.error);
  }

  async #deliver(): Promise<void> {
    let after = this.#options.after === 'start' ? -1n : this.#options.after;
    while (!this.#closed) {
      // INVARIANT: cleared before looking, so that an event recorded while we look is not missed.
      this.#news = false;
      const events = await this.#next(after);
      if (this.#closed) return;
      const last = events.at(-1);
      if (last !== undefined) {
        await this.#options.onEvents(events);
        after = last.position;
      } else if (!this.#news) {
        await new Promise<void>((resolve) => (this.#sleeper = resolve));
        this.#sleeper = undefined;
      }
    }
  }
}

/** The events after a position, at most a page, of a list in position order. */
export function eventsAfter(events: readonly StoredEvent[], after: bigint): readonly RecordedEvent[] {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((events[middle]?.position ?? 0n) > after) high = middle;
    else low = middle + 1;
  }
  return events.slice(low, low + PAGE_SIZE).map((event) => parseEvent(event));
}
