import { StreamFolder, type FoldOptions } from './fold-stream.js';
import { OtherWriters } from './other-writers.js';
import { noSuchOrganization, organizationOf, type OrganizationView } from '../domain/organization/organization.js';
import { UnreadableEvent, type EventStore, type RecordedEvent } from './event-store.js';
import { FoldCache } from './fold-cache.js';
import type { DriverMetrics } from '../ports/driver-metrics.js';
import { apply, copyOf, onceRecorded, settle, type LoadedOrganization, type Loading } from './loaded-organization.js';
import { foundingRefusal, storeUnreadable } from './store-refusals.js';
import { UnreadableOrganizations } from './unreadable-organizations.js';

/** Number of events that make a snapshot worthwhile: folding them takes a fifth of a second (bench/README.md). */
const worthSnapshot = 10_000;

/** A cached copy this many events behind is replaced: a balance between copying the state and reading events twice. */
const copyAfter = 64;

/** An organization for a decision. */
export interface Head {
  readonly loaded: LoadedOrganization;
  /** It was just read; otherwise others may have written since. */
  readonly isNewest: boolean;
}

export interface LoaderOptions extends FoldOptions {
  /** Number of events between snapshots, default 10 000. */
  readonly snapshotEvery?: number;
  /** Memory for folded organizations, in bytes, default 24 MiB or an eighth of the heap. */
  readonly cacheBytes?: number;
  /** Organizations that are refused; default: those that this loader fails to fold. */
  readonly unreadable?: UnreadableOrganizations;
  /** Founds sub-organizations that their parents have recorded; if absent, only those with a stream exist. */
  readonly children?: {
    /** Founds a sub-organization without a stream if its parent has recorded it; returns whether the parent has. */
    finish(organizationId: string): Promise<boolean>;
  };
}

/** Folds streams, and caches the folded state by revision so that only new events are read. */
export class OrganizationLoader {
  private readonly cache: FoldCache;
  private readonly loading = new Map<string, Loading>();
  /**
   * For organizations that other writers write to as well: a copy with recorded events only, which nobody decides on.
   * Folding the whole stream after each conflict would mean losing against the other writer forever.
   */
  private readonly copies = new Map<string, LoadedOrganization>();
  private readonly dropped = new Set<string>();
  private readonly others = new OtherWriters();
  private readonly folder: StreamFolder;
  private readonly unreadable: UnreadableOrganizations;

  constructor(
    private readonly store: EventStore,
    metrics: DriverMetrics,
    private readonly options: LoaderOptions = {},
  ) {
    this.folder = new StreamFolder(store, metrics, options);
    this.unreadable = options.unreadable ?? new UnreadableOrganizations();
    this.cache = new FoldCache((organizationId) => this.evicted(organizationId), options.cacheBytes);
  }

  /**
   * The organization at the head of its stream, including everything recorded before this call, and everything that
   * this process has decided since and is about to record.
   * @throws {CoordinatorError} NOT_FOUND ORGANIZATION_NOT_FOUND; UNAVAILABLE if the store, or an event, cannot be read
   */
  async load(organizationId: string): Promise<LoadedOrganization> {
    this.unreadable.check(organizationId);
    let loaded = await this.loadOrEmpty(organizationId);
    if (loaded.revision < 0 && (await this.finish(organizationId))) {
      // A fold in progress may have read the stream before it was written.
      await this.loading.get(organizationId)?.done.catch(() => undefined);
      loaded = await this.loadOrEmpty(organizationId);
    }
    if (loaded.revision >= 0) return loaded;
    throw noSuchOrganization(organizationId);
  }

  /**
   * As `load`, without anything that is still to be recorded: for whoever appends to another stream, which proves
   * nothing about this one. Nobody who is about to append here waits for another organization's append.
   * @throws {CoordinatorError} as `load` does; UNAVAILABLE if appends keep failing
   */
  async recorded(organizationId: string): Promise<LoadedOrganization> {
    const loaded = await this.load(organizationId);
    if (loaded.pending.length === 0) return loaded;
    const isHeld = (one: LoadedOrganization) => this.cache.get(organizationId) === one;
    return onceRecorded(loaded, isHeld, () => this.load(organizationId));
  }

  /**
   * The organization as cached, without asking the store: an append proves whether that is the newest state. It is read
   * if it is not cached, or if others have written recently, because whoever decides on an old state loses to them.
   * @throws {CoordinatorError} as `load` does
   */
  async held(organizationId: string): Promise<Head> {
    this.unreadable.check(organizationId);
    const loaded = this.cache.get(organizationId);
    if (this.store.exclusive || !loaded || this.others.haveWritten(organizationId)) {
      return { loaded: await this.load(organizationId), isNewest: true };
    }
    this.remember(organizationId, loaded);
    return { loaded, isNewest: false };
  }

  /** Others were first with an append: the next load reads before a decision. */
  overtaken(organizationId: string): void {
    this.others.wrote(organizationId);
  }

  /** Advances a cached state by a recorded event, unless someone is about to append to it. */
  follow(event: RecordedEvent): void {
    const organizationId = organizationOf(event.stream);
    const loaded = organizationId === undefined ? undefined : this.cache.get(organizationId);
    if (organizationId === undefined || !loaded || this.store.exclusive) return;
    // Not if it may be our own event, which is only known once the append has responded.
    if (event.revision <= loaded.revision || loaded.pending.length > 0) return;
    this.others.wrote(organizationId);
    const isNext = event.revision === loaded.revision + 1;
    if (!isNext || this.loading.has(organizationId) || this.cache.isHeld(organizationId)) return;
    try {
      apply(loaded, event);
    } catch {
      // The next reader gets the error.
      this.drop(organizationId);
    }
  }

  private loadOrEmpty(organizationId: string): Promise<LoadedOrganization> | LoadedOrganization {
    const cached = this.cache.get(organizationId);
    if (cached && this.store.exclusive) {
      this.remember(organizationId, cached);
      return cached;
    }
    // Two concurrent folds of one stream would apply the same events twice to one accumulator.
    const running = this.loading.get(organizationId);
    if (!running) return this.start(organizationId);
    if (this.store.exclusive) return running.done;
    // It may have read before the latest event was recorded, which a caller now must see: a revoked credential.
    const again = () => this.loading.get(organizationId)?.done ?? this.start(organizationId);
    return (running.next ??= running.done.then(again, again));
  }

  private start(organizationId: string): Promise<LoadedOrganization> {
    const done = this.foldUntilKept(organizationId)
      .catch((error: unknown) => Promise.reject(this.unreadable.refusal(error) as Error))
      .finally(() => this.loading.delete(organizationId));
    this.loading.set(organizationId, { done, next: undefined, isDropped: false });
    return done;
  }

  /** The parent of an organization, or itself: whose share of the cache it uses. Itself if it is not folded. */
  familyOf(organizationId: string): string {
    return this.cache.get(organizationId)?.organization.parentOrganizationId ?? organizationId;
  }

  /** The parent of a sub-organization as it is recorded, whose credentials may be valid in it too; undefined if there is none. */
  parentOf({ parentOrganizationId }: OrganizationView): Promise<LoadedOrganization | undefined> {
    return parentOrganizationId ? this.recorded(parentOrganizationId) : Promise.resolve(undefined);
  }

  /** Keeps the folded state cached, once it is, until the returned function is called: a decision is in progress. */
  hold(organizationId: string): () => void {
    return this.cache.hold(organizationId);
  }

  /** Drops a folded state that may contain events which were never recorded. */
  drop(organizationId: string): void {
    this.forget(organizationId);
    const running = this.loading.get(organizationId);
    if (running) running.isDropped = true;
  }

  private forget(organizationId: string): void {
    const cached = this.cache.get(organizationId);
    // Nothing is remembered about organizations that never existed: anyone can name any number of them.
    if (!cached) return;
    this.dropped.add(organizationId);
    this.cache.delete(organizationId);
    settle(cached);
  }

  /** Number of organizations with an entry besides their folded state. */
  get remembered(): number {
    return new Set([...this.dropped, ...this.copies.keys(), ...this.loading.keys()]).size;
  }

  private async foldUntilKept(organizationId: string): Promise<LoadedOrganization> {
    for (;;) {
      const loaded = await this.catchUp(organizationId, this.cache.get(organizationId));
      const running = this.loading.get(organizationId)!;
      if (!running.isDropped) {
        if (loaded.revision >= 0) this.remember(organizationId, loaded);
        return loaded;
      }
      // If it stayed cached, decisions would be based on events of an append that has lost.
      running.isDropped = false;
    }
  }

  /** Whether its parent has recorded it, and a crash kept its own stream from being written. */
  private async finish(organizationId: string): Promise<boolean> {
    try {
      return (await this.options.children?.finish(organizationId)) ?? false;
    } catch (error) {
      throw foundingRefusal(error) ?? storeUnreadable(error);
    }
  }

  private async catchUp(organizationId: string, cached: LoadedOrganization | undefined): Promise<LoadedOrganization> {
    try {
      return await (cached ? this.folder.onto(organizationId, cached) : this.foldAgain(organizationId));
    } catch (error) {
      // Another writer was first with what is in the place of pending events, or the state is folded in part. A stream that is
      // itself broken fails again.
      if (!(error instanceof UnreadableEvent)) throw error;
      this.forget(organizationId);
      if (!cached) this.copies.delete(organizationId);
      return this.foldAgain(organizationId);
    }
  }

  private async foldAgain(organizationId: string): Promise<LoadedOrganization> {
    const copy = this.copies.get(organizationId);
    const loaded = await (copy
      ? this.folder.onto(organizationId, copyOf(copy))
      : this.folder.fromStart(organizationId));
    const behind = loaded.revision - (copy?.revision ?? -1);
    if (this.dropped.has(organizationId) && behind >= copyAfter) {
      this.copies.set(organizationId, copyOf(loaded));
    }
    return loaded;
  }

  private remember(organizationId: string, loaded: LoadedOrganization): void {
    this.cache.keep(organizationId, loaded);
    const { snapshots, snapshotEvery = worthSnapshot } = this.options;
    const { revision, snapshotRevision, pending } = loaded;
    // Not while an append is in progress: what may never be recorded must not be saved.
    if (!snapshots || revision - snapshotRevision < snapshotEvery || pending.length > 0) return;
    if (snapshots.keep(loaded)) loaded.snapshotRevision = revision;
  }

  private evicted(organizationId: string): void {
    this.copies.delete(organizationId);
    this.dropped.delete(organizationId);
  }
}
