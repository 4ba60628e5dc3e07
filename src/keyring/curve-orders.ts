import type { Curve } from '../domain/key-formats.js';

/** The curves that sign with ECDSA: their keys are scalars, their public keys SEC1 points. */
export type EcdsaCurve = Exclude<Curve, 'CURVE_ED25519'>;

/** Order of each group, 32 bytes big-endian (SEC 2, sections 2.4.1 and 2.7.1 / FIPS 186-5). */
export const CURVE_ORDER: Readonly<Record<EcdsaCurve, Uint8Array>> = {
  CURVE_SECP256K1: Buffer.from('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 'hex'),
  CURVE_P256: Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex'),
};

/**
 * Subtracts one number from another in place, both 32 bytes big-endian, modulo 2^256. On bytes, because a bigint of a
 * secret could not be wiped.
 */
export function subtract(from: Uint8Array, amount: Uint8Array): void {
  let borrow = 0;
  for (let position = 31; position >= 0; position--) {
    const difference = from[position]! - amount[position]! - borrow;
    from[position] = difference & 0xff;
    borrow = difference < 0 ? 1 : 0;
  }
}
