import { FairQueue, type QueuePath } from './fair-queue.js';

/** How long one turn may take until it is somebody else's, in milliseconds (security rule R5). */
const usualSliceMs = 20;

interface TurnsOptions {
  readonly sliceMs?: number;
  /** Milliseconds; only differences count. */
  readonly now?: () => number;
  /** Calls once everything that can be read or answered meanwhile was. */
  readonly later?: (call: () => void) => void;
}

/** How much of a slice is wanted. */
interface Wanted {
  /** All of it: one large body, or one large answer, takes as long as a slice may be, or longer. */
  readonly alone?: boolean;
}

interface Waiting extends Wanted {
  readonly resolve: () => void;
}

/**
 * Turns on a thread. Whoever is about to use it for long asks for a turn, and asks again every now and then: as long as the
 * slice lasts and nobody waits, it goes on at once; otherwise it waits for its turn, and the event loop serves whatever
 * else there is first. Work begins where the turn was given, without another `await`: until it has begun, the slice looks
 * unused, and whoever else asks is let in too.
 */
export class Turns {
  readonly #waiting = new FairQueue<Waiting>();
  readonly #sliceMs: number;
  readonly #now: () => number;
  readonly #later: (call: () => void) => void;
  /** When the slice of this turn of the event loop has begun; undefined when there is none. */
  #begunAt: number | undefined;
  #isTaken = false;

  constructor({ sliceMs = usualSliceMs, now = () => performance.now(), later = setImmediate }: TurnsOptions = {}) {
    this.#sliceMs = sliceMs;
    this.#now = now;
    this.#later = later;
  }

  /** How many wait for a turn. */
  get size(): number {
    return this.#waiting.size;
  }

  /** What to wait for before going on; undefined when there is no need to. */
  next(path: QueuePath, { alone = false }: Wanted = {}): Promise<void> | undefined {
    const now = this.#now();
    if (this.#begunAt === undefined) {
      this.#begin(now, alone);
      return undefined;
    }
    const isOpen = !alone && !this.#isTaken && this.#waiting.size === 0;
    if (isOpen && now - this.#begunAt < this.#sliceMs) return undefined;
    return new Promise((resolve) => this.#waiting.push(path, { resolve, alone }));
  }

  #begin(now: number, alone = false): void {
    this.#begunAt = now;
    this.#isTaken = alone;
    this.#later(() => {
      this.#begunAt = undefined;
      const next = this.#waiting.shift();
      if (!next) return;
      this.#begin(this.#now(), next.alone);
      next.resolve();
    });
  }
}

/** Bytes of a body or an answer that has a turn of its own: ten of the largest together would take a second. */
export const largeBody = 64 * 1024;

/** Turns on this thread: it is one, however many coordinators run on it. */
export const thisThread = new Turns();
