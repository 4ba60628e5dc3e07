import { createPublicKey, verify } from 'node:crypto';
import { CoordinatorError } from '../domain/errors.js';

/** What a verification token proves (client protocol 8.1). */
export interface ProvenContact {
  readonly contact: string;
  readonly kind: 'EMAIL' | 'PHONE_NUMBER';
}

/** The DER prefix of an uncompressed P-256 point as SubjectPublicKeyInfo (RFC 5480). */
const spkiPrefix = '3059301306072a8648ce3d020106082a8648ce3d030107034200';

/**
 * Reads a verification token, its signature checked: what it says must not be believed, or asked for, before.
 * @param key uncompressed P-256 point, hex
 * @param now milliseconds since the epoch
 * @throws {CoordinatorError} INVALID_ARGUMENT unless it is a token of this organization that has not expired
 */
export function provenContact(token: string, key: string, organizationId: string, now: number): ProvenContact {
  const claims = claimsOf(token, key);
  if (!claims) throw refused('is not one that this server has signed');
  if (claims['organization_id'] !== organizationId) throw refused('was issued for another organization');
  if (!(Number(claims['exp']) > now)) throw refused('has expired: verify the contact again');
  const { contact, verification_type: type } = claims;
  return { contact: String(contact), kind: type === 'OTP_TYPE_EMAIL' ? 'EMAIL' : 'PHONE_NUMBER' };
}

function claimsOf(token: string, key: string): Readonly<Record<string, unknown>> | undefined {
  const [header, payload, signature, ...more] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0) return undefined;
  const publicKey = createPublicKey({ key: Buffer.from(spkiPrefix + key, 'hex'), format: 'der', type: 'spki' });
  const signed = Buffer.from(`${header}.${payload}`);
  const isOurs = verify(
    'sha256',
    signed,
    { key: publicKey, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
  return isOurs
    ? (JSON.parse(Buffer.from(payload, 'base64url').toString()) as Readonly<Record<string, unknown>>)
    : undefined;
}

function refused(why: string): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', `invalid request: verificationToken: ${why}`, {
    category: 'REQUEST_INVALID',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'verificationToken', description: why }],
      },
    ],
  });
}

/** The kind of code that a token says it was given for, unchecked; undefined for what says nothing. */
export function claimedType(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const type = (claims as Readonly<Record<string, unknown>> | null)?.['verification_type'];
    return typeof type === 'string' ? type : undefined;
  } catch {
    return undefined;
  }
}
