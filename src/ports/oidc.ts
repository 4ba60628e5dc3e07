/** An identity that an OpenID provider has vouched for (client protocol, section 8.3). */
export interface OidcIdentity {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  /** SHA-256 of what the issuer has signed, hex: the same for every spelling of its signature. */
  readonly tokenId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The issuer is this installation, for somebody whom an OAuth 2.0 provider knows. */
  readonly isIssuedHere: boolean;
  /** Only if the issuer says that it is verified, and is one that is trusted to know. */
  readonly verifiedEmail?: string;
}

/** The port to OpenID providers (see `oidc/verify-token.ts`). */
export interface OidcPort {
  /** The issuer that a token names, unchecked. @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN */
  claimedIssuer(token: string): string;
  /**
   * Verifies an OIDC token; for a login it must be bound to the public key, whose hex text as sent is hashed.
   * @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN
   */
  verify(
    token: string,
    purpose: 'registration' | { readonly login: { readonly publicKey: string } },
  ): Promise<OidcIdentity>;
}

export const OIDC = Symbol('Oidc');
