import { CoordinatorError } from '../domain/errors.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import type { UnreadablePlace } from '../ledger/unreadable-organizations.js';
import { ModelFeed } from './model-feed.js';
import type { Projecting } from './projecting.js';
import type { Progress } from './projector.js';
import type { Rows } from './database.js';
import type { ReadModel } from './read-model.js';
import { onlyReadyRows } from './ready-rows.js';

/** Models that are being rebuilt, and how far they are. */
export interface Rebuild {
  readonly models: readonly string[];
  /** Store position up to which the least advanced of them includes every event; -1 before the first. */
  readonly reached: bigint;
  /** Last position of the store when the rebuild started. */
  readonly goal: bigint;
}

/** Reports of the runner: progress for metrics, failures for the log. */
export interface RunnerObserver {
  projected(model: string, position: bigint): void;
  failed(model: string, position: bigint, reason: string): void;
  /** An event was left out of the rows, because it cannot be read. */
  leftOut?(place: UnreadablePlace): void;
  /** The feed broke and is restarted. */
  interrupted(error: unknown): void;
  /** A rebuild started, has advanced, or has ended. */
  rebuild?(state: 'started' | 'advanced' | 'ended', rebuild: Rebuild): void;
}

interface Waiter {
  readonly isReached: () => boolean;
  readonly resolve: () => void;
}

/** Longest wait of a query for the read models, in milliseconds. */
const readWaitMs = 2_000;
/** Longest interval between checks whether a wait for the read models has become pointless, in milliseconds. */
const passedLookMs = 250;
/** Pause before a broken feed is restarted, in milliseconds. */
const retryMs = 1_000;
/** Models this many positions behind the store at a start are rebuilt: queries of them are refused without waiting. */
const worthReporting = 5_000n;
/** Positions of a remote store count bytes: an event takes about this many. */
const remoteEventBytes = 1_000n;
/** When queries may be repeated during a rebuild, in seconds. */
const rebuildRetrySeconds = 5;

/**
 * Feeds the read models from the store, and lets readers wait until the models have seen a position. Models that are behind the
 * others at a start, since this release builds their rows differently, have a feed of their own until they have caught up, so that
 * the others stay current.
 */
export class ReadModelRunner {
  private readonly waiters = new Set<Waiter>();
  private readonly reported = new Set<string>();
  private reportedLeftOut = 0;
  private feed: ModelFeed | undefined;
  private rebuildFeed: ModelFeed | undefined;
  /** Models that the feed of the others does not reach yet. */
  private readonly behind = new Set<string>();
  private rebuild: Rebuild | undefined;
  /** Batches of both feeds are projected one at a time. */
  private projection: Promise<void> = Promise.resolve();
  private closed = false;
  private retry: NodeJS.Timeout | undefined;
  private readonly followers: (() => void)[] = [];
  private readonly watchers: ((event: RecordedEvent) => void)[] = [];

  constructor(
    private readonly store: Pick<EventStore, 'subscribe' | 'head' | 'remote'>,
    private readonly projecting: Projecting,
    private readonly observer: RunnerObserver,
  ) {}

  /** Follows the store from where the models may resume. */
  start(): void {
    this.projecting.onStopped?.(() => this.tell());
    this.tellLeftOut();
    const running = this.projecting.progress().filter(({ failure }) => failure === undefined);
    const after = furthest(running);
    this.behind.clear();
    for (const { model, resumeAfter } of running) if (resumeAfter < after) this.behind.add(model);
    this.feed = this.open(after, (event) => {
      for (const watcher of this.watchers) watcher(event);
    });
    const late = running.filter(({ model }) => this.behind.has(model));
    if (late.length > 0) this.rebuildFeed = this.open(leastResumed(late), () => undefined);
    void this.noteRebuild();
  }

  private open(after: bigint, onEvent: (event: RecordedEvent) => void): ModelFeed {
    const feed: ModelFeed = new ModelFeed(this.store, {
      after,
      onEvent,
      project: (events) => this.project(feed, events),
      isAwaited: () => this.waiters.size > 0,
      onError: (error) => this.resume(error),
    });
    return feed;
  }

  private project(feed: ModelFeed, events: readonly RecordedEvent[]): Promise<void> {
    const done = this.projection.then(async () => {
      // Which models a feed is for is settled only now: those of the other feed may have joined it meanwhile.
      if (feed !== this.feed && feed !== this.rebuildFeed) return;
      await this.projecting.project(events, this.modelsOf(feed));
      this.joinWhenCaughtUp();
      this.tell();
    });
    this.projection = done.catch(() => undefined);
    return done;
  }

  /** Undefined for all. */
  private modelsOf(feed: ModelFeed): readonly string[] | undefined {
    if (this.behind.size === 0) return undefined;
    if (feed === this.rebuildFeed) return [...this.behind];
    return this.names().filter((model) => !this.behind.has(model));
  }

  /** Models that have reached the others no longer need a feed of their own. Called between two batches. */
  private joinWhenCaughtUp(): void {
    if (this.behind.size === 0) return;
    const others = this.names().filter((model) => !this.behind.has(model));
    if (this.reached([...this.behind]) < this.reached(others)) return;
    this.behind.clear();
    this.rebuildFeed?.stop();
    this.rebuildFeed = undefined;
  }

  private async noteRebuild(): Promise<void> {
    const goal = (await this.store.head().catch(() => undefined)) ?? -1n;
    if (this.rebuild || this.closed) return;
    const least = this.store.remote ? worthReporting * remoteEventBytes : worthReporting;
    const models = this.projecting
      .progress()
      .filter(({ failure, checkpoint }) => failure === undefined && goal - checkpoint > least)
      .map(({ model }) => model);
    if (models.length === 0) return;
    this.rebuild = { models, goal, reached: this.reached(models) };
    this.observer.rebuild?.('started', this.rebuild);
  }

  private reportRebuild(): void {
    if (!this.rebuild) return;
    const { models, goal } = this.rebuild;
    const reached = this.reached(models);
    const isDone = reached >= goal && !models.some((model) => this.behind.has(model));
    this.rebuild = isDone ? undefined : { models, goal, reached };
    this.observer.rebuild?.(isDone ? 'ended' : 'advanced', { models, goal, reached });
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

  /** The least advanced of these models, by default of all, that have not failed. */
  reached(models?: readonly string[]): bigint {
    return least(
      this.projecting
        .progress()
        .filter(({ failure, model }) => failure === undefined && (!models || models.includes(model))),
    );
  }

  /** Models that have stopped; health reports them, the log has the reason. */
  failures(): readonly string[] {
    return this.projecting
      .progress()
      .filter(({ failure }) => failure !== undefined)
      .map(({ model }) => model);
  }

  private haveStopped(models: readonly string[]): boolean {
    const failures = this.failures();
    return models.every((model) => failures.includes(model));
  }

  /** The rows for a query: those of models that are behind the others are refused. */
  readable(rows: Rows): Rows {
    if (this.behind.size === 0) return rows;
    return onlyReadyRows(rows, (model) => {
      if (this.behind.has(model)) throw this.beingRebuilt([model]);
    });
  }

  /**
   * Resolves once every one of these models, by default of all, that has not stopped has passed the position.
   * @throws {CoordinatorError} UNAVAILABLE after `timeoutMs`
   */
  async passed(position: bigint, timeoutMs: number, models?: readonly string[]): Promise<void> {
    const haveStopped = () => models !== undefined && models.length > 0 && this.haveStopped(models);
    const isReached = () => haveStopped() || this.reached(models) >= position;
    if (isReached()) return;
    let waiter: Waiter | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        waiter = { isReached, resolve };
        this.waiters.add(waiter);
        this.feed?.hurry();
        this.rebuildFeed?.hurry();
        timer = setTimeout(() => reject(tooLate(position, timeoutMs)), timeoutMs);
      });
    } finally {
      clearTimeout(timer);
      if (waiter) this.waiters.delete(waiter);
    }
  }

  /**
   * Resolves once the rows of these models can be read as of the position; if none is named, those of all that are not behind the
   * others.
   * @throws {CoordinatorError} UNAVAILABLE after `readWaitMs`, at once if one of them is being rebuilt, or if one of them has
   *   stopped: its rows would look current
   */
  async current(position: bigint, ...models: readonly ReadModel[]): Promise<void> {
    const ready = this.names().filter((name) => !this.behind.has(name));
    const names = models.length > 0 ? models.map(({ name }) => name) : ready;
    this.checkRunning(names);
    if (this.reached(names) >= position) return;
    const rebuilt = names.filter((name) => this.rebuild?.models.includes(name));
    if (rebuilt.length > 0) throw this.beingRebuilt(rebuilt);
    await this.passed(position, readWaitMs, names);
    // It may have stopped at what was waited for.
    this.checkRunning(names);
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
      await this.passed(position, passedLookMs, [model]).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.retry);
    await Promise.all([this.feed?.close(), this.rebuildFeed?.close()]);
    await this.projection;
  }

  private names(): readonly string[] {
    return this.projecting.progress().map(({ model }) => model);
  }

  private tellLeftOut(): void {
    const leftOut = this.projecting.leftOut();
    for (const place of leftOut.slice(this.reportedLeftOut)) this.observer.leftOut?.(place);
    this.reportedLeftOut = leftOut.length;
  }

  private tell(): void {
    this.tellLeftOut();
    for (const { model, checkpoint, failure } of this.projecting.progress()) {
      if (failure === undefined) {
        this.observer.projected(model, checkpoint);
      } else if (!this.reported.has(model)) {
        this.reported.add(model);
        this.observer.failed(model, checkpoint, failure);
      }
    }
    this.reportRebuild();
    for (const waiter of this.waiters) if (waiter.isReached()) waiter.resolve();
    for (const follower of this.followers) follower();
  }

  private checkRunning(names: readonly string[]): void {
    const failed = this.failures().filter((name) => names.includes(name));
    if (failed.length === 0) return;
    throw new CoordinatorError(
      'UNAVAILABLE',
      `read models have stopped (${failed.join(', ')}): see the log of the server`,
    );
  }

  private beingRebuilt(models: readonly string[]): CoordinatorError {
    const { reached = -1n, goal = 0n } = this.rebuild ?? {};
    const percent = goal > 0n && reached > 0n ? Number((reached * 100n) / goal) : 0;
    return new CoordinatorError(
      'UNAVAILABLE',
      `read models are being rebuilt from the events, ${Math.min(percent, 99)} % done (${models.slice(0, 3).join(', ')}): ` +
        'try again later',
      { retryAfterSeconds: rebuildRetrySeconds },
    );
  }

  private resume(error: unknown): void {
    if (this.closed) return;
    this.observer.interrupted(error);
    // The next feeds start after what is projected, and deliver what was received again.
    const stopped = [this.feed, this.rebuildFeed];
    this.feed = undefined;
    this.rebuildFeed = undefined;
    for (const feed of stopped) feed?.stop();
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.start(), retryMs);
  }
}

function least(progress: readonly Progress[]): bigint {
  return progress.reduce(
    (lowest, { checkpoint }) => (checkpoint < lowest ? checkpoint : lowest),
    progress[0]?.checkpoint ?? -1n,
  );
}

function leastResumed(progress: readonly Progress[]): bigint {
  return progress.map(({ resumeAfter }) => resumeAfter).reduce((lowest, one) => (one < lowest ? one : lowest));
}

function furthest(progress: readonly Progress[]): bigint {
  return progress.reduce((highest, { resumeAfter }) => (resumeAfter > highest ? resumeAfter : highest), -1n);
}

function tooLate(position: bigint, timeoutMs: number): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `the read models have not reached position ${position} within ${timeoutMs} ms; try again shortly`,
  );
}
