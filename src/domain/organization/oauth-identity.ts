import { invalidField } from '../errors.js';
/** The prefix of an issuer's identities (see `oauthIdentity`). */
export function identitiesOfIssuer(issuer: string): string {
  return JSON.stringify([issuer]).replace(/\]$/, ',');
}

/** The key of an identity at an OpenID provider: no two users of an organization share one. */
export function oauthIdentity({
  issuer,
  audience,
  subject,
}: Readonly<Record<'issuer' | 'audience' | 'subject', string>>): string {
  return JSON.stringify([issuer, audience, subject]);
}

/** The identity in the JSON text `{ iss, sub, aud }`. @throws {CoordinatorError} INVALID_ARGUMENT */
export function claimedIdentity(text: string): string {
  try {
    const { iss, sub, aud } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (typeof iss === 'string' && typeof sub === 'string' && typeof aud === 'string') {
      return oauthIdentity({ issuer: iss, subject: sub, audience: aud });
    }
  } catch {
    // The error below is the same, whatever the reason.
  }
  throw invalidField('filterValue', 'must be JSON with the strings `iss`, `sub` and `aud`');
}
