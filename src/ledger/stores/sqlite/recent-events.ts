import type { RecordedEvent } from '../../event-store.js';
import type { StoredEvent } from '../../stored-event.js';
import { eventsAfter } from '../feed.js';

/** Just committed events kept for the feeds that have caught up, so that those need not read them from disk. */
const MAX_RECENT = 1_024;
/** Larger events (UTF-16 units of text) are read from disk instead, which bounds the memory of the above. */
const MAX_RECENT_TEXT = 16 * 1024;

/** The last events that were committed, as far back as is kept. */
export class RecentEvents {
  /** Everything recorded after `#after`. */
  #events: StoredEvent[] = [];
  #after = 0n;

  /** Begins anew after a position. */
  begin(after: bigint): void {
    this.#events = [];
    this.#after = after;
  }

  /** @param fields id, type, data and metadata text of each event of the append */
  keep(stream: string, fields: readonly string[], lastRevision: number, lastPosition: number): void {
    const count = fields.length / 4;
    for (let index = 0; index < count; index++) {
      const [id = '', type = '', data = '', metadata = ''] = fields.slice(4 * index, 4 * index + 4);
      const behind = count - 1 - index;
      const position = BigInt(lastPosition - behind);
      if (data.length + metadata.length > MAX_RECENT_TEXT) this.begin(position);
      else this.#events.push({ stream, revision: lastRevision - behind, position, id, type, data, metadata });
    }
    if (this.#events.length > 2 * MAX_RECENT) {
      this.#after = this.#events[this.#events.length - MAX_RECENT - 1]?.position ?? this.#after;
      this.#events = this.#events.slice(-MAX_RECENT);
    }
  }

  /** Forgets a stream that was deleted. */
  drop(stream: string): void {
    this.#events = this.#events.filter((event) => event.stream !== stream);
  }

  /** What was recorded after a position; undefined when not all of it is kept. */
  after(position: bigint): readonly RecordedEvent[] | undefined {
    return position >= this.#after ? eventsAfter(this.#events, position) : undefined;
  }
}
