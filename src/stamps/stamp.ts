/** The schemes of an API key stamp (docs/protocol.md, API key stamps). */
export type ApiKeyScheme =
  | 'SIGNATURE_SCHEME_TK_API_P256'
  | 'SIGNATURE_SCHEME_TK_API_SECP256K1'
  | 'SIGNATURE_SCHEME_TK_API_SECP256K1_EIP191'
  | 'SIGNATURE_SCHEME_TK_API_ED25519';

/** Every scheme of a user's own credentials; also the `scheme` of a vote (docs/protocol.md, votes). */
export type StampScheme = ApiKeyScheme | 'SIGNATURE_SCHEME_TK_WEBAUTHN';

/** What vouches for the key of an attested stamp (docs/protocol.md, attested stamps). */
export type AttestedScheme = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN' | 'STAMP_ATTESTED_SCHEME_P256_OIDC';

/** Header `X-Stamp`, parsed but not verified: normalized public key and lower-case signature, both hex. */
export interface ApiKeyStamp {
  readonly kind: 'api-key';
  readonly scheme: ApiKeyScheme;
  readonly publicKey: string;
  readonly signature: string;
}

/** Header `X-Stamp-WebAuthn`, parsed but not verified: all members base64url without padding. */
export interface WebAuthnStamp {
  readonly kind: 'webauthn';
  readonly scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN';
  readonly credentialId: string;
  readonly authenticatorData: string;
  readonly clientDataJson: string;
  readonly signature: string;
}

/** Header `X-Stamp-Attested`, parsed but not verified: a compressed P-256 key and a DER signature, lower-case hex. */
export interface AttestedStamp {
  readonly kind: 'attested';
  readonly scheme: 'SIGNATURE_SCHEME_TK_ATTESTED_P256';
  readonly attestedBy: AttestedScheme;
  /** A verification token or an OIDC token, unread. */
  readonly token: string;
  readonly publicKey: string;
  readonly signature: string;
}

/** A stamp as sent, not trusted yet. */
export type Stamp = ApiKeyStamp | WebAuthnStamp | AttestedStamp;
