import { randomFillSync } from 'node:crypto';
import { longestLeadMs } from '../domain/organization/clock-mends.js';
import type { Clock, ClockState } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';

/** A smaller difference is drift, in milliseconds: clocks are constantly corrected a little. */
const driftMs = 5_000;
/** How long a clock that was set further ahead than is adopted at once must run steadily before it is trusted, in milliseconds. */
const steadyMs = 60_000;
/** How much slower time runs while it is ahead of the system clock. */
const slowing = 0.01;
/** Organizations that are remembered as too far ahead. */
const mostAhead = 10_000;

/**
 * The system clock, compared with a monotonic one (security rule R8). A step ahead of at most 30 minutes is adopted at once; a
 * larger one once it has run steadily for a minute. After a step back, and where events were recorded up to 30 minutes ahead,
 * time continues from the last trusted one by the monotonic clock, 1 % slower until the system clock has caught up.
 */
export class SteadyClock implements Clock {
  /** The trusted time of the system clock, as an offset to the monotonic one. */
  private offset: number;
  /** How far recorded events were ahead of that. */
  private lead = 0;
  private observedAt: number;
  private latestGiven = -Infinity;
  private ahead: { readonly offset: number; readonly since: number } | undefined;
  private adopted = { count: 0, last: 0 };
  private readonly organizationsAhead = new Map<string, number>();

  /** Both in milliseconds. */
  constructor(
    private readonly wall: () => number,
    private readonly monotonic: () => number,
  ) {
    this.observedAt = monotonic();
    this.offset = wall() - this.observedAt;
  }

  now(): number {
    this.observe();
    return this.trusted();
  }

  jumped(): number {
    return this.observe();
  }

  latest(): number {
    const jump = this.observe();
    return this.trusted() + jump;
  }

  follow(recordedAt: number, organizationId?: string): boolean {
    this.observe();
    const lead = this.leadOf(recordedAt);
    if (lead <= longestLeadMs) {
      this.lead = Math.max(this.lead, lead);
      return true;
    }
    if (organizationId !== undefined && this.organizationsAhead.size < mostAhead) {
      this.organizationsAhead.set(organizationId, recordedAt);
    }
    return false;
  }

  caughtUp(organizationId: string): void {
    this.organizationsAhead.delete(organizationId);
  }

  state(): ClockState {
    const untrusted = this.observe();
    const now = this.trusted();
    for (const [organizationId, recordedAt] of this.organizationsAhead) {
      if (this.leadOf(recordedAt) <= longestLeadMs) this.organizationsAhead.delete(organizationId);
    }
    const lead = untrusted > 0 ? 0 : now - this.wall();
    return { lead, untrusted, adopted: this.adopted, organizationsAhead: this.organizationsAhead };
  }

  /** How far a time is ahead of the trusted system clock. */
  private leadOf(recordedAt: number): number {
    return recordedAt - this.observedAt - this.offset;
  }

  private trusted(): number {
    const now = Math.round(this.observedAt + this.offset + this.lead);
    return (this.latestGiven = Math.max(this.latestGiven, now));
  }

  /** Follows the system clock as far as it is trusted. Returns by how much it is ahead of that. */
  private observe(): number {
    const elapsed = this.monotonic();
    const slowed = (elapsed - this.observedAt) * slowing;
    this.observedAt = elapsed;
    const offset = this.wall() - elapsed;
    const step = offset - this.offset;
    if (step > longestLeadMs) {
      if (!this.ahead || Math.abs(offset - this.ahead.offset) > driftMs) this.ahead = { offset, since: elapsed };
      if (elapsed - this.ahead.since < steadyMs) return step;
    }
    this.ahead = undefined;
    if (step < -driftMs) {
      this.offset -= Math.min(-step, slowed);
      return 0;
    }
    if (step > driftMs && step <= longestLeadMs) this.adopted = { count: this.adopted.count + 1, last: step };
    this.offset = offset;
    this.lead = Math.max(0, this.lead - slowed - Math.max(0, step));
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
