import { p256 } from '@noble/curves/nist.js';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';

/**
 * Signs once on each curve that is done in JavaScript. A curve makes its tables, and is compiled, at its first signature,
 * which takes 60 ms: whoever sends that request should not make everybody wait.
 */
export function makeCurvesReady(): void {
  const [key, digest] = [new Uint8Array(32).fill(1), new Uint8Array(32)];
  secp256k1.sign(digest, key, { prehash: false });
  p256.sign(digest, key, { prehash: false });
  schnorr.sign(digest, key, digest);
}
