import { createECDH, createHmac } from 'node:crypto';
import { ecdsa, type WeierstrassPoint } from '@noble/curves/abstract/weierstrass.js';
import { p256 } from '@noble/curves/nist.js';
import { sha256 } from '@noble/hashes/sha2.js';

const { Point } = p256;
const openSsl = createECDH('prime256v1');
const NOBODYS_KEY = Buffer.alloc(32, 1);

/**
 * P-256 of noble, with the generator multiplied by OpenSSL, which is most of the work. OpenSSL's own signatures
 * have random nonces, and node:crypto cannot ask for those of RFC 6979; so all the rest is noble's.
 */
class PointByOpenSsl extends Point {
  // A getter: the property of the class above cannot be assigned to.
  static override get BASE(): WeierstrassPoint<bigint> {
    return generator;
  }

  /** Only for the generator: no other point of this class exists. */
  override multiply(scalar: bigint): WeierstrassPoint<bigint> {
    const bytes = Buffer.from(Point.Fn.toBytes(scalar));
    openSsl.setPrivateKey(bytes);
    bytes.fill(0);
    return Point.fromBytes(openSsl.getPublicKey());
  }
}

const generator = new PointByOpenSsl(Point.BASE.X, Point.BASE.Y, Point.BASE.Z);
const signer = ecdsa(PointByOpenSsl, sha256, {
  hmac: (key: Uint8Array, message: Uint8Array) => createHmac('sha256', key).update(message).digest(),
});

/** ECDSA over a digest of 32 bytes, nonce by RFC 6979, low s: the recovery id, then r ‖ s, together 65 bytes. */
export function signP256(digest: Uint8Array, privateKey: Uint8Array): Uint8Array {
  return signer.sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' });
}

/** ECDSA over SHA-256 of bytes, nonce by RFC 6979, low s: r ‖ s, 64 bytes. The nonce is forgotten. */
export function signBytesP256(bytes: Uint8Array, privateKey: Uint8Array): Uint8Array {
  try {
    return signer.sign(bytes, privateKey, { prehash: true, lowS: true, format: 'compact' });
  } finally {
    forgetNonce();
  }
}

/** A signature of `signP256` as DER, hex. */
export function derOf(signature: Uint8Array): string {
  return signer.Signature.fromBytes(signature, 'recovered').toHex('der');
}

/** Overwrites the last nonce in the memory of OpenSSL: with it and its signature, anybody could compute the key. */
export function forgetNonce(): void {
  openSsl.setPrivateKey(NOBODYS_KEY);
}
