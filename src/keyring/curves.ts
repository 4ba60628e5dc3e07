import { createECDH, ECDH } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { invalidField } from '../domain/errors.js';
import type { Curve } from '../domain/key-formats.js';
import { CURVE_ORDER, subtract, type EcdsaCurve } from './curve-orders.js';
import { publicKeyOfEd25519 } from './ed25519.js';
import { chosenSecp256k1 } from './secp256k1.js';

const OPENSSL_NAME: Readonly<Record<EcdsaCurve, string>> = {
  CURVE_SECP256K1: 'secp256k1',
  CURVE_P256: 'prime256v1',
};

const PRIVATE_KEY_LENGTH = 32;
const ZERO = new Uint8Array(PRIVATE_KEY_LENGTH);

/**
 * Refuses, with INVALID_ARGUMENT naming `title`, what is not a private key: 32 bytes; on the ECDSA curves a scalar from
 * 1 to the order less one (SEC 1, section 3.2.1), on Ed25519 any seed (RFC 8032, section 5.1.5). Never quotes it.
 */
export function checkPrivateKey(curve: Curve, privateKey: Uint8Array, title = 'privateKey'): void {
  if (privateKey.length !== PRIVATE_KEY_LENGTH) {
    throw invalidField(title, `a private key has 32 bytes, this one has ${privateKey.length}`);
  }
  if (curve !== 'CURVE_ED25519' && !isScalar(curve, privateKey)) {
    throw invalidField(title, `the private key is zero or not below the order of ${curve}`);
  }
}

/** Whether 32 bytes, read big-endian, are a private key of the curve: not zero and below the order. */
export function isScalar(curve: EcdsaCurve, bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, ZERO) !== 0 && Buffer.compare(bytes, CURVE_ORDER[curve]) < 0;
}

/**
 * Adds a private key to 32 bytes in place, modulo the order (BIP-32, "Private parent key to private child key").
 * Returns false if those bytes are not below the order, or the sum is zero: then they are not a key. Works on bytes,
 * because a bigint of a secret could not be wiped.
 */
export function addToScalar(curve: EcdsaCurve, scalar: Uint8Array, privateKey: Uint8Array): boolean {
  const order = CURVE_ORDER[curve];
  if (Buffer.compare(scalar, order) >= 0) return false;
  let carry = 0;
  for (let position = 31; position >= 0; position--) {
    const sum = scalar[position]! + privateKey[position]! + carry;
    scalar[position] = sum & 0xff;
    carry = sum >> 8;
  }
  if (carry === 1 || Buffer.compare(scalar, order) >= 0) subtract(scalar, order);
  return isScalar(curve, scalar);
}

/**
 * A new private key, 32 bytes, by rejecting values that are not below the order (FIPS 186-5, A.2.2), which keeps it
 * unbiased; on Ed25519 the random bytes themselves. Rejected bytes are wiped; the caller wipes the key.
 */
export function generatePrivateKey(curve: Curve, randomBytes: (length: number) => Uint8Array): Buffer {
  for (;;) {
    const drawn = randomBytes(PRIVATE_KEY_LENGTH);
    if (drawn.length !== PRIVATE_KEY_LENGTH) throw new Error('the source of randomness did not return 32 bytes');
    const candidate = Buffer.from(drawn);
    drawn.fill(0);
    if (curve === 'CURVE_ED25519' || isScalar(curve, candidate)) return candidate;
  }
}

/**
 * The public key of a private one: the compressed SEC1 point (33 bytes; SEC 1, section 2.3.3), or the 32 bytes of
 * RFC 8032 for Ed25519. Throws like `checkPrivateKey`.
 */
export function publicKeyOf(curve: Curve, privateKey: Uint8Array): Buffer {
  checkPrivateKey(curve, privateKey);
  if (curve === 'CURVE_ED25519') return publicKeyOfEd25519(privateKey);
  if (curve === 'CURVE_SECP256K1') return Buffer.from(chosenSecp256k1().library.publicKeyOf(privateKey));
  const ecdh = createECDH(OPENSSL_NAME[curve]);
  ecdh.setPrivateKey(privateKey);
  return Buffer.from(ecdh.getPublicKey('hex', 'compressed'), 'hex');
}

/**
 * Parses a public key from hex, in either letter case, without 0x: compressed (66 digits) or uncompressed (130) point,
 * 64 digits for Ed25519. Returns the compressed point or the Ed25519 bytes. Throws INVALID_ARGUMENT naming `title` for
 * anything else: hybrid points (06, 07), points off the curve, Ed25519 keys that are not canonical or have small order.
 */
export function parsePublicKey(curve: Curve, hex: string, title = 'publicKey'): Buffer {
  if (hex.length > 130) throw invalidField(title, `a public key of ${hex.length} characters is too long`);
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(hex)) {
    throw invalidField(title, `\`${hex}\` is not hex: send pairs of hex digits without a 0x prefix`);
  }
  const bytes = Buffer.from(hex, 'hex');
  if (curve === 'CURVE_ED25519') {
    checkEd25519PublicKey(bytes, hex, title);
    return bytes;
  }
  const isCompressed = bytes.length === 33 && (bytes[0] === 2 || bytes[0] === 3);
  const isUncompressed = bytes.length === 65 && bytes[0] === 4;
  if (!isCompressed && !isUncompressed) {
    throw invalidField(
      title,
      `\`${hex}\` is not a SEC1 point: send 33 bytes beginning with 02 or 03, or 65 beginning with 04`,
    );
  }
  try {
    return convert(curve, bytes, 'compressed');
  } catch {
    throw invalidField(title, `\`${hex}\` is not a point on ${curve}`);
  }
}

/** The uncompressed form (65 bytes) of a compressed point as `publicKeyOf` gives it (SEC 1, section 2.3.3). */
export function uncompressPublicKey(curve: EcdsaCurve, publicKey: Uint8Array): Buffer {
  if (curve === 'CURVE_SECP256K1') return Buffer.from(chosenSecp256k1().library.uncompress(publicKey));
  return convert(curve, publicKey, 'uncompressed');
}

function convert(curve: EcdsaCurve, point: Uint8Array, form: 'compressed' | 'uncompressed'): Buffer {
  return Buffer.from(ECDH.convertKey(point, OPENSSL_NAME[curve], undefined, 'hex', form) as string, 'hex');
}

function checkEd25519PublicKey(bytes: Uint8Array, hex: string, title: string): void {
  if (bytes.length !== 32) {
    throw invalidField(title, `\`${hex}\` is ${bytes.length} bytes long: an Ed25519 public key has 32`);
  }
  let isSmallOrder: boolean;
  try {
    isSmallOrder = ed25519.Point.fromBytes(bytes, false).isSmallOrder();
  } catch {
    throw invalidField(title, `\`${hex}\` is not a canonical encoding of a point on CURVE_ED25519`);
  }
  // For such a key there are signatures that fit any message, so it identifies nobody.
  if (isSmallOrder) throw invalidField(title, `\`${hex}\` is a point of small order, which is not a valid key`);
}
