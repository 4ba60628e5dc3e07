import { maxAheadMs, submitLifeMs } from '../domain/activity/liveness.js';
import { marksImport } from '../domain/organization/imported.js';
import { organizationStream } from '../domain/organization/organization.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import type { DriverMetrics } from '../ports/driver-metrics.js';
import { BrokenChain, type EventMetadata } from './chain.js';
import type { EventStore, RecordedEvent } from './event-store.js';
import {
  apply,
  confirm,
  hasFingerprint,
  noteFingerprint,
  nothingLoaded,
  type LoadedOrganization,
} from './loaded-organization.js';
import { noteTime } from './recorded-time.js';
import type { Snapshots } from './snapshots.js';
import { storeUnreadable } from './store-refusals.js';
import { readEvent, unreadableEvent, type ReadEvent } from './read-event.js';

/** How long a history is folded before others have their turn, in milliseconds. */
const usualTurnMs = 10;
/** Events between two looks at how old they are, the first time; then twice as many each time. */
const firstStep = 500;

export interface FoldOptions {
  /** Where folds start; if absent, each starts with the first event and verifies the whole chain. */
  readonly snapshots?: Snapshots;
  /** How long a history is folded before others have their turn, in milliseconds, default 10. */
  readonly turnMs?: number;
  /** Also loads histories imported for tests; otherwise they cannot be loaded. */
  readonly takesImported?: boolean;
}

/** Folds the streams of organizations, verifying their chains. */
export class StreamFolder {
  constructor(
    private readonly store: EventStore,
    private readonly metrics: Pick<DriverMetrics, 'folded'>,
    private readonly options: FoldOptions,
  ) {}

  /** From the newest snapshot that belongs to the stream, or from the first event. */
  async fromStart(organizationId: string): Promise<LoadedOrganization> {
    const { snapshots } = this.options;
    for await (const snapshot of snapshots?.readable(organizationId) ?? []) {
      const { revision, position } = snapshot;
      try {
        const loaded = await this.onto(organizationId, snapshot, position);
        if (loaded.pending.length === 0) {
          if (!snapshots?.isCovered(loaded)) await this.readFingerprints(organizationId, loaded, revision);
          return loaded;
        }
        snapshots?.ignore(organizationId, revision, 'the stream ends before it');
      } catch (error) {
        if (!(error instanceof BrokenChain) || error.revision !== revision) throw error;
        snapshots?.ignore(organizationId, revision, error.message);
      }
    }
    return this.onto(organizationId, nothingLoaded());
  }

  /**
   * Notes the fingerprints of earlier requests that could still be repeated, from the events up to the snapshot's. A request is
   * refused an hour after its time, which may be minutes ahead of the clock, so earlier events need not be read.
   */
  private async readFingerprints(organizationId: string, loaded: LoadedOrganization, revision: number): Promise<void> {
    const stream = organizationStream(organizationId);
    const timeOf = async (at: number): Promise<number> => {
      for await (const event of this.store.read(stream, at)) {
        readable(event);
        return (event.metadata as EventMetadata).at;
      }
      return -Infinity;
    };
    try {
      const since = (await timeOf(revision)) - submitLifeMs - maxAheadMs;
      let from = revision;
      for (let step = firstStep; from > 0 && (await timeOf(from)) >= since; step *= 2) from = Math.max(0, from - step);
      const later = [...loaded.recent];
      loaded.recent.clear();
      let foldedMs = 0;
      for await (const event of this.store.read(stream, from)) {
        if (event.revision > revision) break;
        if (foldedMs >= (this.options.turnMs ?? usualTurnMs)) {
          foldedMs = 0;
          const turn = thisThread.next(organizationPath(organizationId, loaded.organization.parentOrganizationId));
          if (turn) await turn;
        }
        const started = performance.now();
        if (hasFingerprint(event.type)) noteFingerprint(loaded, readable(event), event.position);
        foldedMs += performance.now() - started;
      }
      for (const [fingerprint, known] of later) loaded.recent.set(fingerprint, known);
    } catch (error) {
      throw storeUnreadable(error);
    }
  }

  /**
   * Applies what was recorded since to a state.
   * @param begin required position of the first event read: that of a snapshot's last event
   */
  async onto(organizationId: string, loaded: LoadedOrganization, begin?: bigint): Promise<LoadedOrganization> {
    const started = performance.now();
    const { turnMs = usualTurnMs } = this.options;
    let events = 0;
    let foldedMs = 0;
    try {
      const from = loaded.revision + 1 - loaded.pending.length;
      for await (const event of this.store.read(organizationStream(organizationId), from)) {
        // A history may be of any length, and its events as large as bodies.
        if (foldedMs >= turnMs) {
          foldedMs = 0;
          const turn = thisThread.next(organizationPath(organizationId, loaded.organization.parentOrganizationId));
          if (turn) await turn;
        }
        const startedAt = performance.now();
        if (marksImport(event) && !this.options.takesImported) {
          throw new Error(`the history of organization \`${organizationId}\` was imported for tests`);
        }
        if (take(loaded, event, begin)) events++;
        foldedMs += performance.now() - startedAt;
      }
    } catch (error) {
      throw storeUnreadable(error);
    }
    if (events > 0) this.metrics.folded((performance.now() - started) / 1000, events);
    return loaded;
  }
}

/**
 * Confirms an event that the state contains already, or applies the next one; returns whether it was the next one.
 * @param begin required position of the first event
 * @throws {UnreadableEvent} after which the state must not be used any more
 */
function take(loaded: LoadedOrganization, event: RecordedEvent, begin: bigint | undefined): boolean {
  try {
    if (event.revision > loaded.revision) {
      apply(loaded, event);
      return true;
    }
    if (begin !== undefined && event.position !== begin) {
      throw new BrokenChain(event.stream, event.revision, `it is at position ${event.position}, not at ${begin}`);
    }
    confirm(loaded, event);
    noteTime(loaded.organization, (event.metadata as EventMetadata).at);
    return false;
  } catch (error) {
    throw unreadableEvent(event, error);
  }
}

/** @throws {UnreadableEvent} */
function readable(event: RecordedEvent): ReadEvent {
  try {
    return readEvent(event);
  } catch (error) {
    throw unreadableEvent(event, error);
  }
}
