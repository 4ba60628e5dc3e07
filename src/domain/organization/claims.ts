import type { DomainEvent } from './event.js';
import type { Organization, OrganizationView } from './organization.js';

/**
 * Public identifiers that lead to an organization when only its parent is named (docs/adr/0028): an API key (lower-case
 * hex), a passkey (see `passkeyClaim`), an identity (see `oauthIdentity`), a contact (see `contactKey`).
 */
export type ClaimKind = 'PUBLIC_KEY' | 'PASSKEY' | 'OIDC' | 'EMAIL' | 'PHONE_NUMBER';

/** One public identifier. */
export interface ClaimedIdentifier {
  readonly kind: ClaimKind;
  readonly value: string;
}

/** What has proved a claim: a request that names its organization, one that was led there, or a code or token. */
export type ClaimProof = 'request' | 'found-request' | 'token';

/** Why a look-up by the parent's id has led to an organization (security rule R4, 1 to 3). */
export interface Found {
  readonly parentOrganizationId: string;
  readonly by: 'proof' | 'founding' | 'first-assertion';
}

/** In the stream of a parent's claims, whose order is the order of the proofs. */
export type ClaimEvent = DomainEvent<
  'ClaimProved',
  ClaimedIdentifier & {
    /** The sub-organization in which it was proved. */
    organizationId: string;
    /** What has the identifier there: the id of the API key, authenticator or identity; of the user for a contact. */
    ref: string;
    by: ClaimProof;
    /** It comes before an older claim that only a request has proved which was led there. Once for each identifier. */
    outranks?: true;
  }
>;

/** A proof that has no place in the order of its parent yet. */
export interface DueClaim extends ClaimedIdentifier {
  readonly parentId: string;
  readonly organizationId: string;
  readonly ref: string;
  readonly by: ClaimProof;
}

/** The claim of an identifier that comes first in the order. */
export interface FirstClaim {
  readonly organizationId: string;
  readonly by: ClaimProof;
  /** One has outranked another before: none does again. */
  readonly isSettled: boolean;
}

/** The name of the stream that holds the claims under a parent. */
export function claimStream(parentOrganizationId: string): string {
  return `claims-${parentOrganizationId}`;
}

/** A passkey: its credential id alone can be copied by anybody, and is none without its key (COSE, base64url). */
export function passkeyClaim(credentialId: string, publicKey: string): ClaimedIdentifier {
  return { kind: 'PASSKEY', value: `${credentialId} ${publicKey}` };
}

/** How long after a public sign-up something must have been proved in it, in milliseconds; else it lapses. */
export const signUpLifeMs = 60 * 60 * 1000;

/** Whether it is a public sign-up in which nothing was proved in time. */
export function hasLapsed({ signUp, createdAt }: Pick<OrganizationView, 'signUp' | 'createdAt'>, now: number): boolean {
  return signUp === 'unproved' && now - createdAt >= signUpLifeMs;
}

/** A key, contact or identity of its own was proved in the organization. */
export function provedHere(organization: Organization): void {
  if (organization.signUp) organization.signUp = 'proved';
}
