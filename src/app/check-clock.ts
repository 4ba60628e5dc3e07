import { toleranceMs } from '../decide/decision-time.js';
import { bootStream } from '../domain/boots.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import type { Clock } from '../ports/clock.js';
import type { Rows } from '../read-models/database.js';
import { lastProjected } from '../read-models/projector.js';

/**
 * Refuses a clock that is behind what was recorded here: in an organization that has recorded nothing since, what had expired
 * would be valid again. Looks at the last boot, and at the last event in the rows, which one is read of the store.
 * @throws {Error} that says what to do
 */
export async function checkClock(clock: Clock, store: Pick<EventStore, 'read' | 'last'>, rows: Rows): Promise<void> {
  const recorded = [...(await store.last(bootStream, 1)), ...(await lastInRows(store, rows))];
  const last = Math.max(...recorded.map(timeOf));
  const now = clock.now();
  if (last - now <= toleranceMs) return;
  throw new Error(
    `the clock (${new Date(now).toISOString()}) is ${Math.ceil((last - now) / 1000)} s behind what was recorded here ` +
      `(${new Date(last).toISOString()}), and what has expired since would be valid again: set the clock; if it was ahead then, ` +
      'and is right now, start once with CLOCK_WAS_AHEAD=true',
  );
}

async function lastInRows(store: Pick<EventStore, 'read'>, rows: Rows): Promise<readonly RecordedEvent[]> {
  const last = lastProjected(rows);
  if (last) for await (const event of store.read(last.stream, last.revision)) return [event];
  return [];
}

function timeOf({ metadata }: RecordedEvent): number {
  const { at } = (metadata ?? {}) as { readonly at?: unknown };
  return typeof at === 'number' ? at : -Infinity;
}
