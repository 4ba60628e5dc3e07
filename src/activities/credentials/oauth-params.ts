import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { Limits } from '../../domain/organization/limits.js';
import { clientIdsOf, type ClientIds } from '../../domain/organization/client-ids.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { Label, Nested, Text } from '../../wire/fields.js';
import { checkNeverUsed, claimsOf, recalledTokens, recordedTokens, type RecordedTokens } from '../auth/token-uses.js';
import type { OidcIdentity } from '../../ports/oidc.js';
import type { PreparePorts } from '../../ports/prepare.js';

/** Longest OIDC token, in characters: 16 KiB in base64. */
export const maxOidcToken = 22_528;

class OidcClaims {
  @Text({ min: 1, about: 'Issuer of the identity.' })
  iss!: string;

  @Text({ min: 1, about: 'Subject: the id of the person at the issuer.' })
  sub!: string;

  @Text({ min: 1, about: 'Audience: the client id of the application.' })
  aud!: string;
}

/** An identity at an OpenID provider, first version. */
export class OauthProviderParams {
  @Label({ about: 'The name of the identity.' })
  providerName!: string;

  @Text({ min: 1, max: maxOidcToken, about: 'An OIDC token that proves it.' })
  oidcToken!: string;
}

/** An identity at an OpenID provider. */
export class OauthProviderParamsV2 {
  @Label({ about: 'The name of the identity.' })
  providerName!: string;

  @Text({ optional: true, max: maxOidcToken, about: 'An OIDC token that proves it.' })
  oidcToken?: string;

  @Nested(() => OidcClaims, {
    optional: true,
    about:
      'Instead of a token: the same person for a further audience, with the issuer and subject of a token in the list; both ' +
      'audiences must be client ids listed by the parent.',
  })
  oidcClaims?: OidcClaims;
}

/** An identity with the name it has here. */
export interface NamedIdentity extends Pick<OidcIdentity, 'issuer' | 'audience' | 'subject'> {
  readonly providerName: string;
}

/** The identities and tokens in a list of providers. */
interface VerifiedIdentities extends RecordedTokens {
  readonly identities: readonly NamedIdentity[];
  /** Claims of each token; undefined where there is no token. */
  readonly proved?: readonly (OidcIdentity | undefined)[];
}

/**
 * Whose identities are registered: those of users of sub-organizations, or of members of the organization whose client
 * ids count.
 */
interface Registrars {
  readonly clientIds: ClientIds;
  readonly isOfSubOrganization: boolean;
}

/** The client ids that count for users of an organization: its parent's, if it has one. */
export async function registrarsOf(
  organization: OrganizationView,
  { organizations }: Pick<PreparePorts, 'organizations'>,
): Promise<Registrars> {
  const { parentOrganizationId } = organization;
  if (parentOrganizationId === undefined) return { clientIds: clientIdsOf(organization), isOfSubOrganization: false };
  return { clientIds: clientIdsOf(await organizations.view(parentOrganizationId)), isOfSubOrganization: true };
}

/**
 * The identities in a list of providers, each proved by its own token, or by claims that name the person of a proved
 * one for another client id of the parent (docs/adr/0016). `field` names the list in errors.
 * @throws {CoordinatorError} INVALID_ARGUMENT for what is not proved, FAILED_PRECONDITION for a used token
 */
export async function verifiedIdentities(
  providers: readonly OauthProviderParamsV2[],
  ports: PreparePorts,
  registrars: Registrars,
  field: string,
  { oauthProviders: most }: Limits,
): Promise<VerifiedIdentities> {
  if (providers.length > most) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `${field}: a user may have at most ${most} OAuth providers, got ${providers.length}; send fewer`,
    );
  }
  // In order: once a token is refused, the issuers of later ones are not asked.
  const proved: (OidcIdentity | undefined)[] = [];
  for (const { oidcToken } of providers) {
    proved.push(oidcToken ? await ports.oidc.verify(oidcToken, 'registration') : undefined);
  }
  const identities = namedIdentities(providers, proved, registrars, field);
  const tokens = proved.flatMap((one) => one ?? []);
  for (const { tokenId } of tokens) {
    await checkNeverUsed({ tokenId, what: 'OIDC token', remedy: 'log in at the provider again for a new one' }, ports);
  }
  return { identities, proved, ...recordedTokens(tokens) };
}

/**
 * A token that names other clients as well logs in only where its client id is listed.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export async function checkClientOfLogin(
  token: OidcIdentity,
  organization: OrganizationView,
  ports: Pick<PreparePorts, 'organizations'>,
): Promise<void> {
  if (!token.namesOtherClients) return;
  checkClientId(token.audience, token, await registrarsOf(organization, ports), 'parameters.oidcToken');
}

/** The result of `verifiedIdentities`, from a list that was recorded: what its tokens say was verified then. */
export function recalledIdentities(
  providers: readonly OauthProviderParamsV2[],
): RecordedTokens & { readonly identities: readonly NamedIdentity[] } {
  const identities = providers.map(({ providerName, oidcToken, oidcClaims }) => {
    if (oidcToken) return { providerName, ...claimedIdentity(oidcToken) };
    const { iss: issuer, aud: audience, sub: subject } = oidcClaims!;
    return { providerName, issuer, audience, subject };
  });
  return { identities, ...recalledTokens(providers.map(({ oidcToken }) => oidcToken)) };
}

/** The identity in a token that was verified when it was recorded. */
export function claimedIdentity(oidcToken: string): Omit<NamedIdentity, 'providerName'> {
  const { iss, aud, azp, sub } = claimsOf(oidcToken);
  // Some issuers write one audience as a list; of several, it is the one that the token was issued to.
  const [first, ...others] = [aud].flat();
  const audience = others.length > 0 ? azp : first;
  return { issuer: iss!, audience: audience!, subject: sub! };
}

function namedIdentities(
  providers: readonly OauthProviderParamsV2[],
  proved: readonly (OidcIdentity | undefined)[],
  registrars: Registrars,
  field: string,
): readonly NamedIdentity[] {
  return providers.map(({ providerName, oidcClaims }, index) => {
    const own = proved[index];
    const where = `${field}[${index}]`;
    if (own) {
      if (oidcClaims) throw invalidField(`${where}.oidcClaims`, 'cannot be combined with oidcToken: send one of them');
      const { issuer, audience, subject } = own;
      // A member's application is the organization's own affair; people who sign up choose theirs.
      const isFree = !own.isIssuedHere && (!registrars.isOfSubOrganization || registrars.clientIds.listed.length === 0);
      if (!isFree || own.namesOtherClients) checkClientId(audience, own, registrars, `${where}.oidcToken`);
      return { providerName, issuer, audience, subject };
    }
    if (!oidcClaims) throw invalidField(where, 'needs oidcToken or oidcClaims: nothing proves the identity');
    const { iss, sub, aud } = oidcClaims;
    const by = proved.find((one) => one?.issuer === iss && one.subject === sub);
    if (!by) {
      throw invalidField(
        `${where}.oidcClaims`,
        `no oidcToken in the list proves issuer \`${iss}\` and subject \`${sub}\`: send one for the same person`,
      );
    }
    // The operator of an app has tokens of everyone who logs in to it: those must not speak for another app.
    for (const audience of [aud, by.audience]) checkClientId(audience, by, registrars, `${where}.oidcClaims`);
    return { providerName, issuer: iss, audience: aud, subject: sub };
  });
}

/** @throws {CoordinatorError} INVALID_ARGUMENT if the audience is not one of the parent's applications */
function checkClientId(
  audience: string,
  { isIssuedHere }: OidcIdentity,
  { clientIds, isOfSubOrganization }: Registrars,
  where: string,
): void {
  if ((isIssuedHere ? clientIds.oauth2 : clientIds.listed).includes(audience)) return;
  const whose = isOfSubOrganization ? 'the parent organization' : 'the organization';
  throw invalidField(
    where,
    `\`${audience}\` is not a client id of ${whose}: ` +
      (isIssuedHere
        ? 'an application of X or Discord is registered there with create_oauth2_credential'
        : 'list it there in walletKitSettings.oauthClientIds or socialLinkingClientIds, with update_auth_proxy_config'),
  );
}
