import { createECDH, createHmac, hash, randomBytes } from 'node:crypto';
import { FpInvertBatch } from '@noble/curves/abstract/modular.js';
import { p256 } from '@noble/curves/nist.js';
import { createHmacDrbg } from '@noble/curves/utils.js';

const { Fn } = p256.Point;
const { ORDER } = Fn;
const HALF_ORDER = ORDER >> 1n;
const openSsl = createECDH('prime256v1');
const NOBODYS_KEY = Buffer.alloc(32, 1);

/** A signature whose nonce is still to be inverted: s = (bk)⁻¹ · (bm + bdr). */
interface Begun {
  readonly r: bigint;
  readonly recoveryId: number;
  readonly blindedNonce: bigint;
  readonly blindedSum: bigint;
}

/** Nonces as RFC 6979, section 3.2, makes them, until one can be used. */
const nonces = createHmacDrbg<Begun>(32, 32, (key: Uint8Array, message: Uint8Array) => {
  const mac = createHmac('sha256', key).update(message).digest();
  // Made for this call, with the private key in it.
  message.fill(0);
  return mac;
});

/**
 * ECDSA over digests of 32 bytes with one key, nonces by RFC 6979, low s: for each the recovery id, then r ‖ s, together
 * 65 bytes. Throws for a key that is zero or not below the order. OpenSSL's own signatures have random nonces, and
 * node:crypto cannot ask for those of RFC 6979 (docs/adr/0112). No bytes of the key are left. As a bigint, and
 * as the hex text that one is made from, it cannot be wiped, nor can a nonce: they stay until they are collected.
 */
export function signAllP256(digests: readonly Uint8Array[], privateKey: Uint8Array): Uint8Array[] {
  const key = Fn.fromBytes(privateKey);
  if (Fn.is0(key)) throw new Error('a private key is not zero');
  const blindings = randomScalars(digests.length);
  const begun = digests.map((digest, at) => begin(Fn.create(numberOf(digest)), key, privateKey, blindings[at]!));
  // All nonces for the price of one, which is a third of a signature.
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
function begin(message: bigint, key: bigint, privateKey: Uint8Array, blinding: bigint): Begun {
  const seed = Buffer.concat([privateKey, Fn.toBytes(message)]);
  try {
    return nonces(seed, (bytes) => {
      const nonce = numberOf(bytes);
      try {
        if (!Fn.isValidNot0(nonce)) return undefined;
        // The public key of a private key is its product with the generator.
        openSsl.setPrivateKey(bytes);
      } finally {
        bytes.fill(0);
      }
      const point = openSsl.getPublicKey();
      const x = numberOf(point.subarray(1, 33));
      const r = Fn.create(x);
      const blindedSum = Fn.create(Fn.mul(blinding, message) + Fn.mul(Fn.mul(blinding, key), r));
      if (Fn.is0(r) || Fn.is0(blindedSum)) return undefined;
      const recoveryId = (x === r ? 0 : 2) | (point[64]! & 1);
      return { r, recoveryId, blindedNonce: Fn.mul(blinding, nonce), blindedSum };
    });
  } finally {
    seed.fill(0);
  }
}

function finish({ r, recoveryId, blindedSum }: Begun, inverse: bigint): Uint8Array {
  const s = Fn.mul(inverse, blindedSum);
  const isHigh = s > HALF_ORDER;
  return Buffer.concat([
    Uint8Array.of(isHigh ? recoveryId ^ 1 : recoveryId),
    Fn.toBytes(r),
    Fn.toBytes(isHigh ? ORDER - s : s),
  ]);
}

/** Random numbers from 1 to the order less one, as FIPS 186-5, A.3.2 draws them: one in 2³² is drawn again. */
function randomScalars(count: number): bigint[] {
  const bytes = randomBytes(32 * count);
  return Array.from({ length: count }, (_, at) => {
    let drawn = numberOf(bytes.subarray(32 * at, 32 * (at + 1)));
    while (!Fn.isValidNot0(drawn)) drawn = numberOf(randomBytes(32));
    return drawn;
  });
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`);
}

/** `signAllP256` of one digest. */
export function signP256(digest: Uint8Array, privateKey: Uint8Array): Uint8Array {
  return signAllP256([digest], privateKey)[0]!;
}

/** ECDSA over SHA-256 of bytes, nonce by RFC 6979, low s: r ‖ s, 64 bytes. The nonce is forgotten. */
export function signBytesP256(bytes: Uint8Array, privateKey: Uint8Array): Uint8Array {
  try {
    return signP256(hash('sha256', bytes, 'buffer'), privateKey).subarray(1);
  } finally {
    forgetNonce();
  }
}

/** A signature of `signP256` as DER, hex. */
export function derOf(signature: Uint8Array): string {
  return p256.Signature.fromBytes(signature, 'recovered').toHex('der');
}

/** Overwrites the last nonce in the memory of OpenSSL: with it and its signature, anybody could compute the key. */
export function forgetNonce(): void {
  openSsl.setPrivateKey(NOBODYS_KEY);
}
