import { createHash } from 'node:crypto';
import { CURVE_ORDER, subtract } from './curve-orders.js';
import { addToScalar, isScalar } from './curves.js';
import { chosenSecp256k1 } from './secp256k1.js';

const CURVE = 'CURVE_SECP256K1';
/** BIP-340, "tagged hash": each tag is hashed twice before the message. */
const TAG = createHash('sha256').update('TapTweak').digest();

/**
 * The 32-byte output key of a P2TR address that can be spent by its key alone: the x coordinate of the compressed
 * secp256k1 key tweaked with no script tree (BIP-341, "Constructing and spending Taproot outputs"; BIP-86).
 */
export function taprootOutputKey(publicKey: Uint8Array): Uint8Array {
  const internalKey = publicKey.subarray(1);
  // BIP-340, `lift_x`: of the two points with this x, the one whose y is even.
  const internalPoint = Buffer.concat([Buffer.from([2]), internalKey]);
  return chosenSecp256k1().library.addToPoint(internalPoint, tweakOf(internalKey)).subarray(1);
}

/** The private key that signs for `taprootOutputKey`, 32 bytes (BIP-341, `taproot_tweak_seckey`). The caller wipes it. */
export function taprootPrivateKey(privateKey: Uint8Array): Uint8Array {
  const publicKey = chosenSecp256k1().library.publicKeyOf(privateKey);
  const evenKey = Buffer.from(privateKey);
  if (publicKey[0] === 3) {
    evenKey.set(CURVE_ORDER[CURVE]);
    subtract(evenKey, privateKey);
  }
  const tweaked = tweakOf(publicKey.subarray(1));
  const isKey = addToScalar(CURVE, tweaked, evenKey);
  evenKey.fill(0);
  if (!isKey) throw new Error('the tweaked key is zero');
  return tweaked;
}

function tweakOf(internalKey: Uint8Array): Buffer {
  const tweak = createHash('sha256').update(TAG).update(TAG).update(internalKey).digest();
  // An error by BIP-341, at odds of one in 2^127.
  if (!isScalar(CURVE, tweak)) throw new Error('the tweak is not below the order');
  return tweak;
}
