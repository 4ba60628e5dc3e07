import { FairQueue, type QueuePath } from './fair-queue.js';

/** Longest turn before others get theirs, in milliseconds (security rule R5). */
const usualSliceMs = 20;

interface TurnsOptions {
  readonly sliceMs?: number;
  /** Milliseconds; only differences count. */
  readonly now?: () => number;
  /** Calls back once the event loop has served everything that was pending. */
  readonly later?: (call: () => void) => void;
}

/** How much of a slice is needed. */
interface Wanted {
  /** All of it: one large body or response takes as long as a slice may take, or longer. */
  readonly alone?: boolean;
}

/** A turn for the next step of work on so many bytes or characters; undefined if there is no need to wait for one. */
export type TurnFor = (size: number) => Promise<void> | undefined;

interface Waiting extends Wanted {
  readonly resolve: () => void;
}

/**
 * Turns on a thread. A task that will use the thread for long asks for a turn, and asks again every now and then: while
 * the slice lasts and nobody waits, it continues at once; otherwise it waits for its turn, and the event loop serves
 * everything else first. Start work as soon as the turn is granted, without another `await`: until work starts, the
 * slice looks unused, and others are let in too.
 */
export class Turns {
  readonly #waiting = new FairQueue<Waiting>();
  readonly #sliceMs: number;
  readonly #now: () => number;
  readonly #later: (call: () => void) => void;
  /** When the slice in this turn of the event loop started; undefined if there is none. */
  #begunAt: number | undefined;
  #isTaken = false;
  /** Whether somebody has started to work in this slice without having waited for it. */
  #isJoined = false;

  constructor({ sliceMs = usualSliceMs, now = () => performance.now(), later = setImmediate }: TurnsOptions = {}) {
    this.#sliceMs = sliceMs;
    this.#now = now;
    this.#later = later;
  }

  /** Number of tasks waiting for a turn. */
  get size(): number {
    return this.#waiting.size;
  }

  /** A promise to await before continuing; undefined if there is no need to. */
  next(path: QueuePath, { alone = false }: Wanted = {}): Promise<void> | undefined {
    const now = this.#now();
    if (this.#begunAt === undefined) {
      this.#begin(now, alone);
      this.#isJoined = true;
      return undefined;
    }
    const isOpen = !alone && !this.#isTaken && this.#waiting.size === 0;
    if (isOpen && now - this.#begunAt < this.#sliceMs) {
      this.#isJoined = true;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(path, { resolve, alone }));
  }

  #begin(now: number, alone = false): void {
    this.#begunAt = now;
    this.#isTaken = alone;
    this.#later(() => this.#handOver());
  }

  #handOver(): void {
    if (this.#isJoined) {
      // Work that a socket has brought was done in this very turn of the event loop: its timers come before the next.
      this.#isJoined = false;
      this.#later(() => this.#handOver());
      return;
    }
    this.#begunAt = undefined;
    const next = this.#waiting.shift();
    if (!next) return;
    this.#begin(this.#now(), next.alone);
    next.resolve();
  }
}

/** Size in bytes from which a body or response gets its own turn: ten of the largest together would take a second. */
export const largeBody = 64 * 1024;

/** Turns on this thread: one object, however many coordinators run on it. */
export const thisThread = new Turns();
