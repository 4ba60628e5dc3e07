import {
  StoreUnavailable,
  WrongRevision,
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type RecordedEvent,
  type SubscribeOptions,
  type Subscription,
} from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { until } from '../e2e/until.js';

/** What happens to one append instead of what the caller hoped for. */
export type Fault = 'unavailable-before' | 'unavailable-after' | 'wrong-revision';

/** An append that was asked for. */
export interface Asked {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
}

/** An event store in memory that a test can hold up, break, and look into. */
export class SteeredStore implements EventStore {
  /** Every append that was asked for, in order. */
  readonly asked: Asked[] = [];
  /** The fault of the append with that number, counted from 0. */
  readonly faults = new Map<number, Fault>();
  /** Faults of appends that are repeated: by the id of their first event. */
  readonly #repeated = new Map<string, Fault>();
  readonly #twice = new Set<number>();
  isUnreadable = false;
  /** Changes what readers of streams get to see. */
  tamper: (event: RecordedEvent) => RecordedEvent = (event) => event;
  #holding: ((stream: string) => boolean) | undefined;
  #gate: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;
  /** How many reads have what they give, and wait until they may give it. */
  heldReads = 0;
  /** Runs before each append that is asked for, so that another writer can be first. */
  overtake: (stream: string) => Promise<void> = () => Promise.resolve();
  #reading: Promise<void> | undefined;
  #openReads: () => void = () => undefined;

  /** With `exclusive: false` others may write to the same store, as with a cluster. */
  constructor(
    readonly inner: EventStore = new InMemoryEventStore(),
    readonly exclusive = true,
  ) {}

  /** The events of every append to a stream, by their types. */
  typesAsked(stream: string): string[][] {
    return this.asked.filter((one) => one.stream === stream).map(({ events }) => events.map(({ type }) => type));
  }

  /** Resolves when so many appends have been asked for. */
  async until(count: number): Promise<void> {
    await until(`${count} appends are asked for`, () => this.asked.length >= count);
  }

  /** The append with that number fails, and so does its repetition. */
  failTwice(number: number, fault: Fault): void {
    this.faults.set(number, fault);
    this.#twice.add(number);
  }

  /** From now on appends, to those streams, wait until `release`. */
  hold(streams: (stream: string) => boolean = () => true): void {
    this.#holding = streams;
    this.#gate = new Promise((resolve) => (this.#open = resolve));
  }

  release(): void {
    this.#holding = undefined;
    this.#open();
  }

  /** From now on reads look at the stream when they are asked, and give what they saw after `releaseReads`. */
  holdReads(): void {
    this.#reading = new Promise((resolve) => (this.#openReads = resolve));
  }

  releaseReads(): void {
    this.#reading = undefined;
    this.#openReads();
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    const number = this.asked.length;
    const { id } = events[0]!;
    const fault = this.faults.get(number) ?? this.#repeated.get(id);
    this.#repeated.delete(id);
    if (fault && this.#twice.has(number)) this.#repeated.set(id, fault);
    this.asked.push({ stream, events, expected });
    if (this.#holding?.(stream)) await this.#gate;
    await this.overtake(stream);
    if (fault === 'unavailable-before') throw new StoreUnavailable('no answer, nothing written');
    if (fault === 'wrong-revision') throw new WrongRevision(stream, expected, 'no-stream');
    const appended = await this.inner.append(stream, events, expected);
    if (fault === 'unavailable-after') throw new StoreUnavailable('no answer, everything written');
    return appended;
  }

  async *read(stream: string, from?: number): AsyncIterable<RecordedEvent> {
    if (this.isUnreadable) throw new StoreUnavailable('no answer to a read');
    if (!this.#reading) {
      for await (const event of this.inner.read(stream, from)) yield this.tamper(event);
      return;
    }
    const seen: RecordedEvent[] = [];
    for await (const event of this.inner.read(stream, from)) seen.push(event);
    this.heldReads += 1;
    await this.#reading;
    this.heldReads -= 1;
    for (const event of seen) yield this.tamper(event);
  }

  async last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    if (this.isUnreadable) throw new StoreUnavailable('no answer to a read');
    return (await this.inner.last(stream, most)).map(this.tamper);
  }

  subscribe(options: SubscribeOptions): Subscription {
    return this.inner.subscribe(options);
  }

  head(): Promise<bigint | undefined> {
    return this.inner.head();
  }

  delete(stream: string): Promise<void> {
    return this.inner.delete(stream);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
