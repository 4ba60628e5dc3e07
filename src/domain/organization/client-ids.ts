import type { OrganizationView } from './organization.js';

/** The applications that speak for an organization's users at providers. */
export interface ClientIds {
  /** At OpenID providers, as the configuration of the auth proxy lists them. */
  readonly listed: readonly string[];
  /** At OAuth 2.0 providers, for which this installation is the issuer. */
  readonly oauth2: readonly string[];
}

/** The client ids that an organization has told. */
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
