/** An OAuth 2.0 provider (RFC 6749) that says who a person is, without ID tokens. */
export interface Oauth2Provider {
  /** Where codes are exchanged for access tokens. */
  readonly tokenUrl: string;
  /** Where the provider tells whose an access token is. */
  readonly userUrl: string;
  /** Where in that answer the person's id stands: names of members, with dots between. */
  readonly userId: string;
  /** What the person must have agreed to, for the answer to be given. */
  readonly scopes: readonly string[];
  /** How the application authenticates (RFC 6749, section 2.3.1): by header, or by members of the form. */
  readonly clientAuthentication: 'basic' | 'post';
}

/** The providers that clients know by name (client protocol, section 8.4), as their developer documentation has them. */
export const knownOauth2Providers: Readonly<Record<string, Oauth2Provider>> = {
  OAUTH2_PROVIDER_X: {
    tokenUrl: 'https://api.x.com/2/oauth2/token',
    userUrl: 'https://api.x.com/2/users/me',
    userId: 'data.id',
    scopes: ['tweet.read', 'users.read'],
    clientAuthentication: 'basic',
  },
  OAUTH2_PROVIDER_DISCORD: {
    tokenUrl: 'https://discord.com/api/oauth2/token',
    userUrl: 'https://discord.com/api/users/@me',
    userId: 'id',
    scopes: ['identify', 'email'],
    clientAuthentication: 'basic',
  },
};

/** What subjects at a provider begin with: `x` of `OAUTH2_PROVIDER_X`. No two providers share one. */
export function subjectPrefix(provider: string): string {
  return provider.replace(/^OAUTH2_PROVIDER_/, '').toLowerCase();
}
