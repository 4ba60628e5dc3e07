import { schnorr } from '@noble/curves/secp256k1.js';
import { invalidField } from '../domain/errors.js';
import type { AddressFormat, Curve } from '../domain/key-formats.js';
import { checkPrivateKey } from './curves.js';
import { ed25519Signer } from './ed25519.js';
import { signDigestP256 } from './p256.js';
import { chosenSecp256k1, nobleSecp256k1 } from './secp256k1.js';
import { taprootPrivateKey } from './taproot.js';

/**
 * A signature as the API returns it (docs/protocol.md, signatures): r and s are 64 lower-case hex digits, zero
 * padded, without 0x; v is the recovery id `00` or `01` for ECDSA, `00` for every other scheme.
 */
export interface Signature {
  readonly r: string;
  readonly s: string;
  readonly v: string;
}

/** How a key signs; the last two are BIP-340, with the key tweaked for P2TR (BIP-341) or unchanged. */
export type SignatureScheme = 'ecdsa' | 'ed25519' | 'schnorr-taproot' | 'schnorr';

/** A private key, and the address that it is used under; without one, the key is named by its id. */
export interface KeyToSignWith {
  readonly curve: Curve;
  readonly addressFormat?: AddressFormat | undefined;
  readonly privateKey: Uint8Array;
}

const digestLength = 32;
const noRandomness = new Uint8Array(32);

/**
 * The scheme of a key, by the address that it is used under: Schnorr for P2TR (tweaked) and Spark (not tweaked),
 * otherwise that of the curve. Omit the format for a key named by its id.
 */
export function signatureScheme(curve: Curve, addressFormat?: AddressFormat): SignatureScheme {
  if (curve === 'CURVE_ED25519') return 'ed25519';
  if (addressFormat?.startsWith('ADDRESS_FORMAT_BITCOIN_') && addressFormat.endsWith('_P2TR')) return 'schnorr-taproot';
  if (addressFormat?.startsWith('ADDRESS_FORMAT_SPARK_')) return 'schnorr';
  return 'ecdsa';
}

/** Whether noble makes these signatures, which takes half a millisecond (ECDSA) or two (BIP-340) for each. */
export function signsInJavaScript({ curve, addressFormat }: Omit<KeyToSignWith, 'privateKey'>): boolean {
  const scheme = signatureScheme(curve, addressFormat);
  if (scheme === 'ed25519') return false;
  return scheme !== 'ecdsa' || curve === 'CURVE_P256' || chosenSecp256k1().library === nobleSecp256k1;
}

/**
 * Signs under an address: a 32-byte digest with ECDSA and Schnorr, bytes of any length with Ed25519, which hashes them
 * itself. Deterministic. Throws INVALID_ARGUMENT for a digest of another length or an invalid private key.
 */
export function signPayload(key: KeyToSignWith, payload: Uint8Array): Signature {
  const signer = payloadSigner(key);
  try {
    return signer.sign(payload);
  } finally {
    signer.forget();
  }
}

/** A key prepared for signing. */
interface PayloadSigner {
  sign(payload: Uint8Array): Signature;
  /** Wipes what was derived from the key; the key itself is the caller's to wipe. */
  forget(): void;
}

/** `signPayload` for many payloads: prepares the key once. Throws for an invalid private key. */
export function payloadSigner({ curve, addressFormat, privateKey }: KeyToSignWith): PayloadSigner {
  checkPrivateKey(curve, privateKey);
  const nothing = (): void => {};
  switch (signatureScheme(curve, addressFormat)) {
    case 'ed25519': {
      const sign = ed25519Signer(privateKey);
      return { sign: (message) => signatureText(sign(message)), forget: nothing };
    }
    case 'ecdsa': {
      const sign = curve === 'CURVE_P256' ? signDigestP256 : chosenSecp256k1().library.signEcdsa;
      return { sign: (digest) => recoverableText(sign(checked(digest), privateKey)), forget: nothing };
    }
    case 'schnorr':
      return { sign: (digest) => signSchnorr(digest, privateKey), forget: nothing };
    case 'schnorr-taproot': {
      const tweaked = taprootPrivateKey(privateKey);
      return { sign: (digest) => signSchnorr(digest, tweaked), forget: () => void tweaked.fill(0) };
    }
  }
}

/**
 * BIP-340 by noble. Auxiliary randomness is recommended and may be constant; here it is all zero, so that the same request
 * gives the same signature. Against the faults that randomness defends from, noble verifies what it has signed.
 */
function signSchnorr(digest: Uint8Array, privateKey: Uint8Array): Signature {
  return signatureText(schnorr.sign(checked(digest), privateKey, noRandomness));
}

/** The digest. Throws INVALID_ARGUMENT unless it has 32 bytes. */
export function checked(digest: Uint8Array): Uint8Array {
  if (digest.length === digestLength) return digest;
  throw invalidField(
    'payload',
    `expected a 32-bytes-long digest, got ${digest.length} bytes: hash the payload, or choose a hash function`,
  );
}

/** @param signature the recovery id, r ‖ s */
function recoverableText(signature: Uint8Array): Signature {
  return signatureText(signature.subarray(1), signature[0]);
}

function signatureText(compact: Uint8Array, recoveryId = 0): Signature {
  const hex = Buffer.from(compact).toString('hex');
  return { r: hex.slice(0, 64), s: hex.slice(64), v: recoveryId.toString(16).padStart(2, '0') };
}
