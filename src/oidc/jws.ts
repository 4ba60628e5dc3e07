import { compactVerify, errors } from 'jose';
import { compactJws } from '../domain/compact-jws.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { invalidOidcToken } from './refusals.js';
import { algorithms, type SigningKey } from './signing-keys.js';

/** A compact JWS (RFC 7515, section 7.1) with its header parsed; its signature is not verified. */
export interface Jws {
  readonly compact: string;
  readonly algorithm: string;
  readonly keyId: string | undefined;
}

const maxLength = 16 * 1_024;

/**
 * Parses the header of a signed token, with or without base64 around it.
 * @throws {CoordinatorError} INVALID_OIDC_TOKEN
 */
export function readJws(token: string): Jws {
  // A third more for the base64 around it.
  if (token.length > Math.ceil(maxLength / 3) * 4) throw tooLong();
  const compact = compactJws(token);
  if (compact.length > maxLength) throw tooLong();
  if (/^[\w-]*(?:\.[\w-]*){4}$/.test(compact)) throw invalidOidcToken('the token is encrypted: send a signed one');
  if (!/^[\w-]+\.[\w-]*\.[\w-]*$/.test(compact)) {
    throw invalidOidcToken('the token is not a compact JWT: send header, claims and signature, separated by dots');
  }
  // `jwk`, `jku`, `x5c` and `x5u` are ignored: an issuer's keys come from the issuer (RFC 8725, section 3.10).
  const { alg, kid, typ = 'JWT', crit } = jsonObject(compact.slice(0, compact.indexOf('.')), 'header');
  if (typeof alg !== 'string' || !algorithms.includes(alg)) {
    throw invalidOidcToken(`its \`alg\` is not one of ${algorithms.join(', ')}`);
  }
  // Tokens of other kinds by the same issuer must not pass for ID tokens (RFC 8725, section 3.11).
  if (typeof typ !== 'string' || !/^(?:application\/)?jwt$/i.test(typ)) {
    throw invalidOidcToken('its `typ` is not `JWT`: send an ID token');
  }
  if (crit !== undefined) throw invalidOidcToken('it has critical headers, which this server does not support');
  if (kid !== undefined && typeof kid !== 'string') throw invalidOidcToken('its `kid` is not a string');
  return { compact, algorithm: alg, keyId: kid };
}

const tooLong = (): Error => invalidOidcToken(`the token is longer than ${maxLength} characters`);

/**
 * Claims of a token; none can be trusted before its signature is verified.
 * @throws {CoordinatorError} INVALID_OIDC_TOKEN
 */
export function claimsOf({ compact }: Jws): Readonly<Record<string, unknown>> {
  return jsonObject(compact.slice(compact.indexOf('.') + 1, compact.lastIndexOf('.')), 'claims');
}

function jsonObject(part: string, what: string): Readonly<Record<string, unknown>> {
  try {
    return parseStrictJson(Buffer.from(part, 'base64url')).value;
  } catch {
    // The parser's message quotes the text, and no part of a token belongs in an error.
    throw invalidOidcToken(`its ${what} must be one JSON object in UTF-8 without duplicate members`);
  }
}

/**
 * Verifies the signature with the only key of the token's issuer that fits the token (`isKeyFor`).
 * @throws {CoordinatorError} INVALID_OIDC_TOKEN, also for no key or several
 */
export async function checkSignature({ compact, algorithm }: Jws, keys: readonly SigningKey[]): Promise<void> {
  const [key] = keys;
  if (key === undefined) throw invalidOidcToken('its issuer has no key for its `kid` and `alg`');
  // Trying one after the other would let anyone who can publish one of them speak for all.
  if (keys.length > 1) throw invalidOidcToken('more than one key of its issuer could have signed it: it needs a `kid`');
  try {
    await compactVerify(compact, { ...key, alg: algorithm }, { algorithms: [algorithm] });
  } catch (cause) {
    const problem =
      cause instanceof errors.JWSSignatureVerificationFailed
        ? "its signature was not made with its issuer's key"
        : "its issuer's key cannot be used";
    throw invalidOidcToken(problem, cause);
  }
}
