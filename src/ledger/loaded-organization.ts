import type { ActivityEvent } from '../domain/activity/events.js';
import { emptyOrganization, evolve, type Organization } from '../domain/organization/organization.js';
import { BrokenChain, GENESIS_HASH, verifyChain, type EventMetadata } from './chain.js';
import type { RecordedEvent } from './event-store.js';
import { readEvent, type ReadEvent } from './read-event.js';
import { lastTime, noteTime } from './recorded-time.js';
import { keptUnrecorded } from './store-refusals.js';

/** A folded organization with what the next append needs. `revision` is -1 for an organization that does not exist. */
export interface LoadedOrganization {
  readonly organization: Organization;
  revision: number;
  /** Chain hash of the last event. */
  hash: string;
  /** Position of the last event. */
  position: bigint;
  /**
   * Hashes of the state's last events whose append is still unanswered: they may never be recorded, and another
   * writer's may be in their place.
   */
  readonly pending: string[];
  /** Fingerprints of the latest requests, with their activities. The read model knows the older ones. */
  readonly recent: Map<string, { readonly activityId: string; position: bigint }>;
  /** Position up to which fingerprints are not in `recent` because they were left out of a snapshot; absent if none were. */
  coveredTo?: bigint;
  /** Revision of the latest snapshot that this was loaded from or saved to; -1 for none. */
  snapshotRevision: number;
}

/** A fold in progress. */
export interface Loading {
  readonly done: Promise<LoadedOrganization>;
  /** The fold after it, once someone waits for that. */
  next: Promise<LoadedOrganization> | undefined;
  /** The state that it continues from was dropped. */
  isDropped: boolean;
}

export function nothingLoaded(): LoadedOrganization {
  const organization = emptyOrganization();
  const recent: LoadedOrganization['recent'] = new Map();
  return { organization, revision: -1, hash: GENESIS_HASH, position: -1n, pending: [], recent, snapshotRevision: -1 };
}

export function copyOf(loaded: LoadedOrganization): LoadedOrganization {
  const copy = structuredClone(loaded);
  noteTime(copy.organization, lastTime(loaded.organization));
  return copy;
}

/**
 * Notes that an event which the state already contains is recorded.
 * @throws {BrokenChain} if another one was recorded in its place
 */
export function confirm(loaded: LoadedOrganization, { stream, revision, position, metadata }: RecordedEvent): void {
  const { pending } = loaded;
  // The append was answered while this was being read, and took care of everything.
  if (revision <= loaded.revision - pending.length) return;
  if ((metadata as Partial<EventMetadata> | null)?.hash !== pending[0]) {
    throw new BrokenChain(stream, revision, 'another writer has recorded it before the append on its way');
  }
  pending.shift();
  loaded.position = position;
}

/**
 * Applies one recorded event to the folded state, after verifying its place in the hash chain.
 * @param hash its link, if that was verified before
 */
export function apply(loaded: LoadedOrganization, recorded: RecordedEvent, hash?: string): void {
  const event = fold(loaded, recorded, hash);
  noteFingerprint(loaded, event, recorded.position);
}

/**
 * As `apply`, for whoever answers no repeated requests: fingerprints are not noted.
 * @returns the event as readers see it
 */
export function fold(
  loaded: LoadedOrganization,
  recorded: RecordedEvent,
  hash = verifyChain(loaded.hash, recorded),
): ReadEvent {
  loaded.hash = hash;
  const event = readEvent(recorded);
  const { at } = recorded.metadata as EventMetadata;
  evolve(loaded.organization, event, at);
  noteTime(loaded.organization, at, event.type);
  loaded.revision = recorded.revision;
  loaded.position = recorded.position;
  return event;
}

/** Whether events of a type record the fingerprint of a request. */
export function hasFingerprint(type: string): boolean {
  return type === 'ActivitySubmitted' || type === 'ActivityApproved' || type === 'ActivityRejected';
}

/** Keeps an event's fingerprint, so that the same request is recognized when repeated. */
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

/** Drops the fingerprints that the read model includes, up to `checkpoint`. */
export function forgetCovered(loaded: LoadedOrganization, checkpoint: bigint): void {
  for (const [fingerprint, { position }] of loaded.recent) {
    // In recorded order: the first that is not included ends the walk.
    if (position > checkpoint) return;
    loaded.recent.delete(fingerprint);
  }
}

/** How long appends may fail while someone waits for one to be taken, in milliseconds. */
const patienceMs = 5_000;

/** Continuations of those who wait for the pending append of a state. Not in the state, which is copied. */
const waiting = new WeakMap<LoadedOrganization, (() => void)[]>();

/** The append of the pending events was taken, or the state was dropped. */
export function settle(loaded: LoadedOrganization): void {
  for (const goOn of waiting.get(loaded) ?? []) goOn();
  waiting.delete(loaded);
}

/**
 * The state once everything in it is recorded.
 * @param isHeld whether a state was not dropped: nothing settles one that was
 * @throws {CoordinatorError} UNAVAILABLE if appends keep failing; what `load` throws
 */
export async function onceRecorded(
  latest: LoadedOrganization,
  isHeld: (loaded: LoadedOrganization) => boolean,
  load: () => Promise<LoadedOrganization>,
): Promise<LoadedOrganization> {
  const started = performance.now();
  let loaded = latest;
  while (loaded.pending.length > 0) {
    if (performance.now() - started > patienceMs) throw keptUnrecorded(loaded.organization.organizationId);
    if (isHeld(loaded)) await settled(loaded);
    // An append that was taken proves that it was the newest.
    if (loaded.pending.length > 0) loaded = await load();
  }
  return loaded;
}

function settled(loaded: LoadedOrganization): Promise<void> {
  return new Promise((resolve) => {
    const before = waiting.get(loaded);
    if (before) before.push(resolve);
    else waiting.set(loaded, [resolve]);
  });
}
