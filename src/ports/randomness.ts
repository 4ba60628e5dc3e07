/** Cryptographically secure bytes; a seeded source in tests. */
export interface Randomness {
  bytes(count: number): Uint8Array;
  /** It has a seed: what is made of the same input has to be the same again, signatures too. */
  readonly isSeeded?: true;
}

export const RANDOMNESS = Symbol('Randomness');
