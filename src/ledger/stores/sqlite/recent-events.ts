import type { RecordedEvent } from '../../event-store.js';
import type { StoredEvent } from '../../stored-event.js';
import { eventsAfter } from '../feed.js';
import type { AppendCall } from './sqlite-protocol.js';

/** Just committed events kept for the feeds that have caught up, so that those need not read them from disk. */
const MAX_RECENT = 1_024;
/** Their text, in UTF-16 units. */
const MAX_RECENT_TEXT = 2 ** 20;
/** Events with more text are read from disk instead. */
const MAX_TEXT_OF_ONE = 16 * 1024;

/** The last events that were committed, as far back as is kept: up to twice as much as said above, and then half again. */
export class RecentEvents {
  /** Everything recorded after `#after`. */
  #events: StoredEvent[] = [];
  #text = 0;
  #after = 0n;

  /** Begins anew after a position. */
  begin(after: bigint): void {
    this.#events = [];
    this.#text = 0;
    this.#after = after;
  }

  /** @param last position of the last event of the append */
  keep({ stream, first, events }: AppendCall, last: number): void {
    for (const [index, texts] of events.entries()) {
      const position = BigInt(last - events.length + 1 + index);
      const event = { stream, revision: first + index, position, ...texts };
      if (textOf(event) > MAX_TEXT_OF_ONE) {
        this.begin(position);
        continue;
      }
      this.#events.push(event);
      this.#text += textOf(event);
    }
    if (this.#events.length > 2 * MAX_RECENT || this.#text > 2 * MAX_RECENT_TEXT) this.#keepHalf();
  }

  #keepHalf(): void {
    const gone = this.#events.findIndex((event, at) => {
      this.#text -= textOf(event);
      this.#after = event.position;
      return this.#events.length - at - 1 <= MAX_RECENT && this.#text <= MAX_RECENT_TEXT;
    });
    this.#events = this.#events.slice(gone + 1);
  }

  /** Forgets a stream that was deleted. */
  drop(stream: string): void {
    this.#events = this.#events.filter((event) => event.stream !== stream);
    this.#text = this.#events.reduce((sum, event) => sum + textOf(event), 0);
  }

  /** What was recorded after a position; undefined when not all of it is kept. */
  after(position: bigint): readonly RecordedEvent[] | undefined {
    return position >= this.#after ? eventsAfter(this.#events, position) : undefined;
  }
}

function textOf({ data, metadata }: StoredEvent): number {
  return data.length + metadata.length;
}
