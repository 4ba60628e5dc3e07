import { randomFillSync } from 'node:crypto';
import type { Clock, Randomness } from './ports.js';

/** The system's clock. */
export const systemClock: Clock = { now: () => Date.now() };

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
      // What was handed out may become a key; nothing of it stays behind.
      pool.fill(0, used, used + count);
      used += count;
      return taken;
    },
  };
}
