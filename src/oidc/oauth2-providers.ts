/** An OAuth 2.0 provider (RFC 6749) that identifies people without ID tokens. */
export interface Oauth2Provider {
  /** Where codes are exchanged for access tokens. */
  readonly tokenUrl: string;
  /** Where the provider returns the owner of an access token. */
  readonly userUrl: string;
  /** The path of the person's id in that response: member names, separated by dots. */
  readonly userId: string;
  /** The scope required for that response. */
  readonly scopes: readonly string[];
  /** How the application authenticates (RFC 6749, section 2.3.1): by header, or by members of the form. */
  readonly clientAuthentication: 'basic' | 'post';
}

/**
 * The providers that clients know by name (docs/protocol.md, OAuth 2.0), according to their developer documentation.
 */
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

/** The prefix of a provider's subjects: `x` of `OAUTH2_PROVIDER_X`. No two providers share one. */
export function subjectPrefix(provider: string): string {
  return provider.replace(/^OAUTH2_PROVIDER_/, '').toLowerCase();
}
