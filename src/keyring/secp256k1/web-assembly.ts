import { createRequire } from 'node:module';
import type * as Tiny from 'tiny-secp256k1';
import type { Secp256k1 } from './secp256k1.js';

// A public number in place of a key.
const NOBODYS_KEY = new Uint8Array(32).fill(1);

/** `tiny-secp256k1`: libsecp256k1 compiled to WebAssembly, for platforms without a native build. */
export function webAssemblySecp256k1(): Secp256k1 {
  // Loaded when it is needed: it compiles 1 MB, at once.
  const tiny = createRequire(import.meta.url)('tiny-secp256k1') as typeof Tiny;
  let isKeyLeft = false;
  return {
    name: 'tiny-secp256k1 (WebAssembly)',
    signEcdsa(digest, privateKey) {
      isKeyLeft = true;
      const { signature, recoveryId } = tiny.signRecoverable(digest, privateKey);
      return { compact: signature, recoveryId };
    },
    signSchnorr(digest, privateKey) {
      isKeyLeft = true;
      const signature = tiny.signSchnorr(digest, privateKey);
      if (!tiny.verifySchnorr(digest, tiny.xOnlyPointFromScalar(privateKey), signature)) {
        throw new Error('tiny-secp256k1 made a Schnorr signature that does not verify');
      }
      return signature;
    },
    verifyEcdsa: (compact, digest, publicKey) => tiny.verify(digest, publicKey, compact, false),
    publicKeyOf(privateKey) {
      isKeyLeft = true;
      return known(tiny.pointFromScalar(privateKey, true));
    },
    uncompress: (publicKey) => tiny.pointCompress(publicKey, false),
    addToPoint: (publicKey, scalar) => known(tiny.pointAddScalar(publicKey, scalar, true)),
    // It wipes the buffers that it is called with, but not its stack, which is memory that no other code uses. This call
    // has the deepest stack of those above, and writes over all that they have left.
    forgetKeys() {
      if (isKeyLeft) tiny.signSchnorr(NOBODYS_KEY, NOBODYS_KEY);
      isKeyLeft = false;
    },
  };
}

function known(point: Uint8Array | null): Uint8Array {
  if (point === null) throw new Error('the point at infinity is not a public key');
  return point;
}
