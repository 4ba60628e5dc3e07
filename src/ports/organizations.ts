import type { AuthProxySettings } from '../domain/organization/auth-proxy.js';
import type { OrganizationView } from '../domain/organization/organization.js';

/** The port to other organizations. */
export interface OrganizationPort {
  /** The organization as it is now. */
  view(organizationId: string): Promise<OrganizationView>;
  /** For what a token was used so far, in whatever organization that is recorded. */
  tokenUses(tokenId: string): Promise<ReadonlySet<string>>;
  /** The sub-organization in which a contact was proved first under a parent, of all that is recorded; undefined for none. */
  homeOfContact(parentId: string, kind: 'EMAIL' | 'PHONE_NUMBER', contact: string): Promise<string | undefined>;
  /** What the auth proxy of an organization is configured with; undefined where none is enabled. */
  authProxySettings(organizationId: string): Promise<AuthProxySettings | undefined>;
}
