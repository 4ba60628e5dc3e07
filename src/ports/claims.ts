import type { ClaimedIdentifier, Found } from '../domain/organization/claims.js';

export const CLAIMS = Symbol('Claims');

/** Finds sub-organizations by the public identifiers of their users: the read model of claims (docs/adr/0016). */
export interface Claims {
  /**
   * Where an identifier leads for someone who has proved it, once everything up to `position` is known; waits for that,
   * within limits. No id if nowhere, several if only a name can tell them apart.
   */
  whereItLeads(
    parentId: string,
    identifier: ClaimedIdentifier,
    position: bigint,
  ): Promise<Pick<Found, 'rule'> & { readonly organizationIds: readonly string[] }>;
  /** Keys (COSE, base64url) registered under a credential id, the first one first, as of the same position. */
  keysOfCredentialId(parentId: string, credentialId: string, position: bigint): Promise<readonly string[]>;
  /** Whether anyone in a sub-organization of the parent has an identity at the issuer, as of the same position. */
  knowsIssuer(parentId: string, issuer: string, position: bigint): Promise<boolean>;
}
