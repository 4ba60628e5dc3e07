import { createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import type { Ed25519 } from './ed25519.js';

/** OpenSSL, which every Node.js contains: half as fast as libsodium, and the oracle of it. */
export function openSslEd25519(): Ed25519 {
  return {
    name: 'OpenSSL',
    publicKeyOf(privateKey) {
      const { x } = createPublicKey(keyObject(privateKey)).export({ format: 'jwk' });
      if (x === undefined) throw new Error('the platform exports an Ed25519 key without its public part');
      return Buffer.from(x, 'base64url');
    },
    signer(privateKey) {
      const key = keyObject(privateKey);
      // OpenSSL's key stays in its memory until the object is collected.
      return { sign: (message) => sign(null, message, key), forget() {} };
    },
  };
}

/**
 * A private key for node:crypto. As a JWK (RFC 8037), which OpenSSL reads seven times faster than PKCS #8; the price is
 * that the key's base64url text, and the bytes that Node reads from it, are left to the garbage collector.
 */
function keyObject(privateKey: Uint8Array): KeyObject {
  // A view: a copy would lie in the pool that all short buffers share, where nobody wipes it.
  const d = Buffer.from(privateKey.buffer, privateKey.byteOffset, privateKey.length).toString('base64url');
  // Only `d` is read, but node requires `x`.
  const jwk = { kty: 'OKP', crv: 'Ed25519', d, x: '' };
  return createPrivateKey({ key: jwk, format: 'jwk' });
}
