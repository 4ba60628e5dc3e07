import { compactVerify } from 'jose';
import { CoordinatorError } from '../domain/errors.js';

/** Claims of a verification token (docs/protocol.md, verification tokens). */
export interface ProvenContact {
  readonly contact: string;
  readonly kind: 'EMAIL' | 'PHONE_NUMBER';
}

/**
 * Parses a verification token and verifies its signature: until then its claims must not be believed, or used in a
 * query.
 * @param key uncompressed P-256 point, hex
 * @param now milliseconds since the epoch
 * @throws {CoordinatorError} INVALID_ARGUMENT unless it is a token of this organization that has not expired
 */
export async function provenContact(
  token: string,
  key: string,
  organizationId: string,
  now: number,
): Promise<ProvenContact> {
  const claims = await claimsOf(token, key);
  if (!claims) throw refused('was not signed by this server');
  if (claims['organization_id'] !== organizationId) throw refused('was issued for another organization');
  if (!(Number(claims['exp']) > now)) throw refused('has expired: verify the contact again');
  const { contact, verification_type: type } = claims;
  return { contact: String(contact), kind: type === 'OTP_TYPE_EMAIL' ? 'EMAIL' : 'PHONE_NUMBER' };
}

async function claimsOf(token: string, key: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const point = Buffer.from(key, 'hex');
  const jwk = { kty: 'EC', crv: 'P-256', x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33) };
  try {
    const { payload, protectedHeader } = await compactVerify(
      token,
      { ...jwk, alg: 'ES256' },
      { algorithms: ['ES256'] },
    );
    if (protectedHeader.typ !== 'JWT') return undefined;
    return JSON.parse(Buffer.from(payload).toString()) as Readonly<Record<string, unknown>>;
  } catch {
    // Neither the library's message nor the token may appear in a response.
    return undefined;
  }
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

/** The kind of code that a token claims it was given for, unverified; undefined if it claims none. */
export function claimedType(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const type = (claims as Readonly<Record<string, unknown>> | null)?.['verification_type'];
    return typeof type === 'string' ? type : undefined;
  } catch {
    return undefined;
  }
}
