import { createECDH, hash, randomBytes } from 'node:crypto';
import { FpInvertBatch } from '@noble/curves/abstract/modular.js';
import type { ECDSASignature } from '@noble/curves/abstract/weierstrass.js';
import { p256 } from '@noble/curves/nist.js';
import { withNonce } from './rfc6979.js';

const { Signature } = p256;
const { Fn } = p256.Point;
const { ORDER } = Fn;
const HALF_ORDER = ORDER >> 1n;
const openSsl = createECDH('prime256v1');
const NOBODYS_KEY = Buffer.alloc(32, 1);

/** The numbers of a signature, with recovery id: what is left of noble's object on its way from another thread. */
export type P256Signature = Pick<ECDSASignature, 'r' | 's' | 'recovery'>;

/** A signature whose nonce is still to be inverted: s = (bk)⁻¹ · (bm + bdr). */
interface Begun {
  readonly r: bigint;
  readonly recoveryId: number;
  readonly blindedNonce: bigint;
  readonly blindedSum: bigint;
}

/**
 * ECDSA over digests of 32 bytes with one key, nonces by RFC 6979, low s, with recovery id. Throws for a key that is zero
 * or not below the order. OpenSSL's own signatures have random nonces, and node:crypto cannot ask for those of RFC 6979
 * (docs/adr/0027). No bytes of the key are left. As a bigint it cannot be wiped, nor can a nonce: they stay
 * until they are collected.
 */
export function signAllP256(digests: readonly Uint8Array[], privateKey: Uint8Array): ECDSASignature[] {
  const key = numberIn(privateKey);
  if (!Fn.isValidNot0(key)) throw new Error('a private key is above zero and below the order');
  const blindings = randomScalars(digests.length);
  const begun = digests.map((digest, at) => begin(digest, key, privateKey, blindings[at]!));
  // All nonces for the price of one, which is half of a signature.
  const inverses = FpInvertBatch(
    Fn,
    begun.map(({ blindedNonce }) => blindedNonce),
  );
  return begun.map((one, at) => finish(one, inverses[at]!));
}

/**
 * `privateKey` is the key as bytes: of `key`, more bytes would have to be made. Arithmetic takes a time that depends on
 * the numbers: it never sees a nonce or the key without the random `blinding` as a factor.
 */
function begin(digest: Uint8Array, key: bigint, privateKey: Uint8Array, blinding: bigint): Begun {
  const number = numberIn(digest);
  const message = Fn.create(number);
  return withNonce(privateKey, message === number ? digest : Fn.toBytes(message), (bytes) => {
    const nonce = numberIn(bytes);
    if (!Fn.isValidNot0(nonce)) return undefined;
    // The public key of a private key is its product with the generator.
    openSsl.setPrivateKey(bytes);
    const point = openSsl.getPublicKey();
    const x = numberIn(point, 1);
    const r = Fn.create(x);
    const blindedSum = Fn.create(blinding * message + Fn.mul(blinding, key) * r);
    if (Fn.is0(r) || Fn.is0(blindedSum)) return undefined;
    const recoveryId = (x === r ? 0 : 2) | (point[64]! & 1);
    return { r, recoveryId, blindedNonce: Fn.mul(blinding, nonce), blindedSum };
  });
}

function finish({ r, recoveryId, blindedSum }: Begun, inverse: bigint): ECDSASignature {
  const s = Fn.mul(inverse, blindedSum);
  return s > HALF_ORDER ? new Signature(r, ORDER - s, recoveryId ^ 1) : new Signature(r, s, recoveryId);
}

/** Random numbers from 1 to the order less one, as FIPS 186-5, A.3.2 draws them: one in 2³² is drawn again. */
function randomScalars(count: number): bigint[] {
  const bytes = randomBytes(32 * count);
  return Array.from({ length: count }, (_, at) => {
    let drawn = numberIn(bytes, 32 * at);
    while (!Fn.isValidNot0(drawn)) drawn = numberIn(randomBytes(32));
    return drawn;
  });
}

/** 32 bytes as a number: by hex text it takes twice the time, and leaves the text. */
function numberIn(bytes: Uint8Array, at = 0): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 32);
  const [high, low] = [
    (view.getBigUint64(0) << 64n) | view.getBigUint64(8),
    (view.getBigUint64(16) << 64n) | view.getBigUint64(24),
  ];
  return (high << 128n) | low;
}

/** `signAllP256` of one digest. */
export function signP256(digest: Uint8Array, privateKey: Uint8Array): ECDSASignature {
  return signAllP256([digest], privateKey)[0]!;
}

/** ECDSA over SHA-256 of bytes, nonce by RFC 6979, low s: r ‖ s, 64 bytes. The nonce is forgotten. */
export function signBytesP256(bytes: Uint8Array, privateKey: Uint8Array): Uint8Array {
  try {
    return signP256(hash('sha256', bytes, 'buffer'), privateKey).toBytes('compact');
  } finally {
    forgetNonce();
  }
}

/** Overwrites the last nonce in the memory of OpenSSL: with it and its signature, anybody could compute the key. */
export function forgetNonce(): void {
  openSsl.setPrivateKey(NOBODYS_KEY);
}
