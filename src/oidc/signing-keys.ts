import type { JWK } from 'jose';

/** A public signature key as an issuer publishes it (RFC 7517), reduced to what verification needs. */
export type SigningKey = Readonly<Pick<JWK, 'kid' | 'alg' | 'crv' | 'x' | 'y' | 'n' | 'e'> & { kty: string }>;

/**
 * The accepted signature algorithms (RFC 7518, RFC 8037, RFC 9864), each with the only kind of key that it works with.
 */
const keyOfAlgorithm: Readonly<Record<string, { readonly kty: string; readonly crv?: string }>> = {
  RS256: { kty: 'RSA' },
  RS384: { kty: 'RSA' },
  RS512: { kty: 'RSA' },
  PS256: { kty: 'RSA' },
  PS384: { kty: 'RSA' },
  PS512: { kty: 'RSA' },
  ES256: { kty: 'EC', crv: 'P-256' },
  ES384: { kty: 'EC', crv: 'P-384' },
  ES512: { kty: 'EC', crv: 'P-521' },
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
  Ed25519: { kty: 'OKP', crv: 'Ed25519' },
};

const kinds: ReadonlySet<string> = new Set(Object.values(keyOfAlgorithm).map(({ kty }) => kty));

/** The allowed values of a token's `alg`. */
export const algorithms: readonly string[] = Object.keys(keyOfAlgorithm);

/** Whether a token with this algorithm (one of `algorithms`) and key id may be signed with this key. */
export function isKeyFor(key: SigningKey, algorithm: string, keyId: string | undefined): boolean {
  const { kty, crv } = keyOfAlgorithm[algorithm]!;
  return (
    (keyId === undefined || key.kid === keyId) &&
    key.kty === kty &&
    (crv === undefined || key.crv === crv) &&
    (key.alg ?? algorithm) === algorithm
  );
}

const textMembers = ['kid', 'alg', 'use', 'crv', 'x', 'y', 'n', 'e'] as const;
/** RSA of 8 192 bits, in characters of base64url: verifying with a longer one would cost us more than the sender. */
const longestModulus = 1_366;
/** Characters of any other member. Strangers' issuers are kept too, so their keys take what keys need. */
const longestMember = 256;

/**
 * The keys of a published set that may verify signatures, each once. All others are ignored, including damaged ones, and those
 * whose private part was published too.
 */
export function signingKeysOf(published: readonly unknown[]): readonly SigningKey[] {
  const keys = published.flatMap((jwk) => {
    const key = signingKeyOf(jwk);
    return key === undefined ? [] : [key];
  });
  // Some issuers list a key twice; two different keys of one id stay two.
  const listed = new Map(keys.map((key) => [JSON.stringify(Object.entries(key).sort()), key]));
  return [...listed.values()];
}

function signingKeyOf(jwk: unknown): SigningKey | undefined {
  if (typeof jwk !== 'object' || jwk === null) return undefined;
  const published = jwk as Readonly<Record<string, unknown>>;
  const { kty, key_ops: operations } = published;
  if (typeof kty !== 'string' || !kinds.has(kty) || 'd' in published || 'k' in published) return undefined;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return undefined;
  const texts: Partial<Record<(typeof textMembers)[number], string>> = {};
  for (const member of textMembers) {
    const value = published[member];
    if (value === undefined) continue;
    if (typeof value !== 'string') return undefined;
    if (value.length > (member === 'n' ? longestModulus : longestMember)) return undefined;
    texts[member] = value;
  }
  const { use = 'sig', ...key } = texts;
  if (use !== 'sig') return undefined;
  if (kty === 'RSA' && !isSaneExponent(key.e)) return undefined;
  return { kty, ...key };
}

/** With the exponent 1, everything is its own signature; beyond 32 bits, an exponent only takes time. */
function isSaneExponent(exponent = ''): boolean {
  const bytes = Buffer.from(exponent, 'base64url');
  return bytes.length >= 1 && bytes.length <= 4 && bytes.readUIntBE(0, bytes.length) > 1;
}
