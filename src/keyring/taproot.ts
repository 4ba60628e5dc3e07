import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToNumberBE } from '@noble/curves/utils.js';

const { taggedHash, lift_x: liftX } = schnorr.utils;
const { Fn, BASE } = secp256k1.Point;

/**
 * The 32-byte output key of a P2TR address that can be spent by its key alone: the x coordinate of the compressed
 * secp256k1 key tweaked with no script tree (BIP-341, "Constructing and spending Taproot outputs"; BIP-86).
 */
export function taprootOutputKey(publicKey: Uint8Array): Uint8Array {
  const internalKey = publicKey.subarray(1);
  const internalPoint = liftX(bytesToNumberBE(internalKey));
  return internalPoint
    .add(BASE.multiply(tweakOf(internalKey)))
    .toBytes(true)
    .subarray(1);
}

/** The private key that signs for `taprootOutputKey`, 32 bytes (BIP-341, `taproot_tweak_seckey`). The caller wipes it. */
export function taprootPrivateKey(privateKey: Uint8Array): Uint8Array {
  const publicKey = secp256k1.getPublicKey(privateKey);
  const scalar = Fn.fromBytes(privateKey);
  const evenScalar = publicKey[0] === 3 ? Fn.neg(scalar) : scalar;
  return Fn.toBytes(Fn.add(evenScalar, tweakOf(publicKey.subarray(1))));
}

// A hash not below the order is an error by BIP-341; `fromBytes` throws, at odds of one in 2^127.
function tweakOf(internalKey: Uint8Array): bigint {
  return Fn.fromBytes(taggedHash('TapTweak', internalKey));
}
