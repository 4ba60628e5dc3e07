import { StoreUnavailable, type EventStore } from '../ledger/event-store.js';
import { LeaseRecord } from './lease-record.js';
import { HeldTerm, type MonotonicTime, type Term, type TermEnd } from './lease-term.js';
import type { Clock } from '../ports/clock.js';

/** What a lease tells the outside: for the log and for metrics. */
interface LeaseObserver {
  held(name: string, token: number): void;
  ended(name: string, token: number, why: TermEnd): void;
  /** The store did not answer, or the work has failed. The lease goes on by itself. */
  interrupted(name: string, error: unknown): void;
}

export interface LeaseOptions {
  readonly store: EventStore;
  /** Wall clock, for `at` in the metadata of events and for nothing else. */
  readonly clock: Clock;
  /** What is to run once: lower-case letters, digits and dashes, such as `webhook-deliveries`. */
  readonly name: string;
  /** Who this is, for whoever reads the events: such as host and process id. Need not be unique. */
  readonly holder: string;
  /**
   * How long others wait after the last sign of life before they take the lease, in milliseconds. A term is renewed
   * after a quarter of that, and ends after three quarters without a renewal.
   */
  readonly ttlMs: number;
  /**
   * Runs while the lease is held. It returns when nothing of it runs any more, soon after the signal: until then this
   * instance does not stand again. When it returns or fails by itself, others may have the lease for `ttlMs` first.
   */
  readonly work: (term: Term) => Promise<void>;
  readonly observer: LeaseObserver;
  /** Default: the time of the process. */
  readonly time?: MonotonicTime;
  /** After how many renewals their stream is left for a new one and deleted, default 5000. */
  readonly renewalsPerStream?: number;
}

/** Longest time between two looks at a lease that another holds, in milliseconds. */
const longestPauseMs = 1_000;

/**
 * Work that runs in one place only among all coordinators on a store: whoever holds the lease runs it, the others wait
 * until it is released or its holder has given no sign of life for too long (docs/adr/0017). On an exclusive store there
 * are no others: a term found at the start is a dead process's, and nothing is written to show that one lives. One
 * object for each name in a process.
 */
export class Lease {
  private readonly record: LeaseRecord;
  private readonly time: MonotonicTime;
  private readonly closing = new AbortController();
  private running: Promise<void> | undefined;
  private hasLooked = false;
  /** A term under which nobody works, although it is not over: our own of before, or that of a dead process. */
  private orphanId: string | undefined;
  /** What was known of the lease when something was last seen to happen, and when that was. */
  private seen: { readonly changes: number; readonly at: number } | undefined;

  /** @throws {TypeError} when the name or `ttlMs` cannot be used */
  constructor(private readonly options: LeaseOptions) {
    const { store, clock, name, ttlMs } = options;
    if (!/^[a-z][a-z0-9-]*$/.test(name)) {
      throw new TypeError(`\`${name}\` cannot name a lease: use lower-case letters, digits and dashes`);
    }
    if (!(Number.isFinite(ttlMs) && ttlMs > 0)) {
      throw new TypeError(`the lease \`${name}\` cannot last \`${ttlMs}\` ms: pass a number above 0`);
    }
    this.record = new LeaseRecord(store, clock, name);
    this.time = options.time ?? processTime;
  }

  /** From now on stands for the lease, and works while it holds it. */
  start(): void {
    this.running ??= this.run();
  }

  /**
   * Ends the work, then releases the lease so that the next holder need not wait. Work that still runs when its term
   * would have ended anyway is not waited for, and the lease not released.
   */
  async close(): Promise<void> {
    this.closing.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    const { ttlMs, observer, name } = this.options;
    const pauseMs = Math.min(longestPauseMs, ttlMs / 10);
    while (!signal.aborted) {
      try {
        const term = await this.stand();
        if (!term) {
          await this.sleep(pauseMs, signal);
          continue;
        }
        await this.hold(term);
        if (term.why === 'released') await this.sleep(ttlMs, signal);
      } catch (error) {
        observer.interrupted(name, error);
        await this.sleep(pauseMs, signal);
      }
    }
  }

  /** Looks at the lease, and takes it if it is to be had. */
  private async stand(): Promise<HeldTerm | undefined> {
    const { store, name, holder, ttlMs, renewalsPerStream = 5_000 } = this.options;
    const { record, time } = this;
    await record.look();
    if (!this.hasLooked && store.exclusive) this.orphanId = record.term?.id;
    this.hasLooked = true;
    if (record.changes !== this.seen?.changes) this.seen = { changes: record.changes, at: time.now() };
    if (this.closing.signal.aborted || !this.isFree(this.seen.at)) return undefined;

    if (record.term && !record.term.isOver && !(await record.write(record.expire(holder)))) return undefined;
    const since = time.now();
    const beginning = record.begin(holder, ttlMs);
    this.orphanId = beginning.event.id;
    if (!(await record.write(beginning))) return undefined;
    const terms = { name, ttlMs, renewalsPerStream, isUnwatched: store.exclusive };
    const term = new HeldTerm(terms, record, time, record.term!.token, since);
    if (term.isHeld()) return term;
    throw new StoreUnavailable(`the event store took longer to record a term of the lease \`${name}\` than it lasts`);
  }

  private isFree(seenAt: number): boolean {
    const { term } = this.record;
    if (!term || term.isOver || term.id === this.orphanId) return true;
    return !this.options.store.exclusive && this.time.now() - seenAt >= term.ttlMs;
  }

  /** Works until the term is over, whatever ends it. */
  private async hold(term: HeldTerm): Promise<void> {
    const { name, observer } = this.options;
    const close = (): void => term.end('released');
    this.closing.signal.addEventListener('abort', close, { signal: term.signal });
    if (this.closing.signal.aborted) close();
    observer.held(name, term.token);
    const idle = this.work(term);
    await this.keep(term);
    observer.ended(name, term.token, term.why!);

    // No other term begins in this process before the work has ended; on closing, it has as long as the term would have.
    await either(idle, this.closing.signal);
    await this.sleep(term.remainingMs(), idle);
    if (idle.aborted && term.why === 'released') await term.release();
  }

  /** Starts the work. The signal is given when nothing of it runs any more. */
  private work(term: HeldTerm): AbortSignal {
    const { name, work, observer } = this.options;
    const idle = new AbortController();
    const run = async (): Promise<void> => {
      try {
        if (!term.signal.aborted) await work(term);
      } catch (error) {
        observer.interrupted(name, error);
      }
      idle.abort();
      term.end('released');
    };
    void run();
    return idle.signal;
  }

  /** Gives signs of life until the term is over. */
  private async keep(term: HeldTerm): Promise<void> {
    const { store, name, ttlMs, observer } = this.options;
    for (;;) {
      await this.sleep(term.renewInMs(), term.signal);
      if (!term.isHeld()) return;
      try {
        await term.renew();
        // An exclusive store has no renewals, and deleting there is made for secrets: it rewrites the file's log.
        if (term.isHeld() && !store.exclusive) await this.record.sweep();
      } catch (error) {
        observer.interrupted(name, error);
        await this.sleep(ttlMs / 20, term.signal);
      }
    }
  }

  private sleep(milliseconds: number, until: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        callOff();
        until.removeEventListener('abort', wake);
        resolve();
      };
      const callOff = this.time.after(milliseconds, wake);
      until.addEventListener('abort', wake);
      if (until.aborted) wake();
    });
  }
}

/** Resolves when one of the signals has been given. */
function either(one: AbortSignal, other: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      one.removeEventListener('abort', wake);
      other.removeEventListener('abort', wake);
      resolve();
    };
    one.addEventListener('abort', wake);
    other.addEventListener('abort', wake);
    if (one.aborted || other.aborted) wake();
  });
}

const processTime: MonotonicTime = {
  now: () => performance.now(),
  after(milliseconds, call) {
    const timer = setTimeout(call, milliseconds);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
