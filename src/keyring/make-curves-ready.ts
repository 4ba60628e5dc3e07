import { p256 } from '@noble/curves/nist.js';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';

/**
 * Signs once on each curve implemented in JavaScript. At its first signature a curve computes its tables and is
 * compiled, which takes 60 ms: the first request should not make everyone wait.
 */
export function makeCurvesReady(): void {
  const [key, digest] = [new Uint8Array(32).fill(1), new Uint8Array(32)];
  secp256k1.sign(digest, key, { prehash: false });
  p256.sign(digest, key, { prehash: false });
  schnorr.sign(digest, key, digest);
}
