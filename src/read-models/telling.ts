import { toldEvent, type EventCause, type OrganizationEventShape } from './events.js';
import { unpackEvents, type PackedEvents } from './packed-events.js';
import { mostBytesOfPages, type Page } from './pages.js';

/** Events to be told, the causes in the same order. */
export interface ToTell {
  readonly events: PackedEvents;
  readonly causes: readonly (EventCause | undefined)[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The page that they make: it ends before it would be larger than an answer may be, with one event at least. */
export function tellEvents({ events, causes, now }: ToTell): Page<OrganizationEventShape> {
  const texts: string[] = [];
  let bytes = 0;
  for (const [index, event] of unpackEvents(events).entries()) {
    const text = JSON.stringify(toldEvent(event, causes[index], now));
    bytes += Buffer.byteLength(text) + 1;
    if (texts.length > 0 && bytes > mostBytesOfPages) return { texts, hasMore: true };
    texts.push(text);
  }
  return { texts, hasMore: false };
}
