import { chosenEd25519 } from './ed25519/choose.js';
import { signP256 } from './p256.js';
import { chosenSecp256k1 } from './secp256k1/choose.js';

/** A curve that more than one library could sign on. */
interface CurveLibrary {
  readonly curve: string;
  readonly library: string;
  /** Why faster ones are not in use. */
  readonly passedOver: readonly string[];
}

/**
 * Loads the libraries, and signs once on P-256. What is implemented in JavaScript is compiled at its first signatures: the
 * first request should not make everyone wait.
 */
export function makeCurvesReady(): CurveLibrary[] {
  const [key, digest] = [new Uint8Array(32).fill(1), new Uint8Array(32)];
  signP256(digest, key);
  return curveLibraries();
}

export function curveLibraries(): CurveLibrary[] {
  return [
    { curve: 'secp256k1', ...chosenSecp256k1() },
    { curve: 'Ed25519', ...chosenEd25519() },
  ].map(({ curve, library, passedOver }) => ({ curve, library: library.name, passedOver }));
}
