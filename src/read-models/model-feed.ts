import type { EventStore, RecordedEvent, Subscription } from '../ledger/event-store.js';
import { onlyStored, storedEvent } from '../ledger/stored-event.js';

/** How long events wait to be projected together if nobody waits for them, in milliseconds. */
const lingerMs = 100;
/** This many waiting events are a backlog, which is not delayed: a store hands over no more at once. */
const backlog = 500;
/** Maximum events in one transaction, and read ahead for the next one: this many, or this much text (UTF-16 units). */
const mostEvents = 4_000;
const mostText = 8 * 1024 * 1024;
/** Longer events, and how much text of them is handed over at once: copying it for the thread of the rows keeps this one. */
const largeText = 64 * 1024;
const mostLargeText = 1024 * 1024;

export interface ModelFeedOptions {
  /** Position after which it starts; -1 for the start. */
  readonly after: bigint;
  /** Called with each event as it is received. */
  readonly onEvent: (event: RecordedEvent) => void;
  /** Projects one batch; the next one waits for it. */
  readonly project: (events: readonly RecordedEvent[]) => Promise<void>;
  /** Whether a reader waits for what is to be projected. */
  readonly isAwaited: () => boolean;
  /** The feed has ended with this error, of the store or the projection. */
  readonly onError: (error: unknown) => void;
}

/** Reads the store from a position on and projects what it reads in batches, reading ahead meanwhile. */
export class ModelFeed {
  private readonly subscription: Subscription;
  private isClosed = false;
  private skipLinger: () => void = () => undefined;
  /** Received and not yet projected, in position order. */
  private received: RecordedEvent[] = [];
  private receivedText = 0;
  private working: Promise<void> | undefined;
  private continueReading: () => void = () => undefined;

  constructor(
    store: Pick<EventStore, 'subscribe'>,
    private readonly options: ModelFeedOptions,
  ) {
    const { after } = options;
    this.subscription = store.subscribe({
      after: after < 0n ? 'start' : after,
      onEvents: (events) => this.take(events),
      onError: (error) => this.fail(error),
    });
  }

  /** Projects what has been received without waiting for more. */
  hurry(): void {
    this.skipLinger();
  }

  /** Ends the feed without waiting for a batch that is being projected. */
  stop(): void {
    this.isClosed = true;
    this.skipLinger();
    this.forgetReceived();
    void this.subscription.close();
  }

  /** As `stop`, and resolves when the batch that is being projected is done. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.skipLinger();
    this.continueReading();
    await this.subscription.close();
    await this.working;
  }

  /** Reads ahead while earlier events are projected, up to the limits. */
  private async take(events: readonly RecordedEvent[]): Promise<void> {
    if (this.isClosed) return;
    for (const event of events) {
      // Text is what is kept, measured and passed on.
      const stored = onlyStored(event);
      this.receivedText += textIn(stored);
      this.received.push(stored);
      this.options.onEvent(stored);
    }
    this.working ??= this.work();
    if (this.received.length >= backlog) this.hurry();
    if (this.received.length < mostEvents && this.receivedText < mostText) return;
    await new Promise<void>((resolve) => (this.continueReading = resolve));
  }

  /** Projects what was received until nothing is left. */
  private async work(): Promise<void> {
    try {
      while (this.received.length > 0 && !this.isClosed) {
        // Projecting a little later delays no reader, and makes one transaction of what has arrived in the meantime.
        if (!this.options.isAwaited() && this.received.length < backlog) await this.linger();
        if (this.received.length > 0) await this.options.project(this.next());
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.working = undefined;
    }
  }

  /** The next events for one transaction. */
  private next(): readonly RecordedEvent[] {
    let large = 0;
    const last = this.received.findIndex((event) => {
      const text = textIn(event);
      if (text > largeText) large += text;
      return large > mostLargeText;
    });
    const events = last < 0 ? this.received : this.received.slice(0, last + 1);
    const rest = last < 0 ? [] : this.received.slice(last + 1);
    this.forgetReceived();
    this.received = rest;
    this.receivedText = rest.reduce((sum, event) => sum + textIn(event), 0);
    return events;
  }

  private forgetReceived(): void {
    this.received = [];
    this.receivedText = 0;
    this.continueReading();
  }

  private linger(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, lingerMs);
      this.skipLinger = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private fail(error: unknown): void {
    if (this.isClosed) return;
    this.stop();
    this.options.onError(error);
  }
}

/** Length of an event's JSON in UTF-16 units. */
function textIn(event: RecordedEvent): number {
  const { data, metadata } = storedEvent(event);
  return data.length + metadata.length;
}
