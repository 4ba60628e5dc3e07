import type { ClaimedIdentifier, Found } from '../domain/organization/claims.js';

export const CLAIMS = Symbol('Claims');

/** Finds sub-organizations by the public identifiers of their users: the read model of claims (docs/adr/0028). */
export interface Claims {
  /**
   * Where an identifier leads to whoever has shown that it is theirs, once everything up to `position` is known; waits
   * for that, within bounds. No id for nowhere, several where only a name tells them apart.
   */
  whereItLeads(
    parentId: string,
    identifier: ClaimedIdentifier,
    position: bigint,
  ): Promise<Pick<Found, 'by'> & { readonly organizationIds: readonly string[] }>;
  /** Keys (COSE, base64url) that were registered under a credential id, the first one first, by the same knowledge. */
  keysOfCredentialId(parentId: string, credentialId: string, position: bigint): Promise<readonly string[]>;
  /** Whether somebody in a sub-organization of the parent has an identity at the issuer, by the same knowledge. */
  knowsIssuer(parentId: string, issuer: string, position: bigint): Promise<boolean>;
}
