import { signP256 } from './p256.js';
import { chosenSecp256k1, type ChosenSecp256k1 } from './secp256k1/choose.js';

/**
 * Loads the library for secp256k1, and signs once on P-256. What is implemented in JavaScript is compiled at its first
 * signatures: the first request should not make everyone wait.
 */
export function makeCurvesReady(): ChosenSecp256k1 {
  const [key, digest] = [new Uint8Array(32).fill(1), new Uint8Array(32)];
  signP256(digest, key);
  return chosenSecp256k1();
}
