import { organizationStream } from '../domain/organization/organization.js';
import { eventRuns } from '../ledger/event-runs.js';
import type { EventReader } from '../ledger/event-store.js';
import { packEvents, type PackedEvents } from '../read-models/packed-events.js';

/**
 * Hands the events of an organization to a thread, some at a time, until it says anything else than to go on.
 * @param upTo the last revision that is handed over; by default, that of the stream
 * @param turn is awaited between two runs of events: others may have theirs
 * @param most events at a time, at most the usual number
 * @returns what the thread said instead; undefined at the end of the stream
 */
export async function handEvents<Said extends { readonly kind: string }>(
  store: Pick<EventReader, 'read'>,
  { organizationId, ...runs }: { organizationId: string; from?: number; upTo?: number; most?: number },
  turn: () => Promise<void> | undefined,
  say: (events: PackedEvents) => Promise<Said>,
): Promise<Exclude<Said, { readonly kind: 'go-on' }> | undefined> {
  const isOther = (said: Said): said is Exclude<Said, { readonly kind: 'go-on' }> => said.kind !== 'go-on';
  for await (const { events } of eventRuns(store, organizationStream(organizationId), runs)) {
    if (events.length === 0) continue;
    const packed = packEvents(events);
    await turn();
    const said = await say(packed);
    if (isOther(said)) return said;
  }
  return undefined;
}
