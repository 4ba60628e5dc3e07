import { createRequire } from 'node:module';
import type { Ed25519 } from './ed25519.js';

/** The part of `sodium-native` in use, all of which fills the arrays it is given. It throws where there is no build. */
interface Bindings {
  crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void;
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
}

/** `sodium-native`: libsodium as a native module, built before it was published. */
export function nativeEd25519(): Ed25519 {
  const bindings = createRequire(import.meta.url)('sodium-native') as Bindings;
  /** libsodium signs with the seed and the public key. The public key is always made of the seed: with another one, a signature gives the key away. */
  const keyPair = (seed: Uint8Array): { publicKey: Uint8Array; secretKey: Uint8Array } => {
    const [publicKey, secretKey] = [new Uint8Array(32), new Uint8Array(64)];
    bindings.crypto_sign_seed_keypair(publicKey, secretKey, seed);
    return { publicKey, secretKey };
  };
  return {
    name: 'sodium-native',
    publicKeyOf(privateKey) {
      const { publicKey, secretKey } = keyPair(privateKey);
      secretKey.fill(0);
      return publicKey;
    },
    signer(privateKey) {
      const { secretKey } = keyPair(privateKey);
      return {
        sign(message) {
          const signature = new Uint8Array(64);
          bindings.crypto_sign_detached(signature, message, secretKey);
          return signature;
        },
        forget: () => void secretKey.fill(0),
      };
    },
  };
}
