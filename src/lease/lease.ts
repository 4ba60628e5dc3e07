import { StoreUnavailable, type EventStore } from '../ledger/event-store.js';
import { LeaseRecord } from './lease-record.js';
import { HeldTerm, type MonotonicTime, type Term, type TermEnd } from './lease-term.js';
import type { Clock } from '../ports/clock.js';

/** Events of a lease, for the log and for metrics. */
interface LeaseObserver {
  held(name: string, token: number): void;
  ended(name: string, token: number, why: TermEnd): void;
  /** The store did not respond, or the work failed. The lease continues by itself. */
  interrupted(name: string, error: unknown): void;
}

export interface LeaseOptions {
  readonly store: EventStore;
  /** Wall clock, used only for `at` in the metadata of events. */
  readonly clock: Clock;
  /** What runs once: lower-case letters, digits and dashes, such as `webhook-deliveries`. */
  readonly name: string;
  /** Names this instance for readers of the events, such as host and process id. Need not be unique. */
  readonly holder: string;
  /**
   * How long others wait after the last sign of life before they take the lease, in milliseconds. A term is renewed
   * after a quarter of that, and ends after three quarters without a renewal.
   */
  readonly ttlMs: number;
  /**
   * Runs while the lease is held. Must return soon after the signal, once nothing of it runs any more: until then, this
   * instance does not compete for the lease again. If it returns or fails by itself, others may have the lease for
   * `ttlMs` first.
   */
  readonly work: (term: Term) => Promise<void>;
  readonly observer: LeaseObserver;
  /** Default: the monotonic time of the process. */
  readonly time?: MonotonicTime;
  /** Number of renewals after which a new stream is opened and the old one deleted, default 5000. */
  readonly renewalsPerStream?: number;
}

/** Longest interval between two checks of a lease that another holds, in milliseconds. */
const longestPauseMs = 1_000;

/**
 * Work that only one of the coordinators on a store runs: the holder of the lease runs it, and the others wait until it
 * is released or has shown no sign of life for too long (docs/adr/0023). On an exclusive store there are no others: a
 * term found at startup belongs to a dead process, and no signs of life are written. One object per name in a process.
 */
export class Lease {
  private readonly record: LeaseRecord;
  private readonly time: MonotonicTime;
  private readonly closing = new AbortController();
  private running: Promise<void> | undefined;
  private hasLooked = false;
  /** A term that is not over although nobody works under it: an earlier one of our own, or that of a dead process. */
  private orphanId: string | undefined;
  /** What was known of the lease when it last changed, and when that was. */
  private seen: { readonly changes: number; readonly at: number } | undefined;

  /** @throws {TypeError} if the name or `ttlMs` is invalid */
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

  /** Starts competing for the lease, and works while holding it. */
  start(): void {
    this.running ??= this.run();
  }

  /**
   * Ends the work, then releases the lease so that the next holder need not wait. If the work still runs when its term
   * would have ended anyway, the lease is not released.
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

  /** Checks the lease, and takes it if possible. */
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

  /** Works until the term is over, for whatever reason. */
  private async hold(term: HeldTerm): Promise<void> {
    const { name, observer } = this.options;
    const close = (): void => term.end('released');
    this.closing.signal.addEventListener('abort', close, { signal: term.signal });
    if (this.closing.signal.aborted) close();
    observer.held(name, term.token);
    const idle = this.work(term);
    await this.keep(term);
    observer.ended(name, term.token, term.why!);

    // No other term begins in this process before the work has ended; on closing, it has as long as the term would have
    // lasted.
    await either(idle, this.closing.signal);
    await this.sleep(term.remainingMs(), idle);
    if (idle.aborted && term.why === 'released') await term.release();
  }

  /** Starts the work. The returned signal is raised once nothing of it runs any more. */
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
        // An exclusive store has no renewals, and its delete is meant for secrets: it rewrites the file's log.
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

/** Resolves once one of the signals is raised. */
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
