import { createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';

/** The public key of a private key, 32 bytes each (RFC 8032, section 5.1.5). */
export function publicKeyOfEd25519(privateKey: Uint8Array): Buffer {
  const { x } = createPublicKey(keyObject(privateKey)).export({ format: 'jwk' });
  if (x === undefined) throw new Error('the platform exports an Ed25519 key without its public part');
  return Buffer.from(x, 'base64url');
}

/**
 * Prepares a private key, which costs as much as a signature. The function signs messages of any length, 64 bytes each
 * (RFC 8032, section 5.1.6). OpenSSL's copy of the key lives as long as the function: use it for one request.
 */
export function ed25519Signer(privateKey: Uint8Array): (message: Uint8Array) => Buffer {
  const key = keyObject(privateKey);
  return (message) => sign(null, message, key);
}

/**
 * As a JWK (RFC 8037), which OpenSSL reads seven times faster than PKCS #8. The price is that the key's base64url text, and
 * the bytes that Node reads from it, are left to the garbage collector.
 */
function keyObject(privateKey: Uint8Array): KeyObject {
  // A view: a copy would lie in the pool that all short buffers share, where nobody wipes it.
  const d = Buffer.from(privateKey.buffer, privateKey.byteOffset, privateKey.length).toString('base64url');
  // Only `d` is read, but node requires `x`.
  return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x: '' }, format: 'jwk' });
}
