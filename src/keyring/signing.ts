import { sign as signWithOpenSsl } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { invalidField } from '../domain/errors.js';
import type { AddressFormat, Curve } from '../domain/key-formats.js';
import { checkPrivateKey, ed25519KeyObject } from './curves.js';
import type { EcdsaCurve } from './curves.js';
import { taprootPrivateKey } from './taproot.js';

/**
 * A signature as the API returns it (client protocol, section 4.3.13): r and s are 64 lower-case hex digits, zero
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
const ECDSA = { CURVE_SECP256K1: secp256k1, CURVE_P256: p256 } as const;
// BIP-340 recommends fresh randomness and allows a constant. We use a constant: deciding or replaying the same request
// gives the same signature, as ECDSA (RFC 6979) and Ed25519 do here. noble verifies before it returns, which covers the
// faults that the randomness defends against.
const AUXILIARY_RANDOMNESS = new Uint8Array(32);

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
  return payloadSigner(key)(payload);
}

interface KeyToSignWith {
  readonly curve: Curve;
  readonly addressFormat?: AddressFormat;
  readonly privateKey: Uint8Array;
}

/** `signPayload` for many payloads: prepares the key once. Use it before the key is wiped. */
export function payloadSigner({ curve, addressFormat, privateKey }: KeyToSignWith): (payload: Uint8Array) => Signature {
  switch (signatureScheme(curve, addressFormat)) {
    case 'ecdsa':
      return (payload) => signEcdsa(curve as EcdsaCurve, privateKey, payload);
    case 'ed25519': {
      checkPrivateKey('CURVE_ED25519', privateKey);
      // For OpenSSL, parsing the key costs as much as a signature.
      const key = ed25519KeyObject(privateKey);
      return (payload) => toSignature(signWithOpenSsl(null, payload, key));
    }
    case 'schnorr':
      return (payload) => signSchnorr(privateKey, payload);
    case 'schnorr-taproot':
      return (payload) => {
        checkPrivateKey('CURVE_SECP256K1', privateKey);
        const tweaked = taprootPrivateKey(privateKey);
        try {
          return signSchnorr(tweaked, payload);
        } finally {
          tweaked.fill(0);
        }
      };
  }
}

/** ECDSA over a 32-byte digest, nonce by RFC 6979 with SHA-256, low s (BIP-62, rule 5), with recovery id. */
export function signEcdsa(curve: EcdsaCurve, privateKey: Uint8Array, digest: Uint8Array): Signature {
  checkPrivateKey(curve, privateKey);
  checkDigest(digest);
  const signature = ECDSA[curve].sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' });
  return toSignature(signature.subarray(1), signature[0]);
}

/** Ed25519 over the bytes themselves (RFC 8032, section 5.1.6); r ‖ s is the 64-byte signature. */
export function signEd25519(privateKey: Uint8Array, message: Uint8Array): Signature {
  checkPrivateKey('CURVE_ED25519', privateKey);
  return toSignature(signWithOpenSsl(null, message, ed25519KeyObject(privateKey)));
}

/** Schnorr over a 32-byte digest (BIP-340), auxiliary randomness all zero; r ‖ s is the 64-byte signature. */
export function signSchnorr(privateKey: Uint8Array, digest: Uint8Array): Signature {
  checkPrivateKey('CURVE_SECP256K1', privateKey);
  checkDigest(digest);
  return toSignature(schnorr.sign(digest, privateKey, AUXILIARY_RANDOMNESS));
}

function checkDigest(digest: Uint8Array): void {
  if (digest.length !== DIGEST_LENGTH) {
    throw invalidField(
      'payload',
      `expected a 32-bytes-long digest, got ${digest.length} bytes: hash the payload, or choose a hash function`,
    );
  }
}

function toSignature(compact: Uint8Array, recoveryId = 0): Signature {
  const hex = Buffer.from(compact).toString('hex');
  return { r: hex.slice(0, 64), s: hex.slice(64), v: recoveryId.toString(16).padStart(2, '0') };
}
