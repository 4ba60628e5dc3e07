import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { CoordinatorError } from '../domain/errors.js';
import type { ApiKeyCurve } from '../domain/key-formats.js';
import { apiKeyObject, normalizePublicKey } from './keys.js';
import { compactSignature, ecdsaSignatureProblem, ed25519SignatureProblem, verifySignature } from './signatures.js';

/** The schemes of an API key stamp (client protocol, section 1.1). */
export type ApiKeyScheme =
  | 'SIGNATURE_SCHEME_TK_API_P256'
  | 'SIGNATURE_SCHEME_TK_API_SECP256K1'
  | 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191'
  | 'SIGNATURE_SCHEME_TK_API_ED25519';

/** Every scheme a stamp may have; also the `scheme` of a vote (client protocol, section 2.3). */
export type StampScheme = ApiKeyScheme | 'SIGNATURE_SCHEME_TK_WEBAUTHN';

/** The curve a scheme's key is on: a credential matches a stamp only when both key and curve are equal. */
export const CURVE_OF_SCHEME: Readonly<Record<ApiKeyScheme, ApiKeyCurve>> = {
  SIGNATURE_SCHEME_TK_API_P256: 'API_KEY_CURVE_P256',
  SIGNATURE_SCHEME_TK_API_SECP256K1: 'API_KEY_CURVE_SECP256K1',
  SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191: 'API_KEY_CURVE_SECP256K1',
  SIGNATURE_SCHEME_TK_API_ED25519: 'API_KEY_CURVE_ED25519',
};

/** Header `X-Stamp`, read but not verified: normalised public key and lower-case signature, both hex. */
export interface ApiKeyStamp {
  readonly kind: 'api-key';
  readonly scheme: ApiKeyScheme;
  readonly publicKey: string;
  readonly signature: string;
}

/** Header `X-Stamp-WebAuthn`, read but not verified: all members base64url without padding. */
export interface WebAuthnStamp {
  readonly kind: 'webauthn';
  readonly scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN';
  readonly credentialId: string;
  readonly authenticatorData: string;
  readonly clientDataJson: string;
  readonly signature: string;
}

/** A stamp as sent, before anything in it is trusted. */
export type Stamp = ApiKeyStamp | WebAuthnStamp;

const MAX_HEADER_LENGTH = 8192;

/**
 * Reads the one stamp of a request from its headers (names in lower case). Throws UNAUTHENTICATED: SIGNATURE_MISSING
 * when there is no stamp, SIGNATURE_INVALID when a stamp cannot be read. Proves nothing about who sent it.
 */
export function readStamp(headers: Readonly<Record<string, string | string[] | undefined>>): Stamp {
  const apiKey = singleHeader(headers['x-stamp'], 'X-Stamp');
  const webAuthn = singleHeader(headers['x-stamp-webauthn'], 'X-Stamp-WebAuthn');
  if (apiKey !== undefined && webAuthn !== undefined) {
    throw unreadable('X-Stamp', 'X-Stamp-WebAuthn was sent too: send exactly one stamp');
  }
  if (apiKey !== undefined) return readApiKeyStamp(apiKey);
  if (webAuthn !== undefined) return readWebAuthnStamp(webAuthn);
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    'cannot authenticate public API activity request without a stamp (X-Stamp/X-Stamp-Webauthn header): sign the request body with an API key or a passkey',
    { category: 'SIGNATURE_MISSING' },
  );
}

/**
 * Proves that the holder of the stamp's key signed exactly these body bytes; throws UNAUTHENTICATED SIGNATURE_INVALID
 * otherwise. ECDSA: strict DER, low and high s (so (r, n-s) verifies as well: never identify anything by its
 * signature). Ed25519: the strict rule set of `ed25519SignatureProblem`. Knows nothing of users or expiry.
 */
export async function verifyApiKeyStamp(stamp: ApiKeyStamp, body: Uint8Array): Promise<void> {
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

  const isValid =
    scheme === 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191'
      ? // node:crypto cannot verify a digest it did not compute itself, and OpenSSL's EVP does not sign over Keccak.
        secp256k1.verify(compactSignature(signature), personalMessageDigest(body), Buffer.from(publicKey, 'hex'), {
          prehash: false,
          lowS: false,
        })
      : await verifySignature(curve === 'API_KEY_CURVE_ED25519' ? null : 'sha256', body, key, signature);
  if (!isValid) {
    throw refuse(
      `the signature is not one over these ${body.length} body bytes by public key \`${publicKey}\` (${scheme}): stamp the exact bytes that are sent`,
    );
  }
}

/** Keccak-256 over the prefixed message that `personal_sign` signs (EIP-191, version 0x45); 32 bytes. */
export function personalMessageDigest(message: Uint8Array): Uint8Array {
  return keccak_256
    .create()
    .update(Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`))
    .update(message)
    .digest();
}

/**
 * The bytes of base64url or standard base64, padded or not, or undefined. Strict otherwise: no other character, no
 * mixed alphabets, no bits beyond the last byte, so that no two spellings differ in anything but alphabet and padding.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const unpadded = text.replace(/={1,2}$/, '');
  if (unpadded.length !== text.length && text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(unpadded, 'base64url');
  if (bytes.toString('base64url') === unpadded) return bytes;
  return bytes.toString('base64').replace(/=+$/, '') === unpadded ? bytes : undefined;
}

function unreadable(header: string, reason: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError('UNAUTHENTICATED', `could not read the ${header} header: ${reason}`, {
    category: 'SIGNATURE_INVALID',
    cause,
  });
}

function singleHeader(value: string | string[] | undefined, header: string): string | undefined {
  if (value === undefined) return undefined;
  const values = Array.isArray(value) ? value : [value];
  if (values.length > 1) throw unreadable(header, 'it was sent more than once: send exactly one stamp');
  const [single] = values;
  if (single === undefined) return undefined;
  if (single.length > MAX_HEADER_LENGTH) {
    throw unreadable(header, `it has ${single.length} characters: at most ${MAX_HEADER_LENGTH} are read`);
  }
  return single;
}

function readApiKeyStamp(header: string): ApiKeyStamp {
  const name = 'X-Stamp';
  // Node joins a header that is sent twice with a comma, which no base64 contains.
  if (header.includes(',')) throw unreadable(name, 'it was sent more than once: send exactly one stamp');
  const bytes = decodeBase64(header);
  if (bytes === undefined) throw unreadable(name, 'it is not base64url: encode the JSON of the stamp');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw unreadable(name, 'it is not base64url of UTF-8 text', cause);
  }
  const { publicKey, scheme, signature } = readStrings(text, name, ['publicKey', 'scheme', 'signature']);
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

/** A JSON object of exactly these members, all strings, none twice. */
function readStrings<Member extends string>(
  text: string,
  header: string,
  members: readonly Member[],
): Record<Member, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw unreadable(header, `it is not valid JSON: send one object with the members ${members.join(', ')}`, cause);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw unreadable(header, `it is not a JSON object: send the members ${members.join(', ')}`);
  }
  const sent = new Map<string, unknown>(Object.entries(parsed));
  const read = Object.fromEntries(
    members.map((member) => {
      const value = sent.get(member);
      if (value === undefined) throw unreadable(header, `member ${member} is missing`);
      if (typeof value !== 'string') throw unreadable(header, `member ${member} is not a string`);
      return [member, value];
    }),
  ) as Record<Member, string>;
  const extra = [...sent.keys()].find((name) => !(members as readonly string[]).includes(name));
  if (extra !== undefined) throw unreadable(header, `member \`${extra.slice(0, 64)}\` is unknown: remove it`);
  // JSON.parse keeps the last of two equal members without a word; in a flat object of strings they can be counted.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g)?.length;
  if (strings !== 2 * members.length) throw unreadable(header, 'a member is there twice');
  return read;
}

function isApiKeyScheme(scheme: string): scheme is ApiKeyScheme {
  return Object.hasOwn(CURVE_OF_SCHEME, scheme);
}

function hexToBytes(hex: string): Uint8Array | undefined {
  const bytes = Buffer.from(hex, 'hex');
  return hex.length > 0 && bytes.length * 2 === hex.length ? bytes : undefined;
}
