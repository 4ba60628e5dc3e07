import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { isNativeError } from 'node:util/types';
import { secp256k1 as curve } from '@noble/curves/secp256k1.js';
import { CURVE_ORDER, subtract } from './curve-orders.js';

/** What the keyring needs of a library for secp256k1. All return the same bytes for the same input: signatures are repeatable. */
export interface Secp256k1 {
  /** Which library, for the log and `countersign doctor`. */
  readonly name: string;
  /** ECDSA over a digest of 32 bytes, nonce by RFC 6979 with SHA-256, low s (BIP-62, rule 5): the recovery id, r ‖ s, 65 bytes. */
  signEcdsa(digest: Uint8Array, privateKey: Uint8Array): Uint8Array;
  /** Whether r ‖ s (64 bytes, both below the order, s low or high) is a signature over a digest of 32 bytes by a point. */
  verifyEcdsa(compact: Uint8Array, digest: Uint8Array, publicKey: Uint8Array): boolean;
  /** The compressed point of a private key, 33 bytes (SEC 1, section 2.3.3). */
  publicKeyOf(privateKey: Uint8Array): Uint8Array;
  /** The uncompressed form, 65 bytes, of a compressed point. */
  uncompress(publicKey: Uint8Array): Uint8Array;
  /** A compressed point plus the generator times a scalar below the order, 33 bytes. */
  addToPoint(publicKey: Uint8Array, scalar: Uint8Array): Uint8Array;
}

/** The library in use, and why the native one is not, if so. */
interface Chosen {
  readonly library: Secp256k1;
  readonly passedOver?: string;
}

/** `@noble/curves`: JavaScript that runs everywhere, and the oracle of the native library. */
export const nobleSecp256k1: Secp256k1 = {
  name: '@noble/curves',
  signEcdsa: (digest, privateKey) =>
    curve.sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' }),
  verifyEcdsa: (compact, digest, publicKey) =>
    curve.verify(compact, digest, publicKey, { prehash: false, lowS: false }),
  publicKeyOf: (privateKey) => curve.getPublicKey(privateKey, true),
  uncompress: (publicKey) => curve.Point.fromBytes(publicKey).toBytes(false),
  addToPoint: (publicKey, scalar) =>
    curve.Point.fromBytes(publicKey)
      .add(curve.Point.BASE.multiply(curve.Point.Fn.fromBytes(scalar)))
      .toBytes(true),
};

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
 * `secp256k1`: libsecp256k1 as a native module, built before it was published. Never the index of the package, which falls
 * back to another library (elliptic) in silence. It works on the caller's bytes and keeps no copy of a key.
 */
export function nativeSecp256k1(): Secp256k1 {
  const bindings = createRequire(import.meta.url)('secp256k1/bindings.js') as Bindings;
  return {
    name: 'secp256k1 (native)',
    signEcdsa(digest, privateKey) {
      const { signature, recid } = bindings.ecdsaSign(reduced(digest), privateKey);
      return Buffer.concat([Uint8Array.of(recid), signature]);
    },
    // It takes a high s for no signature at all.
    verifyEcdsa: (compact, digest, publicKey) =>
      bindings.ecdsaVerify(bindings.signatureNormalize(Uint8Array.from(compact)), digest, publicKey),
    publicKeyOf: (privateKey) => bindings.publicKeyCreate(privateKey, true),
    uncompress: (publicKey) => bindings.publicKeyConvert(publicKey, false),
    addToPoint: (publicKey, scalar) => bindings.publicKeyTweakAdd(publicKey, scalar, true),
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

let chosen: Chosen | undefined;

/** The library in use, chosen at the first call. */
export function chosenSecp256k1(): Chosen {
  return (chosen ??= chooseSecp256k1(nativeSecp256k1));
}

/** The native library if it loads here and passes the self-test, else `@noble/curves`. */
export function chooseSecp256k1(loadNative: () => Secp256k1): Chosen {
  try {
    const library = loadNative();
    selfTest(library);
    return { library };
  } catch (error) {
    const reason = isNativeError(error) ? error.message : String(error);
    // The first line: the rest lists the paths that were searched.
    return { library: nobleSecp256k1, passedOver: reason.split('\n', 1)[0]! };
  }
}

/**
 * Throws unless a library returns exactly what noble returns (`knownAnswers`): otherwise its signatures could not be repeated,
 * or would give away the key.
 */
function selfTest(library: Secp256k1): void {
  const answers = createHash('sha256');
  let isVerifying = true;
  for (const [key, digest] of knownInputs) {
    const [signature, publicKey] = [library.signEcdsa(digest, key), library.publicKeyOf(key)];
    for (const bytes of [signature, publicKey, library.uncompress(publicKey), library.addToPoint(publicKey, key)]) {
      answers.update(bytes);
    }
    const verify = (any: Uint8Array) => library.verifyEcdsa(signature.subarray(1), any, publicKey);
    isVerifying &&= verify(digest) && !verify(Buffer.alloc(32, 3));
  }
  if (isVerifying && answers.digest('hex') === knownAnswers) return;
  throw new Error(`self-test failed: unexpected signature from ${library.name}`);
}

/** Keys of nobody, and digests that libraries have been seen to treat differently. */
const knownInputs: readonly (readonly [Uint8Array, Uint8Array])[] = [
  // An even public key; s was high.
  [Buffer.alloc(32, 2), Buffer.alloc(32)],
  // An odd one; the digest is above the order, and s was high.
  [Buffer.alloc(32, 6), Buffer.alloc(32, 0xff)],
  // An odd one; s was low, and the recovery id is 1.
  [Buffer.alloc(32, 1), Buffer.alloc(32, 0x7f)],
];
/** SHA-256 of what noble returns for them, which takes noble a quarter of a second at the start of a process. */
const knownAnswers = 'a16d55f332acb16f135aee355f9baebbd238aec84b0ce0bcd1671df7541dd49a';
