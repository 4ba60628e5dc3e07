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

/** How the filters for an identity name its claims. */
const claimNames = {
  OIDC_CLAIMS: ['iss', 'sub', 'aud'],
  OAUTH_CLAIM: ['issuer', 'subject', 'audience'],
} as const;

/** The identity in the JSON text of a filter, as `{ iss, sub, aud }`. @throws {CoordinatorError} INVALID_ARGUMENT */
export function claimedIdentity(text: string, filterType: keyof typeof claimNames = 'OIDC_CLAIMS'): string {
  const names = claimNames[filterType];
  try {
    const claims = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const [issuer, subject, audience] = names.map((name) => claims[name]);
    if (typeof issuer === 'string' && typeof subject === 'string' && typeof audience === 'string') {
      return oauthIdentity({ issuer, subject, audience });
    }
  } catch {
    // The error below is the same, whatever the reason.
  }
  const [iss, sub, aud] = names;
  throw invalidField('filterValue', `must be JSON with the strings \`${iss}\`, \`${sub}\` and \`${aud}\``);
}
