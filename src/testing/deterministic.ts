import { createHash } from 'node:crypto';
import type { Clock } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A clock that stands still until it is advanced. */
export class ManualClock implements Clock {
  constructor(private time: number) {}

  /** Milliseconds since the epoch. */
  now(): number {
    return this.time;
  }

  /** Advances by milliseconds, or by text such as `'90s'`, `'15m'`, `'24h'`, `'7d'`. */
  advance(by: number | `${number}${keyof typeof units}`): void {
    this.set(this.time + (typeof by === 'number' ? by : durationMs(by)));
  }

  /**
   * Sets it back by milliseconds, as someone might on a real machine; what was already recorded is then in its future.
   */
  turnBack(by: number | `${number}${keyof typeof units}`): void {
    this.time -= typeof by === 'number' ? by : durationMs(by);
  }

  /** Jumps to a time, forward only: nothing recorded may be in the future. */
  set(time: number | Date): void {
    const ms = typeof time === 'number' ? time : time.getTime();
    if (ms < this.time) throw new RangeError(`the clock is at ${this.time} and cannot go back to ${ms}`);
    this.time = ms;
  }
}

function durationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  if (!match) throw new TypeError(`a duration is a number with ms, s, m, h or d, such as 24h; got \`${text}\``);
  return Math.round(Number(match[1]) * units[match[2] as keyof typeof units]);
}

/** Bytes derived from a seed: SHA-256 of the seed and a counter. For tests only; never use it for real secrets. */
export class SeededRandomness implements Randomness {
  readonly isSeeded = true;
  private counter = 0;
  private rest = Buffer.alloc(0);

  constructor(private readonly seed: string) {}

  bytes(count: number): Uint8Array {
    while (this.rest.length < count) {
      const block = createHash('sha256').update(`${this.seed}\0${this.counter++}`).digest();
      this.rest = Buffer.concat([this.rest, block]);
    }
    const taken = this.rest.subarray(0, count);
    this.rest = this.rest.subarray(count);
    return new Uint8Array(taken);
  }
}
