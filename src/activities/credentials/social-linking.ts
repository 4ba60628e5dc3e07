import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { contactKey } from '../../domain/contact-key.js';
import type { User } from '../../domain/organization/users.js';
import type { OidcIdentity } from '../../ports/oidc.js';
import type { PreparePorts } from '../../ports/prepare.js';

/**
 * The e-mail address by which an identity may be linked to a user who has proved the same address: the issuer is
 * trusted to know the owner of the address and says that it is verified, and the audience is a client id listed by the
 * parent (`socialLinkingClientIds`), because the operator of an app gets tokens of everyone who logs in to it.
 * Undefined otherwise.
 */
export async function linkingEmail(
  { verifiedEmail, audience }: OidcIdentity,
  { parentOrganizationId }: OrganizationView,
  { organizations }: Pick<PreparePorts, 'organizations'>,
): Promise<string | undefined> {
  if (verifiedEmail === undefined || parentOrganizationId === undefined) return undefined;
  const { socialLinkingClientIds = [] } = (await organizations.authProxySettings(parentOrganizationId)) ?? {};
  return socialLinkingClientIds.includes(audience) ? verifiedEmail : undefined;
}

/**
 * A parent gives a user of a sub-organization no way in except one that the user's own proved address vouches for
 * (docs/protocol.md, who may stamp what): otherwise an administrator of the parent could become anyone.
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
export function checkLinkedByEmail(user: User, email: string | undefined, field: string): void {
  const { userEmail, emailVerified } = user;
  if (email !== undefined && emailVerified && userEmail !== undefined && contactKey(userEmail) === contactKey(email)) {
    return;
  }
  throw new CoordinatorError(
    'PERMISSION_DENIED',
    `${field}: the parent organization may add to user \`${user.userId}\` only an identity whose token proves the user's own ` +
      'verified e-mail address, by an issuer of SOCIAL_LINKING_ISSUERS and for a client id in socialLinkingClientIds; ' +
      'otherwise the user must add it',
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}
