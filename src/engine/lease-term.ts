import { CoordinatorError } from '../domain/errors.js';
import type { Draft, LeaseRecord } from './lease-record.js';

/** Time as this process measures it: nobody sets it, and it is never compared with that of another machine. */
export interface MonotonicTime {
  /** Milliseconds since some moment. */
  now(): number;
  /** Calls once, in so many milliseconds; returns what calls it off. Keeps no process alive. */
  after(milliseconds: number, call: () => void): () => void;
}

/** Why a term has ended: its work has returned or the lease was closed; it was not renewed in time; another has it. */
export type TermEnd = 'released' | 'expired' | 'taken';

/** One time of holding a lease. */
export interface Term {
  /** Fencing token: greater than that of every earlier term of this lease, whoever held it. */
  readonly token: number;
  /** Aborted at the end of the term. */
  readonly signal: AbortSignal;
  /**
   * Whether the term goes on, by our own time alone: costs nothing, and is right also in a process that was stopped and
   * has just woken up, where the signal could not be given yet.
   */
  isHeld(): boolean;
  /**
   * Resolves when the term goes on by our own time and, a moment ago, by the store. It only asks: what must not happen
   * under an old token at all is appended to a stream that each new holder advances before it does anything else.
   * @throws {CoordinatorError} ABORTED when the term is over
   * @throws {StoreUnavailable} when the store does not answer
   */
  assertCurrent(): Promise<void>;
}

/** What a term needs to know of its lease; see `LeaseOptions`. */
interface Terms {
  readonly name: string;
  readonly ttlMs: number;
  readonly renewalsPerStream: number;
  /** Whether there is nobody who would have to be shown that the holder lives. */
  readonly isUnwatched: boolean;
}

/** Part of the time to live after which a term is renewed, and after which it ends without. */
const renewAfter = 1 / 4;
/** The rest is for clocks that do not run at quite the same rate, and for work that takes a moment to stop. */
const endAfter = 3 / 4;

/**
 * A term of our own. All times count from before a sign of life was sent: others count from when they have seen it, which
 * is later, so that ours is over first.
 */
export class HeldTerm implements Term {
  readonly token: number;
  private readonly ending = new AbortController();
  /** Why it has ended, if it has. */
  private reason: TermEnd | undefined;
  private until: number;
  private renewAt: number;
  private callOff: () => void;
  /** A sign of life that the store may or may not have: to be repeated before anything else is written. */
  private unsure: { readonly draft: Draft; readonly since: number } | undefined;

  /** @param since when its beginning was sent, by `time` */
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

  /** Why it has ended; undefined while it goes on. */
  get why(): TermEnd | undefined {
    return this.reason;
  }

  /** How long it would last without another sign of life, in milliseconds; 0 when that is over. */
  remainingMs(): number {
    return Math.max(0, this.until - this.time.now());
  }

  /** How long until a sign of life is due, in milliseconds. */
  renewInMs(): number {
    return Math.max(0, this.renewAt - this.time.now());
  }

  isHeld(): boolean {
    if (this.remainingMs() === 0) this.end('expired');
    return this.reason === undefined;
  }

  async assertCurrent(): Promise<void> {
    if (this.isHeld() && !(await this.record.isLatest(this.token))) this.end('taken');
    // Once more by time: the answer may have taken long.
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
   * @throws {StoreUnavailable} when it may or may not have been recorded; the term goes on as long as it would have
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
   * Tells the others that it is over. To be called when nothing works under it any more.
   * @throws {StoreUnavailable} when they may have to wait for the time to live
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
