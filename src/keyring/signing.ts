import { invalidField } from '../domain/errors.js';
import type { AddressFormat, Curve } from '../domain/key-formats.js';
import type { EcdsaCurve } from './curve-orders.js';
import { checkPrivateKey } from './curves.js';
import { chosenEd25519 } from './ed25519/choose.js';
import { forgetNonce, signAllP256, type P256Signature } from './p256.js';
import { chosenSecp256k1 } from './secp256k1/choose.js';
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

const DIGEST_LENGTH = 32;

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

interface KeyToSignWith {
  readonly curve: Curve;
  readonly addressFormat?: AddressFormat;
  readonly privateKey: Uint8Array;
}

/** A key prepared for signing. */
interface PayloadSigner {
  sign(payload: Uint8Array): Signature;
  /** The signatures, in the order of the payloads. */
  signAll(payloads: readonly Uint8Array[]): Signature[];
  /** Wipes what was made of the key for signing; the key itself is the caller's to wipe. */
  forget(): void;
}

/** `signPayload` for many payloads: prepares the key once. Throws for an invalid private key. */
export function payloadSigner({ curve, addressFormat, privateKey }: KeyToSignWith): PayloadSigner {
  checkPrivateKey(curve, privateKey);
  switch (signatureScheme(curve, addressFormat)) {
    case 'ecdsa':
      return curve === 'CURVE_P256' ? p256Signer(privateKey) : secp256k1Signer(privateKey, signSecp256k1);
    case 'ed25519':
      return ed25519Signer(privateKey);
    case 'schnorr':
      return secp256k1Signer(privateKey, signBip340);
    case 'schnorr-taproot': {
      const tweaked = taprootPrivateKey(privateKey);
      const signer = secp256k1Signer(tweaked, signBip340);
      return {
        ...signer,
        forget() {
          tweaked.fill(0);
          signer.forget();
        },
      };
    }
  }
}

/** ECDSA over a 32-byte digest, nonce by RFC 6979 with SHA-256, low s (BIP-62, rule 5), with recovery id. */
export function signEcdsa(curve: EcdsaCurve, privateKey: Uint8Array, digest: Uint8Array): Signature {
  return signPayload({ curve, privateKey }, digest);
}

/** Ed25519 over the bytes themselves (RFC 8032, section 5.1.6); r ‖ s is the 64-byte signature. */
export function signEd25519(privateKey: Uint8Array, message: Uint8Array): Signature {
  return signPayload({ curve: 'CURVE_ED25519', privateKey }, message);
}

/** Schnorr over a 32-byte digest (BIP-340), auxiliary randomness all zero; r ‖ s is the 64-byte signature. */
export function signSchnorr(privateKey: Uint8Array, digest: Uint8Array): Signature {
  return signPayload({ curve: 'CURVE_SECP256K1', privateKey, addressFormat: 'ADDRESS_FORMAT_SPARK_MAINNET' }, digest);
}

function secp256k1Signer(
  privateKey: Uint8Array,
  signOne: (privateKey: Uint8Array, digest: Uint8Array) => Signature,
): PayloadSigner {
  const sign = (digest: Uint8Array): Signature => signOne(privateKey, digest);
  return {
    sign,
    signAll: (digests) => digests.map(sign),
    forget: () => chosenSecp256k1().library.forgetKeys(),
  };
}

function p256Signer(privateKey: Uint8Array): PayloadSigner {
  const signAll = (digests: readonly Uint8Array[]): Signature[] => {
    digests.forEach(checkDigest);
    return signAllP256(digests, privateKey).map(p256SignatureText);
  };
  return { sign: (digest) => signAll([digest])[0]!, signAll, forget: forgetNonce };
}

/** A signature on P-256 as the API returns it. */
export function p256SignatureText({ r, s, recovery = 0 }: P256Signature): Signature {
  return { r: r.toString(16).padStart(64, '0'), s: s.toString(16).padStart(64, '0'), v: recoveryText(recovery) };
}

function ed25519Signer(privateKey: Uint8Array): PayloadSigner {
  const signer = chosenEd25519().library.signer(privateKey);
  const sign = (message: Uint8Array): Signature => toSignature(signer.sign(message));
  return { sign, signAll: (messages) => messages.map(sign), forget: () => signer.forget() };
}

function signSecp256k1(privateKey: Uint8Array, digest: Uint8Array): Signature {
  checkDigest(digest);
  const { compact, recoveryId } = chosenSecp256k1().library.signEcdsa(digest, privateKey);
  return toSignature(compact, recoveryId);
}

function signBip340(privateKey: Uint8Array, digest: Uint8Array): Signature {
  checkDigest(digest);
  return toSignature(chosenSecp256k1().library.signSchnorr(digest, privateKey));
}

/** Throws INVALID_ARGUMENT unless it has 32 bytes. */
export function checkDigest(digest: Uint8Array): void {
  if (digest.length !== DIGEST_LENGTH) {
    throw invalidField(
      'payload',
      `expected a 32-bytes-long digest, got ${digest.length} bytes: hash the payload, or choose a hash function`,
    );
  }
}

function toSignature(compact: Uint8Array, recoveryId = 0): Signature {
  const hex = Buffer.from(compact).toString('hex');
  return { r: hex.slice(0, 64), s: hex.slice(64), v: recoveryText(recoveryId) };
}

function recoveryText(id: number): string {
  return id.toString(16).padStart(2, '0');
}
