import { sign } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import type { Randomness } from '../ports/randomness.js';
import { CURVE_ORDER, subtract } from './curve-orders.js';
import { checkPrivateKey } from './curves.js';

/** What surrounds the 32 bytes of a key in an `ECPrivateKey` of P-256 without its public part (RFC 5915). */
const [beforeKey, afterKey] = [Buffer.from('30310201010420', 'hex'), Buffer.from('a00a06082a8648ce3d030107', 'hex')];

/**
 * ECDSA over SHA-256 of bytes, low s: r ‖ s, 64 bytes. OpenSSL's nonces are random, so each signature is another one. With
 * seeded randomness noble signs, whose nonces follow from key and bytes (RFC 6979).
 */
export function signBytesP256(
  bytes: Uint8Array,
  privateKey: Uint8Array,
  { isSeeded }: Pick<Randomness, 'isSeeded'>,
): Uint8Array {
  if (isSeeded) return p256.sign(bytes, privateKey, { lowS: true });
  // OpenSSL takes any number.
  checkPrivateKey('CURVE_P256', privateKey);
  const key = Buffer.concat([beforeKey, privateKey, afterKey]);
  try {
    return withLowS(sign('sha256', bytes, { key, format: 'der', type: 'sec1', dsaEncoding: 'ieee-p1363' }));
  } finally {
    key.fill(0);
  }
}

/**
 * ECDSA over a digest of 32 bytes, nonce by RFC 6979, low s: the recovery id, r ‖ s, 65 bytes. By noble, because node:crypto
 * signs no digest that it did not compute itself, and returns no recovery id.
 */
export function signDigestP256(digest: Uint8Array, privateKey: Uint8Array): Uint8Array {
  return p256.sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' });
}

/** The DER form of r ‖ s (RFC 3279, section 2.2.3). */
export function derOfP256(signature: Uint8Array): Buffer {
  return Buffer.from(p256.Signature.fromBytes(signature).toBytes('der'));
}

/** Of s and n − s, either of which fits, the lower one. */
function withLowS(signature: Buffer): Buffer {
  const s = signature.subarray(32);
  const other = Buffer.from(CURVE_ORDER.CURVE_P256);
  subtract(other, s);
  if (other.compare(s) < 0) other.copy(s);
  return signature;
}
