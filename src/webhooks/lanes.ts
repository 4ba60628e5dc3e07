import { organizationPath, type QueuePath } from '../fairness/fair-queue.js';
import { LatestEntries } from '../fairness/latest-entries.js';
import type { WebhookDelivery } from '../read-models/webhooks.js';

/** What is known about an endpoint while delivering to it. */
export interface Lane {
  readonly endpointId: string;
  readonly path: QueuePath;
  /** Ids of the events in flight, see `begin`. */
  readonly busy: Set<string>;
  /** Of these, those that it has not answered soon. */
  readonly late: Set<string>;
  /**
   * The events with an outcome that the rows have yet to show, and its position, once it is recorded: until then they look
   * as if they were waiting.
   */
  readonly settled: Map<string, bigint | undefined>;
  /** What the rows showed as due at `dueAt`, less what has begun since. */
  due: WebhookDelivery[];
  dueAt: number;
  /** It is waiting for its turn. */
  isQueued: boolean;
  /** Its latest response was a success, and was fast; none is late. */
  isProven: boolean;
  failuresInARow: number;
  restUntil: number;
}

/** Endpoints remembered as good while nothing waits for them. */
const mostProven = 10_000;
/** After a failed attempt the whole endpoint rests, for a second at first and a minute at most. */
const shortestRestMs = 1_000;
const longestRestMs = 60_000;

/**
 * Lets an endpoint rest after a failure, twice as long after each in a row. What else fails while it rests had begun before: that is
 * the same outage, and not another failure.
 */
export function rest(lane: Lane, now: number): void {
  lane.due = [];
  if (now < lane.restUntil) return;
  lane.restUntil = now + Math.min(longestRestMs, shortestRestMs * 2 ** lane.failuresInARow);
  lane.failuresInARow += 1;
}

/** Endpoints with something waiting or in flight, or with a rest to take. */
export class Lanes {
  private readonly lanes = new Map<string, Lane>();
  private readonly inFlight = new Set<Lane>();
  /** Those that were good when they had nothing left. Evicting one permits nothing: it has one place until its next response. */
  private readonly proven = new LatestEntries<true>(mostProven);

  of({
    endpointId,
    organizationId,
    parentOrganizationId,
  }: {
    readonly endpointId: string;
    readonly organizationId: string;
    readonly parentOrganizationId: string | undefined;
  }): Lane {
    const known = this.lanes.get(endpointId);
    if (known) return known;
    const lane: Lane = {
      endpointId,
      path: organizationPath(organizationId, parentOrganizationId),
      busy: new Set(),
      late: new Set(),
      settled: new Map(),
      due: [],
      dueAt: 0,
      isQueued: false,
      isProven: this.proven.has(endpointId),
      failuresInARow: 0,
      restUntil: 0,
    };
    this.lanes.set(endpointId, lane);
    return lane;
  }

  /** Those with deliveries in flight: kept, since there may be any number of lanes. */
  busy(): readonly Lane[] {
    return [...this.inFlight];
  }

  /** The delivery of an event is in flight. */
  begin(lane: Lane, eventId: string): void {
    lane.busy.add(eventId);
    this.inFlight.add(lane);
  }

  /** It no longer is; whether it was. */
  end(lane: Lane, eventId: string): boolean {
    const wasInFlight = lane.busy.delete(eventId);
    if (lane.busy.size === 0) this.inFlight.delete(lane);
    return wasInFlight;
  }

  /** The rows include everything up to this position. */
  shown(position: bigint): void {
    for (const { settled } of this.lanes.values()) {
      for (const [eventId, at] of settled) if (at !== undefined && at <= position) settled.delete(eventId);
    }
  }

  /**
   * Of the others with nothing in flight, nothing that the rows have yet to show, no turn to wait for and no rest, only
   * whether they are good is remembered.
   */
  forgetAllBut(withDeliveries: ReadonlySet<string>, now: number): void {
    for (const [endpointId, { busy, settled, isQueued, isProven, restUntil }] of this.lanes) {
      if (withDeliveries.has(endpointId) || busy.size > 0 || settled.size > 0 || isQueued || now < restUntil) continue;
      this.lanes.delete(endpointId);
      if (isProven) this.proven.set(endpointId, true);
      else this.proven.delete(endpointId);
    }
  }
}
