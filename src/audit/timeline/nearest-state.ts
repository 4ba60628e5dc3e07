import { BrokenChain, type EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { confirm, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import { noteTime } from '../../ledger/recorded-time.js';
import type { Point } from '../../read-models/states.js';
import { isBy } from './point-reached.js';

/** A state that the stream has confirmed, with the last event that it is made of. */
export interface Confirmed {
  readonly loaded: LoadedOrganization;
  readonly event: RecordedEvent;
}

/** Where the states are, and what the stream has. */
interface Source {
  /** Undefined when it is of no use. */
  readonly read: (revision: number) => Promise<LoadedOrganization | undefined>;
  /** It is of another history. */
  readonly discard: (revision: number) => Promise<void>;
  /** The event at a revision; undefined when the stream ends before. */
  readonly eventAt: (revision: number) => Promise<RecordedEvent | undefined>;
}

/**
 * The last of some states that is by a point and belongs to the stream: looks at the newest first, then by halves, since only the
 * event that a state ends with says when it was.
 * @param revisions those of the states, the lowest first
 */
export async function nearestState(
  revisions: readonly number[],
  point: Point,
  { read, discard, eventAt }: Source,
): Promise<Confirmed | undefined> {
  const left = revisions.filter((revision) => point.by !== 'revision' || revision <= point.revision);
  let [low, high] = [0, left.length];
  let isFirst = true;
  let found: Confirmed | undefined;
  while (low < high) {
    const at = isFirst ? high - 1 : (low + high) >>> 1;
    const loaded = await read(left[at]!);
    const event = loaded && (await eventAt(loaded.revision));
    if (!loaded || !event || !isConfirmed(loaded, event)) {
      if (loaded) await discard(loaded.revision);
      left.splice(at, 1);
      high -= 1;
      continue;
    }
    isFirst = false;
    if (isBy(point, event)) {
      found = { loaded, event };
      low = at + 1;
    } else {
      high = at;
    }
  }
  return found;
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
