import {
  StoreUnavailable,
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type RecordedEvent,
  type Subscription,
} from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { Lease } from '../../src/lease/lease.js';
import type { MonotonicTime, Term } from '../../src/lease/lease-term.js';

interface Timer {
  readonly due: number;
  readonly call: () => void;
}

/** Time that passes when a test says so. Between two timers everything that can go on has gone on. */
export class SteppedTime {
  now = 0;
  private readonly timers = new Set<Timer>();

  after(milliseconds: number, call: () => void): () => void {
    const timer = { due: this.now + Math.max(0, milliseconds), call };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  get pending(): number {
    return this.timers.size;
  }

  async pass(milliseconds: number): Promise<void> {
    const end = this.now + milliseconds;
    for (;;) {
      await settle();
      let next: Timer | undefined;
      for (const timer of this.timers) if (timer.due <= end && (!next || timer.due < next.due)) next = timer;
      if (!next) break;
      this.timers.delete(next);
      this.now = Math.max(this.now, next.due);
      next.call();
    }
    this.now = end;
  }

  /** Lets time pass, a little at a time, until something is so; how long that took. */
  async passUntil(isSo: () => boolean, atMost = 600_000): Promise<number> {
    const start = this.now;
    await settle();
    while (!isSo()) {
      if (this.now - start >= atMost) throw new Error(`has not come to be within ${atMost} ms`);
      await this.pass(10);
    }
    return this.now - start;
  }
}

/** Everything here waits for promises only, so that two turns of the loop are enough for whatever can happen. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** What becomes of a call on its way to the store and back. */
export interface Journey {
  /** Milliseconds until it gets there, and until its answer is back. */
  readonly there?: number;
  readonly back?: number;
  readonly lost?: 'request' | 'answer';
}

/** One coordinator: its process, its clocks, and its way to the store that it shares with the others. */
export class Instance implements EventStore, MonotonicTime {
  readonly exclusive: boolean;
  readonly lease: Lease;
  readonly terms: Term[] = [];
  /** What the lease has told, such as `held 0` or `ended 0 taken`. */
  readonly said: string[] = [];
  readonly errors: unknown[] = [];
  /** What happens to its appends; others go through at once. */
  journey: (stream: string, events: readonly NewEvent[]) => Journey = () => ({});
  isCutOff = false;
  /** What its clock counts for each millisecond that passes: 0 in a machine that is suspended. */
  rate: number;
  private countedAt: number;
  private counted: number;
  private stopped: (() => void)[] | undefined;

  constructor(
    readonly holder: string,
    private readonly world: SteppedTime,
    private readonly shared: EventStore,
    options: {
      readonly ttlMs: number;
      readonly work?: (term: Term) => Promise<void>;
      readonly renewalsPerStream?: number;
      readonly exclusive?: boolean;
      /** Where its clocks stand at the start: no two machines agree. */
      readonly clockAt?: number;
      readonly rate?: number;
    },
  ) {
    const { ttlMs, work, renewalsPerStream } = options;
    this.exclusive = options.exclusive ?? false;
    this.rate = options.rate ?? 1;
    this.counted = options.clockAt ?? 0;
    this.countedAt = world.now;
    this.lease = new Lease({
      store: this,
      clock: { now: () => Math.round(1_700_000_000_000 + this.now()) },
      name: 'deliveries',
      holder,
      ttlMs,
      time: this,
      ...(renewalsPerStream === undefined ? {} : { renewalsPerStream }),
      work: (term) => {
        this.terms.push(term);
        return (work ?? untilEnd)(term);
      },
      observer: {
        held: (_, token) => this.said.push(`held ${token}`),
        ended: (_, token, why) => this.said.push(`ended ${token} ${why}`),
        interrupted: (_, error) => this.errors.push(error),
      },
    });
  }

  get term(): Term | undefined {
    return this.terms.at(-1);
  }

  get holds(): boolean {
    return this.term?.isHeld() ?? false;
  }

  now(): number {
    this.counted += (this.world.now - this.countedAt) * this.rate;
    this.countedAt = this.world.now;
    return this.counted;
  }

  setRate(rate: number): void {
    this.now();
    this.rate = rate;
  }

  after(milliseconds: number, call: () => void): () => void {
    const at = this.now() + milliseconds;
    let callOff: () => void = () => undefined;
    let isOff = false;
    const arm = (): void => {
      callOff = this.world.after((at - this.now()) / (this.rate || 1), due);
    };
    const due = (): void => {
      if (isOff) return;
      if (this.stopped) this.stopped.push(due);
      else if (this.now() < at - 1e-6) arm();
      else call();
    };
    arm();
    return () => {
      isOff = true;
      callOff();
    };
  }

  /** The process does nothing until `wake`: what it waits for happens, and it does not notice. */
  stop(): void {
    this.stopped ??= [];
  }

  wake(): void {
    const due = this.stopped ?? [];
    this.stopped = undefined;
    for (const each of due) each();
  }

  async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    const { there, back, lost } = this.journey(stream, events);
    if (there) await new Promise<void>((resolve) => this.world.after(there, resolve));
    if (this.isCutOff || lost === 'request') throw await this.answered(new StoreUnavailable('no answer'));
    try {
      const appended = await this.shared.append(stream, events, expected);
      if (back) await new Promise<void>((resolve) => this.world.after(back, resolve));
      if (lost === 'answer') throw new StoreUnavailable('no answer, but written');
      return await this.answered(appended);
    } catch (error) {
      throw await this.answered(error);
    }
  }

  async *read(stream: string, from?: number): AsyncIterable<RecordedEvent> {
    if (this.isCutOff) throw await this.answered(new StoreUnavailable('no answer to a read'));
    const events: RecordedEvent[] = [];
    for await (const event of this.shared.read(stream, from)) events.push(event);
    await this.answered(undefined);
    yield* events;
  }

  last(stream: string, most: number): Promise<readonly RecordedEvent[]> {
    return this.shared.last(stream, most);
  }

  async delete(stream: string): Promise<void> {
    if (this.isCutOff) throw await this.answered(new StoreUnavailable('no answer to a deletion'));
    await this.shared.delete(stream);
    await this.answered(undefined);
  }

  subscribe(): Subscription {
    throw new Error('a lease does not subscribe');
  }

  head(): Promise<bigint | undefined> {
    return this.shared.head();
  }

  async close(): Promise<void> {
    await this.lease.close();
  }

  private async answered<T>(answer: T): Promise<T> {
    while (this.stopped) {
      const { stopped } = this;
      await new Promise<void>((resolve) => stopped.push(resolve));
    }
    return answer;
  }
}

/** Work that does nothing but end in time. */
export function untilEnd({ signal }: Term): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A store in memory that can say what is in it. */
export class SharedStore extends InMemoryEventStore {
  readonly deleted: string[] = [];
  readonly appended: { readonly stream: string; readonly type: string }[] = [];

  override async append(stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Promise<Appended> {
    const appended = await super.append(stream, events, expected);
    for (const { type } of events) this.appended.push({ stream, type });
    return appended;
  }

  override async delete(stream: string): Promise<void> {
    await super.delete(stream);
    this.deleted.push(stream);
  }

  async events(stream: string): Promise<RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for await (const event of this.read(stream)) events.push(event);
    return events;
  }

  async types(stream: string): Promise<string[]> {
    return (await this.events(stream)).map(({ type }) => type);
  }
}
