/** A point in time as query resources carry it (specification, section 2: Timestamp object). */
export interface Timestamp {
  /** Whole seconds since the epoch, decimal. */
  readonly seconds: string;
  /** Nanoseconds within the second, decimal. */
  readonly nanos: string;
}

/** The Timestamp object of a time in milliseconds since the epoch. */
export function timestamp(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1000);
  return { seconds: String(seconds), nanos: String((ms - seconds * 1000) * 1_000_000) };
}
