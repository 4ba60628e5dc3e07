import type { DomainEvent } from './event.js';
import type { Organization, OrganizationView } from './organization.js';

/**
 * Public identifiers that lead to an organization when a request names only its parent (docs/adr/0016): an API key
 * (lower-case hex), a passkey (see `passkeyClaim`), an identity (see `oauthIdentity`), a contact (see `contactKey`).
 */
export type ClaimKind = 'PUBLIC_KEY' | 'PASSKEY' | 'OIDC' | 'EMAIL' | 'PHONE_NUMBER';

/** One public identifier. */
export interface ClaimedIdentifier {
  readonly kind: ClaimKind;
  readonly value: string;
}

/** What proved a claim: a request that names its organization, one that was led there, or a code or token. */
export type ClaimProof = 'request' | 'resolved-request' | 'token';

/** Why a look-up by the parent's id led to an organization (security rule R4, 1 to 3). */
export interface Found {
  readonly parentOrganizationId: string;
  readonly rule: 'proof' | 'founding' | 'first-assertion';
}

/** In the stream of a parent's claims; their order is the order of the proofs. */
export type ClaimEvent = DomainEvent<
  'ClaimProved',
  ClaimedIdentifier & {
    /** The sub-organization in which it was proved. */
    organizationId: string;
    /**
     * The owner of the identifier there: the id of the API key, authenticator or identity; for a contact, of the user.
     */
    ownerId: string;
    provedBy: ClaimProof;
    /**
     * It outranks an older claim that was proved only by a request that had been led there. Once for each identifier.
     */
    outranks?: true;
  }
>;

/** A proof without a place in the order of its parent yet. */
export interface DueClaim extends ClaimedIdentifier {
  readonly parentId: string;
  readonly organizationId: string;
  readonly ref: string;
  readonly by: ClaimProof;
}

/** The first claim of an identifier in the order. */
export interface FirstClaim {
  readonly organizationId: string;
  readonly by: ClaimProof;
  /** A claim has already outranked another: none does again. */
  readonly isSettled: boolean;
}

/** The name of the stream that holds the claims under a parent. */
export function claimStream(parentOrganizationId: string): string {
  return `claims-${parentOrganizationId}`;
}

/** A passkey, with its key (COSE, base64url): anyone can copy a credential id. */
export function passkeyClaim(credentialId: string, publicKey: string): ClaimedIdentifier {
  return { kind: 'PASSKEY', value: `${credentialId} ${publicKey}` };
}

/** How long a public sign-up has to prove something before it lapses, in milliseconds. */
export const signUpLifeMs = 60 * 60 * 1000;

/** Whether it is a public sign-up in which nothing was proved in time. */
export function hasLapsed({ signUp, createdAt }: Pick<OrganizationView, 'signUp' | 'createdAt'>, now: number): boolean {
  return signUp === 'unproved' && now - createdAt >= signUpLifeMs;
}

/** One of the organization's own keys, contacts or identities was proved in it. */
export function provedHere(organization: Organization): void {
  if (organization.signUp) organization.signUp = 'proved';
}
