import { BrokenChain, type EventMetadata } from '../ledger/chain.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { confirm, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { noteTime } from '../ledger/recorded-time.js';
import type { Point } from '../read-models/states.js';
import { isBy } from './points.js';

/** A state that the stream has confirmed, with the last event that it is made of. */
export interface Confirmed {
  readonly loaded: LoadedOrganization;
  readonly event: RecordedEvent;
}

/** Where the states are. */
interface Source {
  /** Undefined when it is of no use. */
  readonly read: (revision: number) => Promise<LoadedOrganization | undefined>;
  /** It is of another history. */
  readonly discard: (revision: number) => Promise<void>;
}

/**
 * Looks for the last of some states that is by a point and belongs to the stream: with the newest first, then by halves, since only
 * the event that a state ends with says when it was. Whoever asks shows it that event.
 */
export class NearestState {
  private readonly revisions: number[];
  private low = 0;
  private high: number;
  private probed: LoadedOrganization | undefined;
  private isFirst = true;
  /** The best so far; the answer once there is no next one. */
  found: Confirmed | undefined;

  /** @param revisions those of the states, the lowest first */
  constructor(
    revisions: readonly number[],
    private readonly point: Point,
    private readonly source: Source,
  ) {
    this.revisions = revisions.filter((revision) => point.by !== 'revision' || revision <= point.revision);
    this.high = this.revisions.length;
  }

  /** The revision of the event to be shown next; undefined when the search is over. */
  async next(): Promise<number | undefined> {
    while (this.low < this.high) {
      const at = this.middle;
      this.probed = await this.source.read(this.revisions[at]!);
      if (this.probed) return this.probed.revision;
      this.pass(at);
    }
    return undefined;
  }

  /** @param event what the stream has at that revision; undefined when it ends before */
  async show(event: RecordedEvent | undefined): Promise<void> {
    const at = this.middle;
    const loaded = this.probed!;
    if (!event || !isConfirmed(loaded, event)) {
      this.pass(at);
      await this.source.discard(loaded.revision);
      return;
    }
    this.isFirst = false;
    if (isBy(this.point, event)) {
      this.found = { loaded, event };
      this.low = at + 1;
    } else {
      this.high = at;
    }
  }

  private get middle(): number {
    return this.isFirst ? this.high - 1 : (this.low + this.high) >>> 1;
  }

  /** It is of no use. */
  private pass(at: number): void {
    this.revisions.splice(at, 1);
    this.high -= 1;
  }
}

/** Whether the stream has the event that the state ends with: otherwise it is of another history, or of one that was changed. */
export function isConfirmed(loaded: LoadedOrganization, event: RecordedEvent): boolean {
  try {
    confirm(loaded, event);
  } catch (error) {
    if (!(error instanceof BrokenChain)) throw error;
    return false;
  }
  noteTime(loaded.organization, (event.metadata as EventMetadata).at);
  return true;
}
