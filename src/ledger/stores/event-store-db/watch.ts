import { setTimeout as pause } from 'node:timers/promises';
import { FatalError, type HealthReports } from '../../../ports/health.js';
import { StoreRefused, StoreUnavailable } from '../../event-store.js';
import type { Connection } from './connection.js';
import { isDenied, isSilence, refused, within } from './failures.js';
import type { LogReads } from './log-reads.js';
import type { Seen } from './seen.js';

/** Pause between two checks, and after a failed one, in milliseconds. */
const INTERVAL_MS = 1_000;
const RETRY_MS = 150;
/** How long a connection that has responded before may take for a check, in milliseconds. */
const PATIENCE_MS = 2_000;
/** The same for a new connection: often it leads to the node that has just been given up, until a leader is elected. */
const FIRST_PATIENCE_MS = 1_500;
/** After so many new connections in a row that did not respond, a distant server gets more time. */
const MOST_IMPATIENT = 8;
const LONGEST_PATIENCE_MS = 4_000;
/** An answer that arrived while this process was busy is still in its queue. */
const GRACE_MS = 50;
/** How long the server has not responded when that becomes a condition, in milliseconds. */
export const AWAY_AFTER_MS = 4_000;
/** So many checks in a row must miss an event that was there, with this pause: a deposed leader may speak first. */
const MOST_MISSING = 4;
const MISSING_PAUSE_MS = 700;

export const UNREACHABLE = 'event-store-unreachable';
export const away = 'the event store does not respond: check its servers, the network and EVENT_STORE';
const DENIED = 'event-store-access-denied';

/**
 * Knows in the background whether the server responds, accepts our writes, and still has the last event that this process
 * has seen. Gives up a connection on which nothing is answered any more; the next call asks for the leader again.
 */
export class Watch {
  readonly #connection: Connection;
  readonly #reads: LogReads;
  readonly #seen: Seen;
  readonly #checkTaken: () => Promise<void>;
  readonly #health: HealthReports | undefined;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;
  #alarm: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Why the store cannot be used now. */
  #trouble: StoreUnavailable | undefined;
  /** Why it cannot be used any more. */
  #lost: FatalError | undefined;
  /** Failed checks in a row. */
  #failed = 0;
  /** Checks in a row that have not found the last event seen. */
  #missing = 0;

  /** @param checkTaken rejects if the last append was denied, and still would be */
  constructor(
    connection: Connection,
    reads: LogReads,
    seen: Seen,
    checkTaken: () => Promise<void>,
    health?: HealthReports,
  ) {
    this.#connection = connection;
    this.#reads = reads;
    this.#seen = seen;
    this.#checkTaken = checkTaken;
    this.#health = health;
  }

  start(): void {
    this.#next(INTERVAL_MS);
  }

  /** Resolves when nothing of it is under way any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#alarm);
    for (const name of [UNREACHABLE, DENIED]) this.#health?.clear(name);
    await this.#running;
  }

  /** @throws {StoreUnavailable} if the server does not respond, refuses us, or has lost events */
  checkUsable(): void {
    this.checkNotLost();
    if (this.#trouble) throw this.#trouble;
  }

  /** @throws {StoreUnavailable} if the server has lost events */
  checkNotLost(): void {
    if (this.#lost) throw new StoreUnavailable(this.#lost.message);
  }

  /**
   * Called when the server contradicts what it has said before; resolves once it is certain whether it has lost events.
   * @throws {StoreUnavailable} if it has, or if nobody responds
   */
  async confirm(): Promise<void> {
    await this.#checkNow();
    while (this.#missing > 0 && this.#lost === undefined && !this.#isStopped) {
      await pause(GRACE_MS);
      await this.#running;
    }
    this.checkUsable();
  }

  #next(afterMs: number): void {
    if (this.#isStopped || this.#lost) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#checkNow(), afterMs);
    this.#timer.unref();
  }

  /** One check at a time; those who come meanwhile wait for the same. */
  #checkNow(): Promise<void> {
    this.#running ??= this.#check().finally(() => {
      this.#running = undefined;
      this.#next(this.#missing > 0 ? MISSING_PAUSE_MS : this.#failed > 0 ? RETRY_MS : INTERVAL_MS);
    });
    return this.#running;
  }

  async #check(): Promise<void> {
    const started = performance.now();
    try {
      await this.#inTime(this.#look());
      if (this.#isStopped) return;
      this.#responded();
    } catch (error) {
      if (!this.#isStopped) this.#note(error, started);
    }
  }

  /** @throws {StoreUnavailable} what it says if the last append was denied */
  async #look(): Promise<void> {
    const last = this.#seen.last;
    await this.#reads.advance(this.#seen, (from, count) => this.#reads.pageBackwards(from, count));
    if (last) await this.#lookFor(last);
    this.#missing = 0;
    await this.#checkTaken();
  }

  async #lookFor({ position, id }: { readonly position: bigint; readonly id: string }): Promise<void> {
    if ((await this.#reads.idAt(position)) === id) return;
    this.#missing++;
    throw new StoreUnavailable(
      `the event store does not have the event \`${id}\` at position ${position} any more, which this process has seen there`,
    );
  }

  async #inTime(check: Promise<void>): Promise<void> {
    let isSettled = false;
    const settle = (): void => void (isSettled = true);
    check.then(settle, settle);
    try {
      await within(check, this.#patienceMs());
    } catch (error) {
      if (!isSettled) await pause(GRACE_MS);
      if (!isSettled) throw error;
      await check;
    }
  }

  #patienceMs(): number {
    if (this.#connection.answers.hasResponded) return PATIENCE_MS;
    return this.#failed < MOST_IMPATIENT ? FIRST_PATIENCE_MS : LONGEST_PATIENCE_MS;
  }

  #responded(): void {
    this.#failed = 0;
    this.#trouble = undefined;
    clearTimeout(this.#alarm);
    this.#alarm = undefined;
    this.#connection.answers.responded();
    for (const name of [UNREACHABLE, DENIED]) this.#health?.clear(name);
  }

  #note(error: unknown, started: number): void {
    if (this.#missing > 0 && error instanceof StoreUnavailable) {
      if (this.#missing >= MOST_MISSING) this.#lose(error.message);
      // Another node may be the leader.
      else this.#connection.giveUp(error);
      return;
    }
    if (isDenied(error) || error instanceof StoreRefused) return this.#deny(error);
    if (isSilence(error)) {
      // Others were answered: it is only slow.
      if (this.#connection.answers.respondedAt > started) return;
      this.#connection.giveUp(error);
    }
    this.#failed++;
    this.#connection.answers.missed();
    if (this.#alarm !== undefined || this.#trouble) return;
    this.#alarm = setTimeout(() => this.#raise(), Math.max(0, AWAY_AFTER_MS - this.#connection.answers.silentMs));
    this.#alarm.unref();
  }

  #raise(): void {
    this.#alarm = undefined;
    // Something else was answered in the meantime.
    if (this.#connection.answers.silentMs < AWAY_AFTER_MS) return;
    this.#trouble = new StoreUnavailable(away);
    this.#health?.raise(UNREACHABLE, 'failing', `${away}; requests that need it are refused until it responds`);
  }

  #deny(error: unknown): void {
    this.#connection.answers.responded();
    const denied = error instanceof StoreUnavailable ? error : refused('a read of $all', error);
    this.#trouble = denied;
    this.#health?.raise(DENIED, 'failing', denied.message);
  }

  #lose(what: string): void {
    this.#lost = new FatalError(
      `${what}: a backup was restored, or another server is at its address; acknowledged events may be lost. Stop all ` +
        'coordinators of this store, restore its newest backup, and start them again',
    );
    this.#health?.fail(this.#lost);
  }
}
