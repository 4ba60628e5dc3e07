import { CoordinatorError } from '../domain/errors.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { EventMetadata } from '../event-store/chain.js';
import type { EventStore, RecordedEvent, Subscription } from '../event-store/event-store.js';
import { upcast } from '../event-store/upcast.js';
import type { ReadModelDatabase } from './database.js';
import type { ProjectedEvent, ReadModel } from './read-model.js';

/** What the runner tells the outside: lag for metrics and health, failures for the log. */
export interface RunnerObserver {
  projected(model: string, position: bigint): void;
  failed(model: string, position: bigint, error: unknown): void;
  /** The feed broke and is taken up again. */
  interrupted(error: unknown): void;
}

interface Progress {
  readonly model: ReadModel;
  checkpoint: bigint;
  failure: unknown;
}

interface Waiter {
  readonly position: bigint;
  readonly resolve: () => void;
}

/** How long events wait to be projected together, when nobody waits for them, in milliseconds. */
const lingerMs = 20;
/** So many events at once are a backlog: no waiting. */
const hurryAt = 256;
const streamPrefix = 'organization-';

/**
 * Feeds every read model from one subscription. Each has its own checkpoint, written in the same transaction as its
 * rows, so that a crash repeats nothing and skips nothing. A model that fails stops alone; the others go on.
 */
export class ReadModelRunner {
  private readonly progress: readonly Progress[];
  private readonly waiters = new Set<Waiter>();
  private subscription: Subscription | undefined;
  private closed = false;
  private retry: NodeJS.Timeout | undefined;
  private hurry: () => void = () => undefined;

  constructor(
    private readonly store: EventStore,
    private readonly database: ReadModelDatabase,
    models: readonly ReadModel[],
    private readonly observer: RunnerObserver,
  ) {
    database.define(
      'CREATE TABLE IF NOT EXISTS checkpoints (model TEXT PRIMARY KEY, version INTEGER NOT NULL, position TEXT NOT NULL)',
    );
    this.progress = models.map((model) => ({ model, checkpoint: this.prepare(model), failure: undefined }));
  }

  /** Follows the store from the lowest checkpoint on. */
  start(): void {
    const lowest = this.progress.reduce<bigint | undefined>(
      (least, { checkpoint }) => (least === undefined || checkpoint < least ? checkpoint : least),
      undefined,
    );
    this.subscription = this.store.subscribe({
      after: lowest === undefined || lowest < 0n ? 'start' : lowest,
      onEvents: (events) => this.take(events),
      onError: (error) => this.resume(error),
    });
  }

  /** Position up to which every event is in the rows of that model; -1 before the first. */
  checkpoint(name: string): bigint {
    return this.progress.find(({ model }) => model.name === name)?.checkpoint ?? -1n;
  }

  /** The least advanced of all models that have not failed. */
  reached(): bigint {
    const live = this.progress.filter(({ failure }) => failure === undefined);
    return live.reduce(
      (least, { checkpoint }) => (checkpoint < least ? checkpoint : least),
      live[0]?.checkpoint ?? -1n,
    );
  }

  /** Models that have stopped, with the reason; health reports them. */
  failures(): readonly { readonly model: string; readonly reason: string }[] {
    return this.progress
      .filter(({ failure }) => failure !== undefined)
      .map(({ model, failure }) => ({ model: model.name, reason: String(failure) }));
  }

  /**
   * Resolves when every model has passed the position.
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
        timer = setTimeout(
          () =>
            reject(
              new CoordinatorError(
                'UNAVAILABLE',
                `the read models have not reached position ${position} within ${timeoutMs} ms; try again shortly`,
              ),
            ),
          timeoutMs,
        );
      });
    } finally {
      clearTimeout(timer);
      if (waiter) this.waiters.delete(waiter);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.hurry();
    clearTimeout(this.retry);
    await this.subscription?.close();
  }

  private prepare(model: ReadModel): bigint {
    const row = this.database.get('SELECT version, position FROM checkpoints WHERE model = ?', model.name);
    if (row && Number(row['version']) === model.version) return BigInt(String(row['position']));
    this.database.define(model.tables.map((table) => `DROP TABLE IF EXISTS ${table};`).join('\n'));
    this.database.define(model.schema);
    this.database.run('INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)', model.name, model.version, '-1');
    return -1n;
  }

  /** Projecting a little later costs no reader anything and makes one transaction of what has come meanwhile. */
  private async take(recorded: readonly RecordedEvent[]): Promise<void> {
    if (this.waiters.size === 0 && !this.closed && recorded.length < hurryAt) {
      await new Promise<void>((resolve) => {
        this.hurry = resolve;
        setTimeout(resolve, lingerMs).unref();
      });
    }
    this.project(recorded);
  }

  private project(recorded: readonly RecordedEvent[]): void {
    const last = recorded.at(-1);
    if (!last) return;
    const events = recorded.filter(({ stream }) => stream.startsWith(streamPrefix)).map(projected);
    this.database.transaction(() => {
      for (const progress of this.progress) {
        if (progress.failure === undefined && progress.checkpoint < last.position) {
          this.projectInto(progress, events, last.position);
        }
      }
    });
    for (const progress of this.progress) {
      if (progress.failure !== undefined) continue;
      progress.checkpoint = last.position;
      this.observer.projected(progress.model.name, last.position);
    }
    const reached = this.reached();
    for (const waiter of this.waiters) if (waiter.position <= reached) waiter.resolve();
  }

  private projectInto(progress: Progress, events: readonly ProjectedEvent[], end: bigint): void {
    const { model, checkpoint } = progress;
    const unseen =
      checkpoint < (events[0]?.position ?? end) ? events : events.filter((one) => one.position > checkpoint);
    try {
      this.database.transaction(() => {
        model.project(this.database, unseen);
        this.database.run('UPDATE checkpoints SET position = ? WHERE model = ?', String(end), model.name);
      });
    } catch (error) {
      progress.failure = error;
      this.observer.failed(model.name, unseen[0]?.position ?? end, error);
    }
  }

  private resume(error: unknown): void {
    if (this.closed) return;
    this.observer.interrupted(error);
    this.retry = setTimeout(() => this.start(), 1_000);
  }
}

function projected(recorded: RecordedEvent): ProjectedEvent {
  const { type, data, metadata } = upcast(recorded);
  return {
    organizationId: recorded.stream.slice(streamPrefix.length),
    position: recorded.position,
    revision: recorded.revision,
    at: (metadata as EventMetadata).at,
    event: { type, data } as OrganizationEvent,
  };
}
