import { keccak_256 } from '@noble/hashes/sha3.js';
import { CoordinatorError } from '../domain/errors.js';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { callerPath, type QueuePath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import { chosenSecp256k1 } from '../keyring/secp256k1.js';
import { maxAttestedLength, readAttestedStamp } from './attested.js';
import { personalMessagePrefix } from './eip191.js';
import { base64Text, decodeBase64, readStrings, singleHeader, unreadable } from './header.js';
import { apiKeyObject, normalizePublicKey } from './keys.js';
import type { ApiKeyScheme, ApiKeyStamp, Stamp, WebAuthnStamp } from './stamp.js';
import { compactSignature, ecdsaSignatureProblem, ed25519SignatureProblem, verifySignature } from './signatures.js';

/** The curve of a scheme's key: a credential matches a stamp only if both key and curve are equal. */
export const CURVE_OF_SCHEME: Readonly<Record<ApiKeyScheme, ApiKeyCurve>> = {
  SIGNATURE_SCHEME_TK_API_P256: 'API_KEY_CURVE_P256',
  SIGNATURE_SCHEME_TK_API_SECP256K1: 'API_KEY_CURVE_SECP256K1',
  SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191: 'API_KEY_CURVE_SECP256K1',
  SIGNATURE_SCHEME_TK_API_ED25519: 'API_KEY_CURVE_ED25519',
};

const MAX_HEADER_LENGTH = 8192;

/**
 * Parses the only stamp of a request from its headers (names in lower case). Throws UNAUTHENTICATED: SIGNATURE_MISSING
 * if there is no stamp, SIGNATURE_INVALID if it is malformed. Proves nothing about the sender.
 */
export function readStamp(headers: Readonly<Record<string, string | string[] | undefined>>): Stamp {
  const apiKey = singleHeader(headers['x-stamp'], 'X-Stamp', MAX_HEADER_LENGTH);
  const webAuthn = singleHeader(headers['x-stamp-webauthn'], 'X-Stamp-WebAuthn', MAX_HEADER_LENGTH);
  const attested = singleHeader(headers['x-stamp-attested'], 'X-Stamp-Attested', maxAttestedLength);
  const sent: string[] = [];
  if (apiKey !== undefined) sent.push('X-Stamp');
  if (webAuthn !== undefined) sent.push('X-Stamp-WebAuthn');
  if (attested !== undefined) sent.push('X-Stamp-Attested');
  if (sent.length > 1) throw unreadable(sent[0]!, `${sent[1]!} was also sent: send exactly one stamp`);
  if (apiKey !== undefined) return readApiKeyStamp(apiKey);
  if (webAuthn !== undefined) return readWebAuthnStamp(webAuthn);
  if (attested !== undefined) return readAttestedStamp(attested);
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    'cannot authenticate public API activity request without a stamp (X-Stamp/X-Stamp-Webauthn header): sign the request body with an API key or a passkey',
    { category: 'SIGNATURE_MISSING' },
  );
}

/**
 * Verifies that the holder of the stamp's key signed exactly these body bytes; otherwise throws UNAUTHENTICATED
 * SIGNATURE_INVALID. ECDSA: strict DER, low and high s (so (r, n-s) is valid as well: never identify anything by its
 * signature). Ed25519: the strict rule set of `ed25519SignatureProblem`. Knows nothing about users or expiry.
 * @param address where the request comes from: callers take turns
 */
export async function verifyApiKeyStamp(stamp: ApiKeyStamp, body: Uint8Array, address = ''): Promise<void> {
  const { scheme, publicKey } = stamp;
  const curve = CURVE_OF_SCHEME[scheme];
  const refuse = (reason: string, cause?: unknown): CoordinatorError =>
    new CoordinatorError('UNAUTHENTICATED', `could not verify api key signature: ${reason}`, {
      category: 'SIGNATURE_INVALID',
      cause,
    });
  const key = (() => {
    try {
      return apiKeyObject(publicKey, curve);
    } catch (cause) {
      throw refuse(cause instanceof CoordinatorError ? cause.message : 'the public key cannot be used', cause);
    }
  })();

  const signature = hexToBytes(stamp.signature);
  if (signature === undefined) throw refuse('the signature is not hex');
  const problem =
    curve === 'API_KEY_CURVE_ED25519'
      ? ed25519SignatureProblem(signature)
      : ecdsaSignatureProblem(signature, curve === 'API_KEY_CURVE_P256' ? 'p256' : 'secp256k1');
  if (problem !== undefined) throw refuse(problem);

  const path = callerPath(address);
  const isEip191 = scheme === 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191';
  const isValid = isEip191
    ? // node:crypto cannot verify a digest it did not compute itself, and OpenSSL's EVP does not sign over Keccak.
      chosenSecp256k1().library.verifyEcdsa(
        compactSignature(signature),
        await digestInTurns(body, path),
        Buffer.from(publicKey, 'hex'),
      )
    : await verifySignature(curve === 'API_KEY_CURVE_ED25519' ? null : 'sha256', body, key, signature, path);
  if (!isValid) {
    throw refuse(
      `the signature is not one over these ${body.length} body bytes by public key \`${publicKey}\` (${scheme}): stamp the exact bytes that are sent`,
    );
  }
}

/** Keccak-256 over the prefixed message that `personal_sign` signs (EIP-191, version 0x45); 32 bytes. */
export function personalMessageDigest(message: Uint8Array): Uint8Array {
  return prefixed(message).update(message).digest();
}

function prefixed({ length }: Uint8Array) {
  return keccak_256.create().update(Buffer.from(personalMessagePrefix(length)));
}

/** Number of bytes for which Keccak takes 10 ms. */
const bytesOfTurn = 256 * 1024;

/** Like `personalMessageDigest`, for a message so long that others would have to wait. */
async function digestInTurns(message: Uint8Array, path: QueuePath): Promise<Uint8Array> {
  const digest = prefixed(message);
  for (let at = 0; at < message.length; at += bytesOfTurn) {
    const turn = thisThread.next(path);
    if (turn) await turn;
    digest.update(message.subarray(at, at + bytesOfTurn));
  }
  return digest.digest();
}

function readApiKeyStamp(header: string): ApiKeyStamp {
  const name = 'X-Stamp';
  const { publicKey, scheme, signature } = readStrings(base64Text(header, name), name, [
    'publicKey',
    'scheme',
    'signature',
  ]);
  if (!isApiKeyScheme(scheme)) {
    throw unreadable(name, `scheme \`${scheme}\` is unknown: use one of ${Object.keys(CURVE_OF_SCHEME).join(', ')}`);
  }
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(signature)) throw unreadable(name, 'signature is not hex: send it without 0x');
  try {
    return {
      kind: 'api-key',
      scheme,
      publicKey: normalizePublicKey(publicKey, CURVE_OF_SCHEME[scheme]),
      signature: signature.toLowerCase(),
    };
  } catch (cause) {
    throw unreadable(name, cause instanceof CoordinatorError ? cause.message : 'the public key cannot be used', cause);
  }
}

function readWebAuthnStamp(header: string): WebAuthnStamp {
  const name = 'X-Stamp-WebAuthn';
  const members = ['credentialId', 'authenticatorData', 'clientDataJson', 'signature'] as const;
  const sent = readStrings(header, name, members);
  const base64url = (member: (typeof members)[number]): string => {
    const bytes = decodeBase64(sent[member]);
    if (bytes === undefined || bytes.length === 0) throw unreadable(name, `${member} is not base64url`);
    return bytes.toString('base64url');
  };
  return {
    kind: 'webauthn',
    scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN',
    credentialId: base64url('credentialId'),
    authenticatorData: base64url('authenticatorData'),
    clientDataJson: base64url('clientDataJson'),
    signature: base64url('signature'),
  };
}

function isApiKeyScheme(scheme: string): scheme is ApiKeyScheme {
  return Object.hasOwn(CURVE_OF_SCHEME, scheme);
}

function hexToBytes(hex: string): Uint8Array | undefined {
  const bytes = Buffer.from(hex, 'hex');
  return hex.length > 0 && bytes.length * 2 === hex.length ? bytes : undefined;
}
