import type { OidcPort, TokenPort } from '../activities/ports.js';
import type { Attestation } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { identitiesOfIssuer, oauthIdentity } from '../domain/organization/oauth-identity.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { AttestedStamp } from '../stamps/attested.js';
import type { Stamp } from '../stamps/verify.js';
import type { OrganizationLoader } from './load-organization.js';
import type { Clock, CredentialOwners, OwnedCredential } from './ports.js';
import { attestedElsewhere, credentialConflict } from './refusals.js';
import type { SubmitRequest } from './requests.js';
import { attestedUser } from './resolve-caller.js';

interface Ports {
  readonly loader: OrganizationLoader;
  readonly owners: CredentialOwners;
  readonly tokens: Pick<TokenPort, 'verifyVerification'>;
  readonly oidc: OidcPort;
  readonly clock: Clock;
}

/**
 * Finds the organization that a request is for when its body names the parent, as whoever logs in may not know their
 * sub-organization, and what the token of an attested stamp proves (client protocol, sections 1.3 and 1.4).
 */
export class Whereabouts {
  constructor(private readonly ports: Ports) {}

  /**
   * The submit as it is driven: in the organization where its credential lives, with what was attested. `position` is
   * what the read models must have seen.
   * @throws {CoordinatorError} UNAUTHENTICATED CREDENTIAL_CONFLICT; INVALID_ARGUMENT or UNAVAILABLE for a token
   */
  async ofSubmit(request: SubmitRequest, position: bigint): Promise<SubmitRequest> {
    const { stamp, organizationId } = request;
    const { definition, type } = request.version;
    const isActivity = definition.kind === 'activity';
    if (stamp.kind === 'attested' && !(isActivity && definition.attestedStamp)) throw attestedElsewhere(type);
    if (!isActivity || !definition.whereTheCredentialLives) return request;
    if (stamp.kind !== 'attested') {
      return { ...request, organizationId: await this.organizationOf(stamp, organizationId, position) };
    }
    const { organization } = await this.ports.loader.load(organizationId);
    const attestation = await this.attested(stamp, organization, position);
    checkIssuer(attestation, organization);
    const key = ownedByAttestation(attestation);
    const home = attestedUser(organization, attestation)
      ? organizationId
      : await this.home(organization, key, position);
    return { ...request, attestation, organizationId: home };
  }

  /**
   * The organization where the credential of a stamp lives: the named one if it is there or nowhere, else the one of its
   * sub-organizations that has it.
   * @throws {CoordinatorError} UNAUTHENTICATED CREDENTIAL_CONFLICT when several have it
   */
  async organizationOf(
    stamp: Exclude<Stamp, AttestedStamp>,
    organizationId: string,
    position: bigint,
  ): Promise<string> {
    const { organization } = await this.ports.loader.load(organizationId);
    const { apiKeyOwners, authenticatorOwners } = organization;
    if (stamp.kind === 'api-key') {
      if (apiKeyOwners.has(stamp.publicKey)) return organizationId;
      return this.home(organization, { kind: 'PUBLIC_KEY', value: stamp.publicKey }, position);
    }
    if (authenticatorOwners.has(stamp.credentialId)) return organizationId;
    return this.home(organization, { kind: 'CREDENTIAL_ID', value: stamp.credentialId }, position);
  }

  private async home(
    { organizationId, parentOrganizationId }: OrganizationView,
    credential: OwnedCredential,
    position: bigint,
  ): Promise<string> {
    // Only a parent has sub-organizations to look in.
    if (parentOrganizationId !== undefined) return organizationId;
    const homes = await this.ports.owners.subOrganizationsWith(organizationId, credential, position);
    if (homes.length > 1) {
      throw credentialConflict(`more than one sub-organization of \`${organizationId}\` has this credential`);
    }
    return homes[0] ?? organizationId;
  }

  private async attested(
    { attestedBy, token, publicKey }: AttestedStamp,
    organization: OrganizationView,
    position: bigint,
  ): Promise<Attestation> {
    const { tokens, oidc, clock } = this.ports;
    if (attestedBy === 'STAMP_ATTESTED_SCHEME_P256_OIDC') {
      await this.checkIssuerKnown(oidc.claimedIssuer(token), organization, position);
      const { issuer, audience, subject } = await oidc.verify(token, { login: { publicKey } });
      return { kind: 'identity', issuer, audience, subject };
    }
    const claims = await tokens.verifyVerification(token, clock.now());
    // Without a key of its own a token would log in whoever has read it.
    if (claims.publicKey?.toLowerCase() !== publicKey) {
      throw new CoordinatorError(
        'UNAUTHENTICATED',
        `could not verify the attested stamp: its verification token is not bound to public key \`${publicKey}\``,
        { category: 'SIGNATURE_INVALID' },
      );
    }
    const { tokenId, verificationType, contact, organizationId, expiresAt } = claims;
    return { kind: 'contact', tokenId, verificationType, contact, organizationId, expiresAt };
  }

  /** Whoever stamps so is nobody yet: requests go to issuers that users of the organization have identities at, only. */
  private async checkIssuerKnown(issuer: string, organization: OrganizationView, position: bigint): Promise<void> {
    const { organizationId, oauthOwners, parentOrganizationId } = organization;
    const prefix = identitiesOfIssuer(issuer);
    for (const identity of oauthOwners.keys()) if (identity.startsWith(prefix)) return;
    const { owners } = this.ports;
    if (parentOrganizationId === undefined && (await owners.knowsIssuer(organizationId, issuer, position))) return;
    throw new CoordinatorError(
      'UNAUTHENTICATED',
      `no user has an identity at issuer \`${issuer}\`: organizationId=${organizationId}`,
      { category: 'CREDENTIAL_NOT_FOUND' },
    );
  }
}

/** A parent's token is good in its sub-organizations, a sub-organization's nowhere else (client protocol 8.1). */
function checkIssuer(attestation: Attestation, { organizationId, parentOrganizationId }: OrganizationView): void {
  if (attestation.kind === 'identity') return;
  const { organizationId: issuer } = attestation;
  if (issuer === organizationId || issuer === parentOrganizationId) return;
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    `could not verify the attested stamp: its verification token was issued by organization \`${issuer}\`, which is ` +
      `neither \`${organizationId}\` nor its parent`,
    { category: 'SIGNATURE_INVALID' },
  );
}

function ownedByAttestation(attestation: Attestation): OwnedCredential {
  if (attestation.kind === 'identity') return { kind: 'OIDC', value: oauthIdentity(attestation) };
  const { verificationType, contact } = attestation;
  return { kind: verificationType === 'OTP_TYPE_EMAIL' ? 'VERIFIED_EMAIL' : 'VERIFIED_PHONE_NUMBER', value: contact };
}
