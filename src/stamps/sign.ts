import { ed25519 } from '@noble/curves/ed25519.js';
import type { ApiKeyScheme, StampScheme } from './stamp.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToHex } from '@noble/curves/utils.js';
import { CoordinatorError } from '../domain/errors.js';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { stampHeader } from '../wire/stamp-header.js';
import { CURVE_OF_SCHEME, personalMessageDigest } from './verify.js';

/** Hex without 0x: compressed point (33 bytes) or raw Ed25519 key (32), and the 32-byte scalar or Ed25519 seed. */
export interface ApiKeyPair {
  readonly publicKey: string;
  readonly privateKey: string;
  readonly curve: ApiKeyCurve;
}

const CURVE = {
  API_KEY_CURVE_P256: p256,
  API_KEY_CURVE_SECP256K1: secp256k1,
  API_KEY_CURVE_ED25519: ed25519,
} as const;

const DEFAULT_SCHEME: Readonly<Record<ApiKeyCurve, ApiKeyScheme>> = {
  API_KEY_CURVE_P256: 'SIGNATURE_SCHEME_TK_API_P256',
  API_KEY_CURVE_SECP256K1: 'SIGNATURE_SCHEME_TK_API_SECP256K1',
  API_KEY_CURVE_ED25519: 'SIGNATURE_SCHEME_TK_API_ED25519',
};

/**
 * A new key pair, P-256 by default. `randomBytes` is called once, for 48 bytes (FIPS 186-5, A.2.1: 64 bits more than
 * needed, so that the reduced scalar is unbiased) or for the 32-byte Ed25519 seed.
 */
export function generateApiKeyPair(
  randomBytes: (length: number) => Uint8Array,
  curve: ApiKeyCurve = 'API_KEY_CURVE_P256',
): ApiKeyPair {
  const seed = randomBytes(curve === 'API_KEY_CURVE_ED25519' ? 32 : 48);
  return apiKeyPairFromPrivate(bytesToHex(CURVE[curve].utils.randomSecretKey(seed)), curve);
}

/** The pair of a private key given as 64 hex digits, P-256 by default. Throws INVALID_ARGUMENT if it is not one. */
export function apiKeyPairFromPrivate(privateKeyHex: string, curve: ApiKeyCurve = 'API_KEY_CURVE_P256'): ApiKeyPair {
  if (!/^[0-9a-fA-F]{64}$/.test(privateKeyHex)) {
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `the private key is not 64 hex digits (it has ${privateKeyHex.length} characters)`,
    );
  }
  const secret = Buffer.from(privateKeyHex, 'hex');
  if (!CURVE[curve].utils.isValidSecretKey(secret)) {
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `the private key is zero or not below the order of the curve ${curve}`,
    );
  }
  return { publicKey: bytesToHex(CURVE[curve].getPublicKey(secret)), privateKey: privateKeyHex.toLowerCase(), curve };
}

/**
 * Stamps a request body (docs/protocol.md, API key stamps): send the same bytes with the header. Deterministic (RFC 6979,
 * RFC 8032), always low s. By default, the plain scheme of the key's curve.
 */
export function stampBody(
  body: string | Uint8Array,
  key: ApiKeyPair,
  scheme: StampScheme = DEFAULT_SCHEME[key.curve],
): { headerName: 'X-Stamp'; headerValue: string } {
  if (scheme === 'SIGNATURE_SCHEME_TK_WEBAUTHN' || CURVE_OF_SCHEME[scheme] !== key.curve) {
    throw new CoordinatorError('INVALID_ARGUMENT', `scheme \`${scheme}\` does not sign with a key on ${key.curve}`);
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const signature = bytesToHex(sign(bytes, Buffer.from(key.privateKey, 'hex'), scheme));
  return { headerName: 'X-Stamp', headerValue: stampHeader({ publicKey: key.publicKey, scheme, signature }) };
}

function sign(body: Uint8Array, secret: Uint8Array, scheme: ApiKeyScheme): Uint8Array {
  switch (scheme) {
    case 'SIGNATURE_SCHEME_TK_API_P256':
      return p256.sign(body, secret, { format: 'der', lowS: true });
    case 'SIGNATURE_SCHEME_TK_API_SECP256K1':
      return secp256k1.sign(body, secret, { format: 'der', lowS: true });
    case 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191':
      return secp256k1.sign(personalMessageDigest(body), secret, { format: 'der', lowS: true, prehash: false });
    case 'SIGNATURE_SCHEME_TK_API_ED25519':
      return ed25519.sign(body, secret);
  }
}
