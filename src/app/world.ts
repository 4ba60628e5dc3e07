import { randomFillSync } from 'node:crypto';
import type { Clock } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';

/** Minimum difference that counts as a jump rather than drift, in milliseconds. */
const jumpMs = 5_000;
/** How long a clock that was set ahead must run steadily before it is trusted, in milliseconds. */
const steadyMs = 60_000;

/**
 * A clock that is compared with a monotonic one. If set ahead, it is trusted once it has run steadily for a minute:
 * machines sleep, and clocks are corrected. If set back, it is trusted again once it has caught up, or by a new
 * process: what has expired must not become valid again in the meantime.
 */
export class SteadyClock implements Clock {
  /** The trusted offset between the two clocks. */
  private offset: number;
  private ahead: { readonly offset: number; readonly since: number } | undefined;

  /** Both in milliseconds. */
  constructor(
    private readonly wall: () => number,
    private readonly monotonic: () => number,
  ) {
    this.offset = wall() - monotonic();
  }

  now(): number {
    return this.wall();
  }

  jumped(): number {
    const elapsed = this.monotonic();
    const offset = this.wall() - elapsed;
    const jump = offset - this.offset;
    if (Math.abs(jump) <= jumpMs) {
      // Follows drift: both clocks are constantly corrected a little.
      this.offset = offset;
      this.ahead = undefined;
      return 0;
    }
    if (jump < 0) return jump;
    if (!this.ahead || Math.abs(offset - this.ahead.offset) > jumpMs) this.ahead = { offset, since: elapsed };
    if (elapsed - this.ahead.since < steadyMs) return jump;
    this.offset = offset;
    this.ahead = undefined;
    return 0;
  }
}

/** The system's clock. */
export const systemClock: Clock = new SteadyClock(
  () => Date.now(),
  () => performance.now(),
);

/** The system's randomness, fetched in larger pieces: a call into the system costs more than the bytes. */
export function systemRandomness(): Randomness {
  const pool = Buffer.alloc(4096);
  let used = pool.length;
  return {
    bytes(count) {
      if (count > pool.length) return randomFillSync(Buffer.alloc(count));
      if (used + count > pool.length) {
        randomFillSync(pool);
        used = 0;
      }
      const taken = Uint8Array.prototype.slice.call(pool, used, used + count);
      // Bytes that were handed out may become a key; none of them is kept.
      pool.fill(0, used, used + count);
      used += count;
      return taken;
    },
  };
}
