import { CoordinatorError } from '../domain/errors.js';
import { base64Text, readStrings, unreadable } from './header.js';
import { normalizePublicKey } from './keys.js';
import type { ApiKeyStamp, AttestedScheme, AttestedStamp } from './stamp.js';

const schemes: readonly string[] = [
  'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN',
  'STAMP_ATTESTED_SCHEME_P256_OIDC',
] satisfies readonly AttestedScheme[];

/** Longest accepted header, in characters: Node accepts 16 KiB of headers in total. */
export const maxAttestedLength = 14 * 1024;

const name = 'X-Stamp-Attested';

/** Parses the header: base64url of JSON, or plain JSON. Throws UNAUTHENTICATED SIGNATURE_INVALID. */
export function readAttestedStamp(header: string): AttestedStamp {
  const text = header.trimStart().startsWith('{') ? header : base64Text(header, name);
  const members = ['publicKeyAttestation', 'scheme', 'publicKey', 'signature'] as const;
  const { publicKeyAttestation: token, scheme, publicKey, signature } = readStrings(text, name, members);
  if (!isAttestedScheme(scheme)) {
    throw unreadable(name, `scheme \`${scheme.slice(0, 64)}\` is unknown: use one of ${schemes.join(', ')}`);
  }
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(signature)) throw unreadable(name, 'signature is not hex: send it without 0x');
  // An OIDC token is bound to the exact characters of the key, so there is only one way to write it.
  if (!isCompressed(publicKey)) {
    throw unreadable(name, `publicKey \`${publicKey.slice(0, 130)}\` is not a compressed P-256 key in lower-case hex`);
  }
  return {
    kind: 'attested',
    scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256',
    attestedBy: scheme,
    token,
    publicKey,
    signature: signature.toLowerCase(),
  };
}

/** The part of an attested stamp that is an API key's: a signature over SHA-256 of the body. */
export function signatureOf({ publicKey, signature }: AttestedStamp): ApiKeyStamp {
  return { kind: 'api-key', scheme: 'SIGNATURE_SCHEME_TK_API_P256', publicKey, signature };
}

function isAttestedScheme(scheme: string): scheme is AttestedScheme {
  return schemes.includes(scheme);
}

function isCompressed(publicKey: string): boolean {
  try {
    return normalizePublicKey(publicKey, 'API_KEY_CURVE_P256') === publicKey;
  } catch (error) {
    if (error instanceof CoordinatorError) return false;
    throw error;
  }
}
