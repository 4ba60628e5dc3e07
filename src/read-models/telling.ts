import { toldEvent, type EventCause, type ListedEvent } from './events.js';
import { unpackEvents, type PackedEvents } from './packed-events.js';
import { mostBytesOfPages, type TextPage } from './pages.js';

/** Events for a page, with their causes in the same order. */
export interface ToTell {
  readonly events: PackedEvents;
  readonly causes: readonly (EventCause | undefined)[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Whose member reads them. */
  readonly readerOrganizationId: string;
}

/** Their page: it ends before it would exceed the size of a response, but has at least one event. */
export function tellEvents({ events, causes, now, readerOrganizationId }: ToTell): TextPage<ListedEvent> {
  const texts: string[] = [];
  let bytes = 0;
  for (const [index, event] of unpackEvents(events).entries()) {
    const text = JSON.stringify(toldEvent(event, causes[index], now, readerOrganizationId));
    bytes += Buffer.byteLength(text) + 1;
    if (texts.length > 0 && bytes > mostBytesOfPages) return { texts, hasMore: true };
    texts.push(text);
  }
  return { texts, hasMore: false };
}
