import type { EventReader, RecordedEvent } from './event-store.js';
import { storedEvent } from './stored-event.js';

/** Most events read between two checks of who else waits. */
const mostEvents = 500;
/** A run ends behind the event that makes it this many characters of JSON: sending them to a thread holds this one up. */
const mostCharacters = 2 ** 20;

/** Events that another thread is handed together. */
export interface EventRun {
  readonly events: readonly RecordedEvent[];
  /** There are no more; if not, there may be none either. */
  readonly isEnd: boolean;
}

/**
 * The events of a stream, as many at a time as another thread is handed together; the last run may be empty.
 * @param most events at a time, at most the usual number
 * @param upTo the last revision that is read; by default, that of the stream
 */
export async function* eventRuns(
  store: Pick<EventReader, 'read'>,
  stream: string,
  { from = 0, upTo = Infinity, most = mostEvents }: { from?: number; upTo?: number; most?: number } = {},
): AsyncGenerator<EventRun> {
  const atOnce = Math.min(mostEvents, most);
  let events: RecordedEvent[] = [];
  let characters = 0;
  for await (const event of store.read(stream, from)) {
    if (event.revision > upTo) break;
    const { data, metadata } = storedEvent(event);
    characters += data.length + metadata.length;
    if (events.push(event) < atOnce && characters < mostCharacters) continue;
    yield { events, isEnd: false };
    [events, characters] = [[], 0];
  }
  yield { events, isEnd: true };
}
