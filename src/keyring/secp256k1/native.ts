import { createRequire } from 'node:module';
import { CURVE_ORDER, subtract } from '../curve-orders.js';
import type { Secp256k1 } from './secp256k1.js';

/** The part of `secp256k1/bindings.js` in use. It throws where there is no build for the platform. */
interface Bindings {
  ecdsaSign(digest: Uint8Array, privateKey: Uint8Array): { readonly signature: Uint8Array; readonly recid: number };
  ecdsaVerify(signature: Uint8Array, digest: Uint8Array, publicKey: Uint8Array): boolean;
  /** Brings s low, in place. */
  signatureNormalize(signature: Uint8Array): Uint8Array;
  publicKeyCreate(privateKey: Uint8Array, compressed: boolean): Uint8Array;
  publicKeyConvert(publicKey: Uint8Array, compressed: boolean): Uint8Array;
  publicKeyTweakAdd(publicKey: Uint8Array, scalar: Uint8Array, compressed: boolean): Uint8Array;
}

/**
 * `secp256k1`: libsecp256k1 as a native module, built before it was published. Its version has no BIP-340; for that it
 * uses `schnorr`. Never the index of the package, which falls back to another library (elliptic) in silence.
 */
export function nativeSecp256k1(schnorr: Secp256k1): Secp256k1 {
  const bindings = createRequire(import.meta.url)('secp256k1/bindings.js') as Bindings;
  return {
    name: `secp256k1 (native; BIP-340 by ${schnorr.name})`,
    signEcdsa(digest, privateKey) {
      const { signature, recid } = bindings.ecdsaSign(reduced(digest), privateKey);
      return { compact: signature, recoveryId: recid };
    },
    signSchnorr: (digest, privateKey) => schnorr.signSchnorr(digest, privateKey),
    // It takes a high s for no signature at all.
    verifyEcdsa: (compact, digest, publicKey) =>
      bindings.ecdsaVerify(bindings.signatureNormalize(Uint8Array.from(compact)), digest, publicKey),
    publicKeyOf: (privateKey) => bindings.publicKeyCreate(privateKey, true),
    uncompress: (publicKey) => bindings.publicKeyConvert(publicKey, false),
    addToPoint: (publicKey, scalar) => bindings.publicKeyTweakAdd(publicKey, scalar, true),
    // It works on the caller's bytes and on the stack of the thread, which is used by everything else too.
    forgetKeys: () => schnorr.forgetKeys(),
  };
}

/**
 * The digest modulo the order, as RFC 6979 has it (section 2.3.4, bits2octets). This version of libsecp256k1 derives the
 * nonce from the digest as it is, which makes another signature of digests that are not below the order.
 */
function reduced(digest: Uint8Array): Uint8Array {
  if (Buffer.compare(digest, CURVE_ORDER.CURVE_SECP256K1) < 0) return digest;
  const rest = Buffer.from(digest);
  subtract(rest, CURVE_ORDER.CURVE_SECP256K1);
  return rest;
}
