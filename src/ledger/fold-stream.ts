import { marksImport } from '../domain/organization/imported.js';
import { organizationStream } from '../domain/organization/organization.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import type { DriverMetrics } from '../ports/driver-metrics.js';
import { BrokenChain, type EventMetadata } from './chain.js';
import type { EventStore } from './event-store.js';
import { apply, confirm, nothingLoaded, type LoadedOrganization } from './loaded-organization.js';
import { noteTime } from './recorded-time.js';
import type { Snapshots } from './snapshots.js';
import { storeUnreadable } from './store-refusals.js';

/** How long a history is folded before others have their turn, in milliseconds. */
const usualTurnMs = 10;

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
        if (loaded.pending.length === 0) return loaded;
        snapshots?.ignore(organizationId, revision, 'the stream ends before it');
      } catch (error) {
        if (!(error instanceof BrokenChain) || error.revision !== revision) throw error;
        snapshots?.ignore(organizationId, revision, error.message);
      }
    }
    return this.onto(organizationId, nothingLoaded());
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
}
