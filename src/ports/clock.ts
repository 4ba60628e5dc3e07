/** What a clock has noticed about itself. Times are in milliseconds. */
export interface ClockState {
  /** How far the time of this process is ahead of the system clock. */
  readonly lead: number;
  /** By how much the system clock has stepped ahead, while that is not trusted yet; 0 for none. */
  readonly untrusted: number;
  /** Steps ahead that were adopted at once, and the size of the last one. */
  readonly adopted: { readonly count: number; readonly last: number };
  /** By id: recorded time of the last event of each organization that is too far ahead of this clock to decide there. */
  readonly organizationsAhead: ReadonlyMap<string, number>;
}

/** The time that everything is decided by, milliseconds since the epoch. A simulated clock has `now` only. */
export interface Clock {
  /** The trusted time. It never runs backwards. */
  now(): number;
  /** By how many milliseconds it has stepped ahead, as long as the new time is not trusted; 0 for none. */
  jumped?(): number;
  /** The latest time that it may be: the new one while a step ahead is not trusted yet. */
  latest?(): number;
  /**
   * Continues from a recorded time that is ahead of it. False if that is too far ahead.
   * @param organizationId of the stream in which it was recorded, if it is that of an organization
   */
  follow?(recordedAt: number, organizationId?: string): boolean;
  /** The last event of an organization is not ahead, or no longer. */
  caughtUp?(organizationId: string): void;
  state?(): ClockState;
}

export const CLOCK = Symbol('Clock');
