import {
  checkAppend,
  checkDelete,
  deepFreeze,
  firstRevision,
  jsonText,
  revisionOf,
  streamDeleted,
} from './append-rules.js';
import { StoreUnavailable, WrongRevision } from './event-store.js';
import type {
  Appended,
  EventStore,
  ExpectedRevision,
  NewEvent,
  RecordedEvent,
  SubscribeOptions,
  Subscription,
} from './event-store.js';
import { eventsAfter, Feed } from './feed.js';

/** An event store that forgets everything with the process: for tests and for trying things out. */
export class InMemoryEventStore implements EventStore {
  readonly exclusive = true;
  readonly #streams = new Map<string, RecordedEvent[]>();
  readonly #deleted = new Set<string>();
  readonly #feeds = new Set<Feed>();
  #all: RecordedEvent[] = [];
  #position = 0n;
  #closed = false;

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    this.#checkOpen();
    checkAppend(stream, events, expected);
    if (this.#deleted.has(stream)) throw streamDeleted(stream);

    const recorded = this.#streams.get(stream) ?? [];
    const first = firstRevision(expected);
    const repeated = recorded.slice(first, first + events.length);
    const last = repeated.at(-1);
    if (last !== undefined && events.every(({ id }, index) => id === repeated[index]?.id)) {
      return { revision: last.revision, position: last.position };
    }
    if (recorded.length !== first) throw new WrongRevision(stream, expected, revisionOf(recorded.length));

    // INVARIANT: everything that can fail is done before the first change, so that a batch is written whole or not.
    const added = events.map((event, index) =>
      record(event, stream, first + index, this.#position + BigInt(index) + 1n),
    );
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
    yield* this.#streams.get(stream)?.slice(from) ?? [];
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

/** The event as it would come back from a disk, and frozen: neither the writer nor a reader can edit the past. */
function record(event: NewEvent, stream: string, revision: number, position: bigint): RecordedEvent {
  return deepFreeze({
    id: event.id,
    type: event.type,
    data: JSON.parse(jsonText(event.data, 'data', event.type)) as unknown,
    metadata: JSON.parse(jsonText(event.metadata, 'metadata', event.type)) as unknown,
    stream,
    revision,
    position,
  });
}
