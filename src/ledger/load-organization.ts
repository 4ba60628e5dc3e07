import { CoordinatorError } from '../domain/errors.js';
import { marksImport } from '../domain/organization/imported.js';
import type { ActivityEvent } from '../domain/activity/events.js';
import {
  emptyOrganization,
  evolve,
  organizationStream,
  type Organization,
  type OrganizationView,
} from '../domain/organization/organization.js';
import { BrokenChain, GENESIS_HASH, verifyChain, type EventMetadata } from './chain.js';
import type { EventStore, RecordedEvent } from './event-store.js';
import { upcast } from './upcast.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import type { Children } from '../engine/children.js';
import { lastTime, noteTime } from '../decide/decision-time.js';
import { FoldCache } from './fold-cache.js';
import type { DriverMetrics } from '../ports/engine.js';
import { storeUnreadable } from '../decide/refusals.js';
import type { Snapshots } from './snapshots.js';

/** A folded organization with what the next append needs. `revision` is -1 for an organization that does not exist. */
export interface LoadedOrganization {
  readonly organization: Organization;
  revision: number;
  /** Chain hash of the last event. */
  hash: string;
  /** Position of the last event. */
  position: bigint;
  /**
   * Hashes of the last events of the state whose append was not answered yet: they may never be recorded, and another
   * writer's may stand in their place.
   */
  readonly pending: string[];
  /** Fingerprints of the latest requests, to the activity each belongs to. The read model knows the older ones. */
  readonly recent: Map<string, { readonly activityId: string; position: bigint }>;
  /** Revision of the latest snapshot that this was made from or into; -1 for none. */
  snapshotRevision: number;
}

/** How long a history is folded until others have their turn, in milliseconds. */
const usualTurnMs = 10;

/** Events until a snapshot is worth its file: so many are folded in a fifth of a second (bench/README.md). */
const worthSnapshot = 10_000;
/** A kept copy that is so many events behind is taken anew: between copying the state and reading events twice. */
const copyAfter = 64;

/** A fold that is going on. */
interface Loading {
  readonly done: Promise<LoadedOrganization>;
  /** The fold after it, once somebody waits for that. */
  next: Promise<LoadedOrganization> | undefined;
  /** The state that it goes on from was dropped. */
  isDropped: boolean;
}

export interface LoaderOptions {
  /** Where folds begin; without it each begins with the first event, and verifies the whole chain. */
  readonly snapshots?: Snapshots;
  /** Events after which a snapshot is made, default 10 000. */
  readonly snapshotEvery?: number;
  /** Memory for folded organizations, in bytes, default 256 MiB. */
  readonly cacheBytes?: number;
  /** How long a history is folded until others have their turn, in milliseconds, default 10. */
  readonly turnMs?: number;
  /** Which sub-organizations their parents have recorded; without it none but those that say so themselves. */
  readonly children?: Pick<Children, 'finish' | 'isConfirmed'>;
  /** Also histories that were imported for tests; else they cannot be loaded. */
  readonly takesImported?: boolean;
}

/** Folds streams, and keeps the folded state by revision so that only what is new is read. */
export class OrganizationLoader {
  private readonly cache: FoldCache;
  private readonly loading = new Map<string, Loading>();
  /**
   * Of organizations that other writers write to as well: a copy of recorded events only, which nobody decides on.
   * Whoever had to fold the whole stream after each conflict would lose against the other writer for ever.
   */
  private readonly copies = new Map<string, LoadedOrganization>();
  private readonly dropped = new Set<string>();
  /** Folded sub-organizations of earlier releases that their parents were found to have recorded. */
  private readonly confirmed = new WeakSet<LoadedOrganization>();

  constructor(
    private readonly store: EventStore,
    private readonly metrics: DriverMetrics,
    private readonly options: LoaderOptions = {},
  ) {
    this.cache = new FoldCache((organizationId) => this.evicted(organizationId), options.cacheBytes);
  }

  /**
   * The organization at the head of its stream: with everything that was recorded before this was called, and with what
   * this process has decided since and is about to record.
   * @throws {CoordinatorError} NOT_FOUND ORGANIZATION_NOT_FOUND; UNAVAILABLE when the store cannot be read
   */
  async load(organizationId: string): Promise<LoadedOrganization> {
    let loaded = await this.loadOrEmpty(organizationId);
    if (loaded.revision < 0 && (await this.isFoundedNow(organizationId))) {
      loaded = await this.loadOrEmpty(organizationId);
    }
    if (loaded.revision >= 0 && (this.isItself(loaded) || (await this.isConfirmed(loaded)))) return loaded;
    throw new CoordinatorError('NOT_FOUND', `no organization found with the given ID \`${organizationId}\``, {
      category: 'ORGANIZATION_NOT_FOUND',
    });
  }

  /** Whether its parent has recorded it, and a crash kept its own stream from being written. */
  private async isFoundedNow(organizationId: string): Promise<boolean> {
    try {
      return (await this.options.children?.finish(organizationId)) ?? false;
    } catch (error) {
      throw storeUnreadable(error);
    }
  }

  /** Whether its own stream says that it exists; a deleted one can do nothing, whoever knew it. */
  private isItself(loaded: LoadedOrganization): boolean {
    const { parentOrganizationId, parentRevision, isDeleted } = loaded.organization;
    return (
      parentOrganizationId === undefined || parentRevision !== undefined || isDeleted || this.confirmed.has(loaded)
    );
  }

  private async isConfirmed(loaded: LoadedOrganization): Promise<boolean> {
    try {
      if (!(await this.options.children?.isConfirmed(loaded.organization.organizationId))) return false;
    } catch (error) {
      throw storeUnreadable(error);
    }
    this.confirmed.add(loaded);
    return true;
  }

  private loadOrEmpty(organizationId: string): Promise<LoadedOrganization> | LoadedOrganization {
    const cached = this.cache.get(organizationId);
    if (cached && this.store.exclusive) {
      this.remember(organizationId, cached);
      return cached;
    }
    // Two folds of one stream at once would apply the same events twice to one accumulator.
    const running = this.loading.get(organizationId);
    if (!running) return this.start(organizationId);
    if (this.store.exclusive) return running.done;
    // It may have read before the latest event was recorded, which whoever comes now must see: a revoked credential.
    const again = () => this.loading.get(organizationId)?.done ?? this.start(organizationId);
    return (running.next ??= running.done.then(again, again));
  }

  private start(organizationId: string): Promise<LoadedOrganization> {
    const done = this.foldUntilKept(organizationId).finally(() => this.loading.delete(organizationId));
    this.loading.set(organizationId, { done, next: undefined, isDropped: false });
    return done;
  }

  /** The parent of an organization, or itself: whose share of what is kept in memory it takes. Itself where it is not folded. */
  familyOf(organizationId: string): string {
    return this.cache.get(organizationId)?.organization.parentOrganizationId ?? organizationId;
  }

  /** The parent of a sub-organization, whose credentials may be good in it too; undefined where there is none. */
  async parentOf({ parentOrganizationId }: OrganizationView): Promise<LoadedOrganization | undefined> {
    return parentOrganizationId ? this.load(parentOrganizationId) : undefined;
  }

  /** Keeps the folded state in memory, once it is there, until the returned function is called: somebody decides on it. */
  hold(organizationId: string): () => void {
    return this.cache.hold(organizationId);
  }

  /** Forgets a folded state that may hold events which were never recorded. */
  drop(organizationId: string): void {
    this.forget(organizationId);
    const running = this.loading.get(organizationId);
    if (running) running.isDropped = true;
  }

  private forget(organizationId: string): void {
    // Of what was never there nothing is remembered: anybody can name organizations without end.
    if (this.cache.get(organizationId)) this.dropped.add(organizationId);
    this.cache.delete(organizationId);
  }

  /** Organizations of which something is remembered beside their folded state. */
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
      // Kept after all, it would be decided on: with events of an append that has lost.
      running.isDropped = false;
    }
  }

  private async catchUp(organizationId: string, cached: LoadedOrganization | undefined): Promise<LoadedOrganization> {
    try {
      return await (cached ? this.foldOnto(organizationId, cached) : this.foldAgain(organizationId));
    } catch (error) {
      // Another writer was first with what stands in the place of pending events. A stream that is broken itself breaks
      // again.
      if (!(error instanceof BrokenChain)) throw error;
      this.forget(organizationId);
      if (!cached) this.copies.delete(organizationId);
      return this.foldAgain(organizationId);
    }
  }

  private async foldAgain(organizationId: string): Promise<LoadedOrganization> {
    const copy = this.copies.get(organizationId);
    const loaded = await (copy ? this.foldOnto(organizationId, copyOf(copy)) : this.foldFromStart(organizationId));
    const behind = loaded.revision - (copy?.revision ?? -1);
    if (this.dropped.has(organizationId) && behind >= copyAfter) {
      this.copies.set(organizationId, copyOf(loaded));
    }
    return loaded;
  }

  /** From the newest snapshot that belongs to the stream, or from the first event. */
  private async foldFromStart(organizationId: string): Promise<LoadedOrganization> {
    const { snapshots } = this.options;
    for await (const snapshot of snapshots?.readable(organizationId) ?? []) {
      const { revision, position } = snapshot;
      try {
        const loaded = await this.foldOnto(organizationId, snapshot, position);
        if (loaded.pending.length === 0) return loaded;
        snapshots?.ignore(organizationId, revision, 'the stream ends before it');
      } catch (error) {
        if (!(error instanceof BrokenChain) || error.revision !== revision) throw error;
        snapshots?.ignore(organizationId, revision, error.message);
      }
    }
    return this.foldOnto(organizationId, nothingLoaded());
  }

  /** @param begin position that the event read first must have: that of the last one of a snapshot */
  private async foldOnto(
    organizationId: string,
    loaded: LoadedOrganization,
    begin?: bigint,
  ): Promise<LoadedOrganization> {
    const started = performance.now();
    const { turnMs = usualTurnMs } = this.options;
    let events = 0;
    let foldedMs = 0;
    try {
      const from = loaded.revision + 1 - loaded.pending.length;
      for await (const event of this.store.read(organizationStream(organizationId), from)) {
        // A history may be as long as it likes, and its events as large as bodies are.
        if (foldedMs >= turnMs) {
          foldedMs = 0;
          const turn = thisThread.next(organizationPath(organizationId, loaded.organization.parentOrganizationId));
          if (turn) await turn;
        }
        const begun = performance.now();
        if (event.revision <= loaded.revision) {
          if (begin !== undefined && event.position !== begin) {
            throw new BrokenChain(event.stream, event.revision, `it is at position ${event.position}, not at ${begin}`);
          }
          confirm(loaded, event);
          noteTime(loaded.organization, (event.metadata as EventMetadata).at);
        } else {
          if (marksImport(event) && !this.options.takesImported) {
            throw new Error(`the history of organization \`${organizationId}\` was imported for tests`);
          }
          apply(loaded, event);
          events++;
        }
        foldedMs += performance.now() - begun;
      }
    } catch (error) {
      throw storeUnreadable(error);
    }
    if (events > 0) this.metrics.folded((performance.now() - started) / 1000, events);
    return loaded;
  }

  private remember(organizationId: string, loaded: LoadedOrganization): void {
    this.cache.keep(organizationId, loaded);
    const { snapshots, snapshotEvery = worthSnapshot } = this.options;
    const { revision, snapshotRevision, pending } = loaded;
    // Not while an append is on its way: what may never be recorded must not be kept.
    if (!snapshots || revision - snapshotRevision < snapshotEvery || pending.length > 0) return;
    if (snapshots.keep(loaded)) loaded.snapshotRevision = revision;
  }

  private evicted(organizationId: string): void {
    this.copies.delete(organizationId);
    this.dropped.delete(organizationId);
  }
}

export function nothingLoaded(): LoadedOrganization {
  const organization = emptyOrganization();
  const recent: LoadedOrganization['recent'] = new Map();
  return { organization, revision: -1, hash: GENESIS_HASH, position: -1n, pending: [], recent, snapshotRevision: -1 };
}

function copyOf(loaded: LoadedOrganization): LoadedOrganization {
  const copy = structuredClone(loaded);
  noteTime(copy.organization, lastTime(loaded.organization));
  return copy;
}

/**
 * Takes note that an event which the state has already is recorded.
 * @throws {BrokenChain} when another one was recorded in its place
 */
function confirm(loaded: LoadedOrganization, { stream, revision, position, metadata }: RecordedEvent): void {
  const { pending } = loaded;
  // Answered while this was read: its append has seen to everything.
  if (revision <= loaded.revision - pending.length) return;
  if ((metadata as Partial<EventMetadata> | null)?.hash !== pending[0]) {
    throw new BrokenChain(stream, revision, 'another writer has recorded it before the append on its way');
  }
  pending.shift();
  loaded.position = position;
}

/**
 * Takes one recorded event into the folded state, its place in the hash chain checked.
 * @param hash its link, where that was checked before
 */
export function apply(
  loaded: LoadedOrganization,
  recorded: RecordedEvent,
  hash = verifyChain(loaded.hash, recorded),
): void {
  loaded.hash = hash;
  const event = upcast(recorded);
  const { at } = event.metadata as EventMetadata;
  evolve(loaded.organization, event, at);
  noteTime(loaded.organization, at);
  noteFingerprint(loaded, event, recorded.position);
  loaded.revision = recorded.revision;
  loaded.position = recorded.position;
}

/** Keeps the fingerprint that an event carries, so that the same request is known when it comes again. */
export function noteFingerprint(
  loaded: LoadedOrganization,
  event: { type: string; data: unknown },
  position: bigint,
): void {
  const { type, data } = event as ActivityEvent;
  if (type === 'ActivitySubmitted') loaded.recent.set(data.fingerprint, { activityId: data.activityId, position });
  if (type === 'ActivityApproved' || type === 'ActivityRejected') {
    loaded.recent.set(data.vote.fingerprint, { activityId: data.activityId, position });
  }
}

/** Forgets the fingerprints that the read model covers up to `checkpoint`. */
export function forgetCovered(loaded: LoadedOrganization, checkpoint: bigint): void {
  for (const [fingerprint, { position }] of loaded.recent) {
    // In the order of recording: the first that is not covered ends the walk.
    if (position > checkpoint) return;
    loaded.recent.delete(fingerprint);
  }
}
