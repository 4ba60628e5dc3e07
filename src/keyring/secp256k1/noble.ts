import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import type { Secp256k1 } from './secp256k1.js';

const { Point } = secp256k1;
const NO_RANDOMNESS = new Uint8Array(32);

/** `@noble/curves`: JavaScript that runs everywhere, and the oracle of the other two. */
export function nobleSecp256k1(): Secp256k1 {
  return {
    name: '@noble/curves',
    signEcdsa(digest, privateKey) {
      const signature = secp256k1.sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' });
      return { compact: signature.subarray(1), recoveryId: signature[0]! };
    },
    // It verifies what it has signed.
    signSchnorr: (digest, privateKey) => schnorr.sign(digest, privateKey, NO_RANDOMNESS),
    verifyEcdsa: (compact, digest, publicKey) =>
      secp256k1.verify(compact, digest, publicKey, { prehash: false, lowS: false }),
    publicKeyOf: (privateKey) => secp256k1.getPublicKey(privateKey, true),
    uncompress: (publicKey) => Point.fromBytes(publicKey).toBytes(false),
    addToPoint: (publicKey, scalar) =>
      Point.fromBytes(publicKey)
        .add(Point.BASE.multiply(Point.Fn.fromBytes(scalar)))
        .toBytes(true),
    // Its values are bigints, which only the garbage collector can remove.
    forgetKeys: () => {},
  };
}
