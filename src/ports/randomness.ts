/** Cryptographically secure bytes; a seeded source in tests. */
export interface Randomness {
  bytes(count: number): Uint8Array;
}

export const RANDOMNESS = Symbol('Randomness');
