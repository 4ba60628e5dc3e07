import { CoordinatorError } from '../domain/errors.js';
import type { EventStore, RecordedEvent, Subscription } from '../ledger/event-store.js';
import { onlyStored, storedEvent } from '../ledger/stored-event.js';
import type { Projecting } from './projecting.js';
import type { Progress } from './projector.js';
import type { ReadModel } from './read-model.js';

/** Reports of the runner: progress for metrics, failures for the log. */
export interface RunnerObserver {
  projected(model: string, position: bigint): void;
  failed(model: string, position: bigint, reason: string): void;
  /** The feed broke and is restarted. */
  interrupted(error: unknown): void;
}

interface Waiter {
  readonly position: bigint;
  readonly resolve: () => void;
}

/** Longest wait of a query for the read models, in milliseconds. */
const readWaitMs = 2_000;
/** Longest interval between checks whether a wait for the read models has become pointless, in milliseconds. */
const passedLookMs = 250;
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
/** Pause before a broken feed is restarted, in milliseconds. */
const retryMs = 1_000;

/** Feeds the read models from the store, and lets readers wait until the models have seen a position. */
export class ReadModelRunner {
  private readonly waiters = new Set<Waiter>();
  private readonly reported = new Set<string>();
  private subscription: Subscription | undefined;
  private closed = false;
  private retry: NodeJS.Timeout | undefined;
  private hurry: () => void = () => undefined;
  /** Received and not yet projected, in position order. */
  private received: RecordedEvent[] = [];
  private receivedText = 0;
  private working: Promise<void> | undefined;
  private makeRoom: () => void = () => undefined;
  private readonly followers: (() => void)[] = [];
  private readonly watchers: ((event: RecordedEvent) => void)[] = [];

  constructor(
    private readonly store: EventStore,
    private readonly projecting: Projecting,
    private readonly observer: RunnerObserver,
  ) {}

  /** Follows the store from where the least advanced model may resume. */
  start(): void {
    const lowest = this.projecting
      .progress()
      .map(({ resumeAfter }) => resumeAfter)
      .reduce((least, position) => (position < least ? position : least));
    this.projecting.onStopped?.(() => this.tell());
    this.subscription = this.store.subscribe({
      after: lowest < 0n ? 'start' : lowest,
      onEvents: (events) => this.take(events),
      onError: (error) => this.resume(error),
    });
  }

  /** Calls back whenever there are new rows to read. */
  follow(follower: () => void): void {
    this.followers.push(follower);
  }

  /** Calls back with each event as it is received, before it is in the rows; with some more than once. */
  watch(watcher: (event: RecordedEvent) => void): void {
    this.watchers.push(watcher);
  }

  /** Position up to which every event is in the rows of that model; -1 before the first. */
  checkpoint(name: string): bigint {
    return this.projecting.progress().find(({ model }) => model === name)?.checkpoint ?? -1n;
  }

  /** The least advanced of all models that have not failed. */
  reached(): bigint {
    return least(this.projecting.progress().filter(({ failure }) => failure === undefined));
  }

  /** Models that have stopped; health reports them, the log has the reason. */
  failures(): readonly string[] {
    return this.projecting
      .progress()
      .filter(({ failure }) => failure !== undefined)
      .map(({ model }) => model);
  }

  /**
   * Resolves once every model that has not stopped has passed the position.
   * @throws {CoordinatorError} UNAVAILABLE after `timeoutMs`
   */
  async passed(position: bigint, timeoutMs: number): Promise<void> {
    if (this.reached() >= position) return;
    let waiter: Waiter | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        waiter = { position, resolve };
        this.waiters.add(waiter);
        this.hurry();
        timer = setTimeout(() => reject(tooLate(position, timeoutMs)), timeoutMs);
      });
    } finally {
      clearTimeout(timer);
      if (waiter) this.waiters.delete(waiter);
    }
  }

  /**
   * Resolves once the rows of these models, of all if none is named, can be read as of the position.
   * @throws {CoordinatorError} UNAVAILABLE after `readWaitMs`, or if one of them has stopped: its rows would look current
   */
  async current(position: bigint, ...models: readonly ReadModel[]): Promise<void> {
    this.checkRunning(models);
    await this.passed(position, readWaitMs);
    // It may have stopped at what was waited for.
    this.checkRunning(models);
  }

  /**
   * Resolves once every model has passed the position, however long that takes, or `signal` says that nobody waits any
   * more.
   */
  async caughtUp(position: bigint, signal: AbortSignal): Promise<void> {
    const isPassed = () =>
      this.passed(position, passedLookMs).then(
        () => true,
        () => false,
      );
    while (!signal.aborted && !(await isPassed()));
  }

  /**
   * Resolves once one model has passed the position.
   * @throws {Error} if a named model has stopped: its readers would wait forever
   */
  async modelPassed(model: string, position: bigint, needed: readonly string[], signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.checkpoint(model) < position) {
      const failed = this.failures().filter((name) => needed.includes(name));
      if (failed.length > 0) throw new Error(`read models have stopped (${failed.join(', ')}): ${model} wait for them`);
      await this.passed(position, passedLookMs).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.hurry();
    clearTimeout(this.retry);
    this.makeRoom();
    await this.subscription?.close();
    await this.working;
  }

  /** Reads ahead while earlier events are projected, as far as there is room. */
  private async take(events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events) {
      // Text is what is kept, measured and passed on.
      const kept = onlyStored(event);
      this.receivedText += textIn(kept);
      this.received.push(kept);
      for (const watcher of this.watchers) watcher(kept);
    }
    this.working ??= this.work();
    if (this.received.length >= backlog) this.hurry();
    if (this.received.length < mostEvents && this.receivedText < mostText) return;
    await new Promise<void>((resolve) => (this.makeRoom = resolve));
  }

  /** Projects what was received until nothing is left. */
  private async work(): Promise<void> {
    try {
      while (this.received.length > 0 && !this.closed) {
        // Projecting a little later delays no reader, and makes one transaction of what has arrived in the meantime.
        if (this.waiters.size === 0 && this.received.length < backlog) await this.linger();
        await this.projecting.project(this.next());
        this.tell();
      }
    } catch (error) {
      this.forgetReceived();
      void this.subscription?.close();
      this.resume(error);
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
    const left = last < 0 ? [] : this.received.slice(last + 1);
    this.forgetReceived();
    this.received = left;
    this.receivedText = left.reduce((sum, event) => sum + textIn(event), 0);
    return events;
  }

  private forgetReceived(): void {
    this.received = [];
    this.receivedText = 0;
    this.makeRoom();
  }

  private tell(): void {
    for (const { model, checkpoint, failure } of this.projecting.progress()) {
      if (failure === undefined) {
        this.observer.projected(model, checkpoint);
      } else if (!this.reported.has(model)) {
        this.reported.add(model);
        this.observer.failed(model, checkpoint, failure);
      }
    }
    const reached = this.reached();
    for (const waiter of this.waiters) if (waiter.position <= reached) waiter.resolve();
    for (const follower of this.followers) follower();
  }

  private checkRunning(models: readonly ReadModel[]): void {
    const failed = this.failures().filter((name) => models.length === 0 || models.some((model) => model.name === name));
    if (failed.length === 0) return;
    throw new CoordinatorError(
      'UNAVAILABLE',
      `read models have stopped (${failed.join(', ')}): see the log of the server`,
    );
  }

  private linger(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, lingerMs);
      this.hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private resume(error: unknown): void {
    if (this.closed) return;
    this.observer.interrupted(error);
    // The next feed starts after what is projected, and delivers what was received again.
    this.forgetReceived();
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.start(), retryMs);
  }
}

/** Length of an event's JSON in UTF-16 units. */
function textIn(event: RecordedEvent): number {
  const { data, metadata } = storedEvent(event);
  return data.length + metadata.length;
}

function least(progress: readonly Progress[]): bigint {
  return progress.reduce(
    (lowest, { checkpoint }) => (checkpoint < lowest ? checkpoint : lowest),
    progress[0]?.checkpoint ?? -1n,
  );
}

function tooLate(position: bigint, timeoutMs: number): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `the read models have not reached position ${position} within ${timeoutMs} ms; try again shortly`,
  );
}
