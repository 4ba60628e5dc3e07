/** An identity that an OpenID provider has vouched for (docs/protocol.md, OIDC tokens). */
export interface OidcIdentity {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  /** The token was issued to another client, or is for several: it counts only for a client id that is listed. */
  readonly namesOtherClients?: true;
  /** SHA-256 of the part signed by the issuer, hex: the same for every encoding of its signature. */
  readonly tokenId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The issuer is this installation, for someone authenticated by an OAuth 2.0 provider. */
  readonly isIssuedHere: boolean;
  /** Only if a trusted issuer says that it is verified. */
  readonly verifiedEmail?: string;
}

/** The port for OpenID providers (see `oidc/verify-token.ts`). */
export interface OidcPort {
  /** The issuer named in a token, unverified. @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN */
  claimedIssuer(token: string): string;
  /**
   * Verifies an OIDC token; for a login it must be bound to the public key, by the hash of its hex text as sent.
   * @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN
   */
  verify(
    token: string,
    purpose: 'registration' | { readonly login: { readonly publicKey: string } },
  ): Promise<OidcIdentity>;
}

export const OIDC = Symbol('Oidc');
