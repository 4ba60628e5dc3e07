/** Wall-clock time, milliseconds since the epoch. */
export interface Clock {
  now(): number;
  /** By how many milliseconds it has jumped against a monotonic clock, 0 for none. A simulated clock never does. */
  jumped?(): number;
}

export const CLOCK = Symbol('Clock');
