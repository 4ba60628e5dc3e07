/** What the identities of an issuer begin with (see `oauthIdentity`). */
export function identitiesOfIssuer(issuer: string): string {
  return JSON.stringify([issuer]).replace(/\]$/, ',');
}

/** What names an identity at an OpenID provider: no two users of an organization share one. */
export function oauthIdentity({
  issuer,
  audience,
  subject,
}: Readonly<Record<'issuer' | 'audience' | 'subject', string>>): string {
  return JSON.stringify([issuer, audience, subject]);
}
