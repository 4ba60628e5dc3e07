import type { OrganizationView } from './organization.js';

/** The applications that may speak for an organization's users at providers. */
export interface ClientIds {
  /** At OpenID providers, as listed in the auth proxy's configuration. */
  readonly listed: readonly string[];
  /** At OAuth 2.0 providers, with this installation as the issuer. */
  readonly oauth2: readonly string[];
}

/** The client ids that an organization has registered. */
export function clientIdsOf({
  authProxy,
  oauth2Credentials,
}: Pick<OrganizationView, 'authProxy' | 'oauth2Credentials'>): ClientIds {
  const { walletKitSettings = {}, socialLinkingClientIds = [] } = authProxy?.settings ?? {};
  const { oauthClientIds = {} } = walletKitSettings as { readonly oauthClientIds?: Readonly<Record<string, string>> };
  return {
    listed: [...Object.values(oauthClientIds), ...socialLinkingClientIds],
    oauth2: [...oauth2Credentials.values()].map(({ clientId }) => clientId),
  };
}
