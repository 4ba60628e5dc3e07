import type { AuthProxySettings } from '../domain/organization/auth-proxy.js';
import type { OrganizationView } from '../domain/organization/organization.js';

/** The port for other organizations. */
export interface OrganizationPort {
  /** The organization as it is recorded now. */
  view(organizationId: string): Promise<OrganizationView>;
  /** What a token has been used for, in whichever organization that is recorded. */
  tokenUses(tokenId: string): Promise<ReadonlySet<string>>;
  /**
   * The sub-organization of a parent in which a contact was proved first, out of everything recorded; undefined for
   * none.
   */
  homeOfContact(parentId: string, kind: 'EMAIL' | 'PHONE_NUMBER', contact: string): Promise<string | undefined>;
  /** The auth proxy configuration of an organization; undefined if none is enabled. */
  authProxySettings(organizationId: string): Promise<AuthProxySettings | undefined>;
}
