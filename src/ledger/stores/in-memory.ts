import { checkAppend, checkDelete, firstRevision, revisionOf } from './append-rules.js';
import { StoreUnavailable, StreamDeleted, WrongRevision } from '../event-store.js';
import type {
  Appended,
  EventStore,
  ExpectedRevision,
  NewEvent,
  RecordedEvent,
  SubscribeOptions,
  Subscription,
} from '../event-store.js';
import { eventsAfter, Feed } from './feed.js';
import { jsonText, parseEvent } from '../stored-event.js';
import type { StoredEvent } from '../stored-event.js';

/** An event store that loses everything with the process: for tests and for trying things out. */
export class InMemoryEventStore implements EventStore {
  readonly exclusive = true;
  readonly #streams = new Map<string, StoredEvent[]>();
  readonly #deleted = new Set<string>();
  readonly #feeds = new Set<Feed>();
  #all: StoredEvent[] = [];
  #position = 0n;
  #closed = false;

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    checkAppend(stream, events, expected);
    if (this.#deleted.has(stream)) throw new StreamDeleted(stream);

    const recorded = this.#streams.get(stream) ?? [];
    const first = firstRevision(expected);
    const repeated = recorded.slice(first, first + events.length);
    const last = repeated.at(-1);
    if (last !== undefined && events.every(({ id }, index) => id === repeated[index]?.id)) {
      return { revision: last.revision, position: last.position };
    }
    if (recorded.length !== first) throw new WrongRevision(stream, expected, revisionOf(recorded.length));

    // INVARIANT: everything that can fail happens before the first change, so that a batch is written completely or not
    // at all.
    const added = events.map((event, index) => ({
      stream,
      revision: first + index,
      position: this.#position + BigInt(index) + 1n,
      id: event.id,
      type: event.type,
      data: jsonText(event, 'data'),
      metadata: jsonText(event, 'metadata'),
    }));
    for (const event of added) {
      recorded.push(event);
      this.#all.push(event);
    }
    this.#streams.set(stream, recorded);
    this.#position += BigInt(added.length);
    for (const feed of this.#feeds) feed.wake();
    return { revision: first + added.length - 1, position: this.#position };
  }

  async *read(stream: string, from = 0): AsyncIterable<RecordedEvent> {
    this.#checkOpen();
    for (const event of this.#streams.get(stream)?.slice(from) ?? []) yield parseEvent(event);
  }

  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    this.#checkOpen();
    return (this.#streams.get(stream) ?? []).slice(-most).map((event) => parseEvent(event));
  }

  subscribe(options: SubscribeOptions): Subscription {
    this.#checkOpen();
    const feed: Feed = new Feed(
      (after) => eventsAfter(this.#all, after),
      options,
      () => this.#feeds.delete(feed),
    );
    this.#feeds.add(feed);
    return feed;
  }

  async head(): Promise<bigint | undefined> {
    this.#checkOpen();
    return this.#all.at(-1)?.position;
  }

  async delete(stream: string): Promise<void> {
    this.#checkOpen();
    checkDelete(stream);
    this.#streams.delete(stream);
    this.#deleted.add(stream);
    this.#all = this.#all.filter((event) => event.stream !== stream);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#feeds].map((feed) => feed.close()));
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreUnavailable('the event store is closed: open it again');
  }
}
