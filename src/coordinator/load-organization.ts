import { CoordinatorError } from '../domain/errors.js';
import type { ActivityEvent } from '../domain/activity/events.js';
import {
  emptyOrganization,
  evolve,
  organizationStream,
  type Organization,
  type OrganizationView,
} from '../domain/organization/organization.js';
import { BrokenChain, GENESIS_HASH, verifyChain, type EventMetadata } from '../event-store/chain.js';
import type { EventStore, RecordedEvent } from '../event-store/event-store.js';
import { upcast } from '../event-store/upcast.js';
import type { DriverMetrics } from './ports.js';
import { storeUnreadable } from './refusals.js';

/** A folded organization with what the next append needs. `revision` is -1 for an organization that does not exist. */
export interface LoadedOrganization {
  readonly organization: Organization;
  revision: number;
  /** Chain hash of the last event. */
  hash: string;
  /** Position of the last event. */
  position: bigint;
  /** Fingerprints of the latest requests, to the activity each belongs to. The read model knows the older ones. */
  readonly recent: Map<string, { readonly activityId: string; position: bigint }>;
}

/** Organizations kept folded in memory; the least recently used one goes first. */
const cacheSize = 2_000;
/** A kept copy that is so many events behind is taken anew: between copying the state and reading events twice. */
const copyAfter = 64;

/** Folds streams, and keeps the folded state by revision so that only what is new is read. */
export class OrganizationLoader {
  private readonly cache = new Map<string, LoadedOrganization>();
  private readonly loading = new Map<string, Promise<LoadedOrganization>>();
  /**
   * Of organizations that other writers write to as well: a copy of recorded events only, which nobody decides on.
   * Whoever had to fold the whole stream after each conflict would lose against the other writer for ever.
   */
  private readonly copies = new Map<string, LoadedOrganization>();
  private readonly dropped = new Set<string>();

  constructor(
    private readonly store: EventStore,
    private readonly metrics: DriverMetrics,
  ) {}

  /**
   * The organization at the head of its stream.
   * @throws {CoordinatorError} NOT_FOUND ORGANIZATION_NOT_FOUND; UNAVAILABLE when the store cannot be read
   */
  async load(organizationId: string): Promise<LoadedOrganization> {
    const loaded = await this.loadOrEmpty(organizationId);
    if (loaded.revision < 0) {
      throw new CoordinatorError('NOT_FOUND', `no organization found with the given ID \`${organizationId}\``, {
        category: 'ORGANIZATION_NOT_FOUND',
      });
    }
    return loaded;
  }

  private loadOrEmpty(organizationId: string): Promise<LoadedOrganization> | LoadedOrganization {
    const cached = this.cache.get(organizationId);
    if (cached && this.store.exclusive) {
      this.remember(organizationId, cached);
      return cached;
    }
    // Two folds of one stream at once would apply the same events twice to one accumulator.
    const running = this.loading.get(organizationId);
    if (running) return running;
    const load = this.catchUp(organizationId, cached).finally(() => this.loading.delete(organizationId));
    this.loading.set(organizationId, load);
    return load;
  }

  /** The parent of a sub-organization, whose credentials may be good in it too; undefined where there is none. */
  async parentOf({ parentOrganizationId }: OrganizationView): Promise<OrganizationView | undefined> {
    return parentOrganizationId ? (await this.load(parentOrganizationId)).organization : undefined;
  }

  /** Forgets a folded state that may hold events which were never recorded. */
  drop(organizationId: string): void {
    this.cache.delete(organizationId);
    this.dropped.add(organizationId);
  }

  private async catchUp(organizationId: string, cached: LoadedOrganization | undefined): Promise<LoadedOrganization> {
    try {
      return await (cached ? this.foldOnto(organizationId, cached) : this.foldAgain(organizationId));
    } catch (error) {
      // While an append is on its way the cached state is ahead of the stream, and what another writer has recorded
      // there instead does not follow from it. A stream that is broken itself breaks again.
      if (!(error instanceof BrokenChain)) throw error;
      this.drop(organizationId);
      if (!cached) this.copies.delete(organizationId);
      return this.foldAgain(organizationId);
    }
  }

  private async foldAgain(organizationId: string): Promise<LoadedOrganization> {
    const copy = this.copies.get(organizationId);
    const loaded = await this.foldOnto(organizationId, copy ? structuredClone(copy) : nothingLoaded());
    const behind = loaded.revision - (copy?.revision ?? -1);
    if (this.dropped.has(organizationId) && behind >= copyAfter) {
      this.copies.set(organizationId, structuredClone(loaded));
    }
    return loaded;
  }

  private async foldOnto(organizationId: string, loaded: LoadedOrganization): Promise<LoadedOrganization> {
    const started = performance.now();
    let events = 0;
    try {
      for await (const event of this.store.read(organizationStream(organizationId), loaded.revision + 1)) {
        apply(loaded, event);
        events++;
      }
    } catch (error) {
      throw storeUnreadable(error);
    }
    if (events > 0) this.metrics.folded((performance.now() - started) / 1000, events);
    if (loaded.revision >= 0) this.remember(organizationId, loaded);
    return loaded;
  }

  private remember(organizationId: string, loaded: LoadedOrganization): void {
    this.cache.delete(organizationId);
    this.cache.set(organizationId, loaded);
    if (this.cache.size > cacheSize) {
      const oldest = this.cache.keys().next();
      if (!oldest.done) this.evict(oldest.value);
    }
  }

  private evict(organizationId: string): void {
    this.cache.delete(organizationId);
    this.copies.delete(organizationId);
    this.dropped.delete(organizationId);
  }
}

export function nothingLoaded(): LoadedOrganization {
  return { organization: emptyOrganization(), revision: -1, hash: GENESIS_HASH, position: -1n, recent: new Map() };
}

/** Takes one recorded event into the folded state, its place in the hash chain checked. */
export function apply(loaded: LoadedOrganization, recorded: RecordedEvent): void {
  loaded.hash = verifyChain(loaded.hash, recorded);
  const event = upcast(recorded);
  evolve(loaded.organization, event, (event.metadata as EventMetadata).at);
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
