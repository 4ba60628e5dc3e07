import { organizationStream } from '../domain/organization/organization.js';
import type { EventReader, RecordedEvent } from '../ledger/event-store.js';
import { packEvents, type PackedEvents } from '../read-models/packed-events.js';

/** Events sent together: this many are read between two checks of who else waits. */
const together = 500;

/**
 * Hands the events of an organization to a thread, some at a time, until it says anything else than to go on.
 * @param upTo the last revision that is handed over; by default, that of the stream
 * @param turn is awaited between two runs of events: others may have theirs
 * @param most events at a time, at most the usual number
 * @returns what the thread said instead; undefined at the end of the stream
 */
export async function handEvents<Said extends { readonly kind: string }>(
  store: Pick<EventReader, 'read'>,
  {
    organizationId,
    from = 0,
    upTo = Infinity,
    most = together,
  }: {
    organizationId: string;
    from?: number;
    upTo?: number;
    most?: number;
  },
  turn: () => Promise<void> | undefined,
  say: (events: PackedEvents) => Promise<Said>,
): Promise<Exclude<Said, { readonly kind: 'go-on' }> | undefined> {
  const isOther = (said: Said): said is Exclude<Said, { readonly kind: 'go-on' }> => said.kind !== 'go-on';
  const atOnce = Math.min(together, most);
  let waiting: RecordedEvent[] = [];
  const hand = async (): Promise<Said> => {
    const events = packEvents(waiting);
    waiting = [];
    await turn();
    return say(events);
  };
  for await (const event of store.read(organizationStream(organizationId), from)) {
    if (event.revision > upTo) break;
    if (waiting.push(event) < atOnce) continue;
    const said = await hand();
    if (isOther(said)) return said;
  }
  if (waiting.length === 0) return undefined;
  const said = await hand();
  return isOther(said) ? said : undefined;
}
