import { CoordinatorError } from '../domain/errors.js';
import type { Draft, LeaseRecord } from './lease-record.js';

/** Monotonic time of this process, never compared with that of another machine. */
export interface MonotonicTime {
  /** Milliseconds since some moment. */
  now(): number;
  /** Calls once after this many milliseconds; returns a function that cancels. Does not keep the process alive. */
  after(milliseconds: number, call: () => void): () => void;
}

/** Why a term ended: its work returned or the lease was closed; it was not renewed in time; another holder has it. */
export type TermEnd = 'released' | 'expired' | 'taken';

/** One period of holding a lease. */
export interface Term {
  /** Fencing token: greater than that of every earlier term of this lease, whoever held it. */
  readonly token: number;
  /** Aborted at the end of the term. */
  readonly signal: AbortSignal;
  /**
   * Whether the term is still valid, judging by our own time alone: free, and correct even in a process that was
   * stopped and has just woken up, before the signal could be raised.
   */
  isHeld(): boolean;
  /**
   * Resolves if the term is valid by our own time and, a moment ago, by the store. It only checks: what must never
   * happen under an old token is appended to a stream that each new holder advances first.
   * @throws {CoordinatorError} ABORTED if the term is over
   * @throws {StoreUnavailable} if the store does not respond
   */
  assertCurrent(): Promise<void>;
}

/** What a term needs to know about its lease; see `LeaseOptions`. */
interface Terms {
  readonly name: string;
  readonly ttlMs: number;
  readonly renewalsPerStream: number;
  /** Whether nobody else needs to see signs of life. */
  readonly isUnwatched: boolean;
}

/** Fractions of the time to live after which a term is renewed, and after which it ends if it was not. */
const renewAfter = 1 / 4;
/** The rest allows for clocks that run at slightly different rates, and for work that takes a moment to stop. */
const endAfter = 3 / 4;

/**
 * A term of our own. All times count from before a sign of life was sent; others count from when they see it, which is
 * later, so ours ends first.
 */
export class HeldTerm implements Term {
  readonly token: number;
  private readonly ending = new AbortController();
  /** Why it ended, if it has. */
  private reason: TermEnd | undefined;
  private until: number;
  private renewAt: number;
  private callOff: () => void;
  /** A sign of life with an unknown outcome: to be repeated before anything else is written. */
  private unsure: { readonly draft: Draft; readonly since: number } | undefined;

  /** @param since when its start was sent, by `time` */
  constructor(
    private readonly terms: Terms,
    private readonly record: LeaseRecord,
    private readonly time: MonotonicTime,
    token: number,
    since: number,
  ) {
    this.token = token;
    this.until = since + terms.ttlMs * endAfter;
    this.renewAt = since + terms.ttlMs * renewAfter;
    this.callOff = time.after(this.remainingMs(), () => this.end('expired'));
  }

  get signal(): AbortSignal {
    return this.ending.signal;
  }

  /** Why it ended; undefined while it is valid. */
  get why(): TermEnd | undefined {
    return this.reason;
  }

  /** How long it lasts without another sign of life, in milliseconds; 0 once over. */
  remainingMs(): number {
    return Math.max(0, this.until - this.time.now());
  }

  /** Time until a sign of life is due, in milliseconds. */
  renewInMs(): number {
    return Math.max(0, this.renewAt - this.time.now());
  }

  isHeld(): boolean {
    if (this.remainingMs() === 0) this.end('expired');
    return this.reason === undefined;
  }

  async assertCurrent(): Promise<void> {
    if (this.isHeld() && !(await this.record.isLatest(this.token))) this.end('taken');
    // Checked again by time: the response may have taken long.
    if (!this.isHeld()) {
      throw new CoordinatorError(
        'ABORTED',
        `the lease \`${this.terms.name}\` is no longer held under token \`${this.token}\`: stop this work and leave it to the next holder`,
      );
    }
  }

  end(why: TermEnd): void {
    if (this.reason) return;
    this.reason = why;
    this.callOff();
    this.ending.abort();
  }

  /**
   * Gives a sign of life, or finds that the term is over.
   * @throws {StoreUnavailable} if the outcome is unknown; the term remains valid as long as before
   */
  async renew(): Promise<void> {
    const { record, time, terms } = this;
    if (terms.isUnwatched) {
      const since = time.now();
      await record.look();
      const { term } = record;
      this.renewed(term?.token === this.token && !term.isOver, since);
      return;
    }
    const isFull = record.renewalCount >= terms.renewalsPerStream;
    this.unsure ??= { since: time.now(), draft: isFull ? record.moveOn() : record.renew() };
    const { draft, since } = this.unsure;
    const isWritten = await record.write(draft);
    this.unsure = undefined;
    this.renewed(isWritten, since);
  }

  /**
   * Announces that the term is over. Call it once nothing works under the term any more.
   * @throws {StoreUnavailable} if others may have to wait for the time to live
   */
  async release(): Promise<void> {
    if (this.unsure && !(await this.record.write(this.unsure.draft))) return;
    await this.record.write(this.record.release());
  }

  private renewed(isOurs: boolean, since: number): void {
    if (!isOurs) this.end('taken');
    if (this.reason) return;
    this.callOff();
    this.until = since + this.terms.ttlMs * endAfter;
    this.renewAt = since + this.terms.ttlMs * renewAfter;
    this.callOff = this.time.after(this.remainingMs(), () => this.end('expired'));
  }
}
