import { Inject, Injectable } from '@nestjs/common';
import type { AttestedStamp, Stamp, WebAuthnStamp } from '../stamps/stamp.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import { TOKENS, type TokenPort } from '../ports/tokens.js';
import type { Attestation } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkIssuedSinceMend } from '../domain/organization/clock-mends.js';
import { passkeyClaim, type ClaimedIdentifier, type Found } from '../domain/organization/claims.js';
import { isExpired, type Dated } from '../domain/organization/credentials.js';
import { apiKeyOf, passkeyOf } from '../domain/organization/credentials-of-users.js';
import { identitiesOfIssuer, oauthIdentity } from '../domain/organization/oauth-identity.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { contactKey } from '../domain/contact-key.js';
import { isSignedByPasskey } from '../stamps/webauthn.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLAIMS, type Claims } from '../ports/claims.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { checkStampTaken } from '../decide/caller.js';
import { credentialConflict } from '../decide/refusals.js';
import { submittersOf } from '../decide/submitters.js';
import type { SubmitRequest } from './read-submit.js';
import { attestedUser } from '../decide/resolve-caller.js';

/** The organization of a request, and why, if its body does not name it. */
interface Place {
  readonly organizationId: string;
  readonly found?: Found;
}

/**
 * Finds the organization of a request whose body names the parent, because people who log in may not know their
 * sub-organization; and what the token of an attested stamp proves (docs/protocol.md, attested stamps and who may stamp what).
 */
@Injectable()
export class OrganizationLookup {
  constructor(
    private readonly loader: OrganizationLoader,
    @Inject(CLAIMS) private readonly claims: Claims,
    @Inject(TOKENS) private readonly tokens: Pick<TokenPort, 'verifyVerification'>,
    @Inject(OIDC) private readonly oidc: OidcPort,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /**
   * The submit in the organization where its credential lives, with what was attested. `position` is what the read
   * models must have seen.
   * @throws {CoordinatorError} UNAUTHENTICATED CREDENTIAL_CONFLICT; INVALID_ARGUMENT or UNAVAILABLE for a token
   */
  async ofSubmit(request: SubmitRequest, position: bigint): Promise<SubmitRequest> {
    const { stamp, organizationId } = request;
    // Before anything is asked of its token; other kinds are refused in their turn.
    if (stamp.kind === 'attested') checkStampTaken(stamp, request.version);
    if (submittersOf(request.version.definition).names === 'the-organization') return request;
    const { organization } = await this.loader.load(organizationId);
    if (stamp.kind !== 'attested') return { ...request, ...(await this.placeOf(stamp, organization, position)) };
    const attestation = await this.attestationOf(stamp, organization, position);
    checkIssuer(attestation, organization);
    const place = attestedUser(organization, attestation)
      ? { organizationId }
      : await this.home(organization, attested(attestation), position);
    return { ...request, attestation, ...place };
  }

  /**
   * The organization where the credential of a stamp lives: the named one if it is there or nowhere, otherwise the
   * sub-organization that its key leads to (docs/adr/0016).
   * @throws {CoordinatorError} UNAUTHENTICATED CREDENTIAL_CONFLICT if several have it
   */
  async placeOf(
    stamp: Exclude<Stamp, AttestedStamp>,
    organization: OrganizationView,
    position: bigint,
  ): Promise<Place> {
    if (stamp.kind === 'webauthn') return this.placeOfPasskey(stamp, organization, position);
    const { publicKey } = stamp;
    const claim = { kind: 'PUBLIC_KEY', value: publicKey } as const;
    const own = apiKeyOf(organization, publicKey);
    if (!own) return this.home(organization, claim, position);
    return this.unlessEarlier(organization, own, claim, position, (child) => {
      const theirs = apiKeyOf(child, publicKey);
      return theirs && !isExpired(theirs, this.clock.now()) ? theirs : undefined;
    });
  }

  private async placeOfPasskey(stamp: WebAuthnStamp, named: OrganizationView, position: bigint): Promise<Place> {
    const { organizationId, parentOrganizationId } = named;
    const { credentialId } = stamp;
    if (parentOrganizationId !== undefined) return { organizationId };
    const own = passkeyOf(named, credentialId);
    if (own && (await isSignedByPasskey(stamp, own.publicKey))) {
      return this.unlessEarlier(named, own, passkeyClaim(credentialId, own.publicKey), position, (child) =>
        passkeyOf(child, credentialId),
      );
    }
    // Anyone can register someone else's credential id under another key.
    const keys = await this.claims.keysOfCredentialId(organizationId, credentialId, position);
    for (const publicKey of keys) {
      if (await isSignedByPasskey(stamp, publicKey)) {
        return this.home(named, passkeyClaim(credentialId, publicKey), position);
      }
    }
    return { organizationId };
  }

  /**
   * The organization itself, whose user has the credential; but any member can add what is somebody else's, so one that has
   * proved it, and had it earlier, comes first: nobody can know a public key before its owner shows it.
   */
  private async unlessEarlier(
    organization: OrganizationView,
    own: Dated,
    identifier: ClaimedIdentifier,
    position: bigint,
    ofChild: (child: OrganizationView) => Dated | undefined,
  ): Promise<Place> {
    const { organizationId, parentOrganizationId } = organization;
    if (parentOrganizationId !== undefined) return { organizationId };
    const { rule, organizationIds } = await this.claims.whereItLeads(organizationId, identifier, position);
    const [home] = organizationIds;
    if (rule !== 'proof' || home === undefined) return { organizationId };
    const theirs = ofChild((await this.loader.load(home)).organization);
    if (!theirs || theirs.createdAt >= own.createdAt) return { organizationId };
    return { organizationId: home, found: { parentOrganizationId: organizationId, rule } };
  }

  private async home(
    { organizationId, parentOrganizationId }: OrganizationView,
    identifier: ClaimedIdentifier,
    position: bigint,
  ): Promise<Place> {
    // Only a parent has sub-organizations to search.
    if (parentOrganizationId !== undefined) return { organizationId };
    const { rule, organizationIds } = await this.claims.whereItLeads(organizationId, identifier, position);
    const [home, ...more] = organizationIds;
    if (more.length > 0) {
      throw credentialConflict(`more than one sub-organization of \`${organizationId}\` has this credential`);
    }
    if (home === undefined) return { organizationId };
    return { organizationId: home, found: { parentOrganizationId: organizationId, rule } };
  }

  private async attestationOf(
    { attestedBy, token, publicKey }: AttestedStamp,
    organization: OrganizationView,
    position: bigint,
  ): Promise<Attestation> {
    const { tokens, oidc, clock } = this;
    if (attestedBy === 'STAMP_ATTESTED_SCHEME_P256_OIDC') {
      await this.checkIssuerKnown(oidc.claimedIssuer(token), organization, position);
      const { issuer, audience, subject, namesOtherClients } = await oidc.verify(token, { login: { publicKey } });
      if (namesOtherClients) {
        throw new CoordinatorError(
          'INVALID_ARGUMENT',
          'INVALID_OIDC_TOKEN: an attested stamp takes only a token for one client, which it was issued to',
          { category: 'INVALID_OIDC_TOKEN' },
        );
      }
      return { kind: 'identity', issuer, audience, subject };
    }
    const claims = await tokens.verifyVerification(token, clock.now());
    // Without a key of its own, a token would log in anyone who has read it.
    if (claims.publicKey?.toLowerCase() !== publicKey) {
      throw new CoordinatorError(
        'UNAUTHENTICATED',
        `could not verify the attested stamp: its verification token is not bound to public key \`${publicKey}\``,
        { category: 'SIGNATURE_INVALID' },
      );
    }
    const { organizationId: issuerId, publicKey: _key, toldAgain: _again, clockMends, ...proved } = claims;
    // Another issuer is refused by `checkIssuer`.
    const isOwn = issuerId === organization.organizationId;
    const issuer = isOwn ? organization : (await this.loader.parentOf(organization))?.organization;
    if (issuer?.organizationId === issuerId) checkIssuedSinceMend('verificationToken', clockMends, issuer);
    return { kind: 'contact', organizationId: issuerId, ...proved };
  }

  /**
   * The sender is not authenticated yet, so requests go only to issuers at which users of the organization have
   * identities.
   */
  private async checkIssuerKnown(issuer: string, organization: OrganizationView, position: bigint): Promise<void> {
    const { organizationId, oauthOwners, parentOrganizationId } = organization;
    const prefix = identitiesOfIssuer(issuer);
    for (const identity of oauthOwners.keys()) if (identity.startsWith(prefix)) return;
    const { claims } = this;
    if (parentOrganizationId === undefined && (await claims.knowsIssuer(organizationId, issuer, position))) return;
    throw new CoordinatorError(
      'UNAUTHENTICATED',
      `no user has an identity at issuer \`${issuer}\`: organizationId=${organizationId}`,
      { category: 'CREDENTIAL_NOT_FOUND' },
    );
  }
}

/**
 * A parent's token is valid in its sub-organizations; a sub-organization's is valid nowhere else (docs/protocol.md, verification tokens).
 */
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

function attested(attestation: Attestation): ClaimedIdentifier {
  if (attestation.kind === 'identity') return { kind: 'OIDC', value: oauthIdentity(attestation) };
  const { verificationType, contact } = attestation;
  return { kind: verificationType === 'OTP_TYPE_EMAIL' ? 'EMAIL' : 'PHONE_NUMBER', value: contactKey(contact) };
}
