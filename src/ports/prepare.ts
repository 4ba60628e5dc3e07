import type { AddressFormat, Curve, MnemonicLanguage } from '../domain/key-formats.js';
import type { AuthProxySettings } from '../domain/organization/auth-proxy.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { KeyAddress } from '../domain/organization/private-keys.js';

/** The world as `prepare` meets it. Adapters are chosen in `app.module.ts`. */

/** An account as asked for. */
export interface AccountToDerive {
  readonly curve: Curve;
  readonly path: string;
  readonly addressFormat: AddressFormat;
}

/** What an account came to; `path` in its one spelling, `publicKey` lower-case hex. */
export interface DerivedAccount extends AccountToDerive {
  readonly address: string;
  readonly publicKey: string;
}

/** Where a sealed secret lies. */
interface SecretPlace {
  readonly organizationId: string;
  readonly vaultId: string;
}

/** A private key that has been sealed and is not recorded yet. */
export interface NewPrivateKey {
  readonly vaultId: string;
  readonly publicKey: string;
  readonly addresses: readonly KeyAddress[];
}

/** A signature as the API answers it: r and s 64 hex characters, v `00` or `01`. */
export interface RawSignature {
  readonly r: string;
  readonly s: string;
  readonly v: string;
}

/** The port to key material (see `keyring/keyring.ts`). Secrets go in and stay in; what comes out is public, or sealed. */
export interface KeyringPort {
  createWallet(input: {
    readonly organizationId: string;
    /** Words: 12, 15, 18, 21 or 24. */
    readonly mnemonicLength: number;
    readonly accounts: readonly AccountToDerive[];
  }): Promise<{ readonly vaultId: string; readonly accounts: readonly DerivedAccount[] }>;
  /** Derives accounts of a wallet; with `keep` their keys are sealed too, so that signing needs no derivation. */
  deriveAccounts(
    wallet: SecretPlace,
    accounts: readonly AccountToDerive[],
    keep: boolean,
  ): Promise<readonly DerivedAccount[]>;
  createPrivateKey(input: {
    readonly organizationId: string;
    readonly curve: Curve;
    readonly addressFormats: readonly AddressFormat[];
  }): Promise<NewPrivateKey>;
  /** A mnemonic, sealed and signed to the target key (client protocol 7.3). */
  exportWallet(wallet: SecretPlace, targetPublicKey: string, language: MnemonicLanguage | undefined): Promise<string>;
  /** 32 bytes of a key, sealed and signed to the target key. `secret` names it in its vault. */
  exportKey(key: SecretPlace & { readonly secret: string }, targetPublicKey: string): Promise<string>;
  /** A target key for one import, and the signed bundle that tells it to the user's client (client protocol 7.4). */
  startImport(input: {
    readonly organizationId: string;
    readonly userId: string;
  }): Promise<{ readonly vaultId: string; readonly targetPublicKey: string; readonly importBundle: string }>;
  importWallet(
    pending: SecretPlace,
    encryptedBundle: string,
    accounts: readonly AccountToDerive[],
  ): Promise<{ readonly vaultId: string; readonly accounts: readonly DerivedAccount[] }>;
  importPrivateKey(
    pending: SecretPlace,
    encryptedBundle: string,
    key: { readonly curve: Curve; readonly addressFormats: readonly AddressFormat[] },
  ): Promise<NewPrivateKey>;
  /** Signs each payload, in order: digests for ECDSA and Schnorr, whole messages for Ed25519. */
  sign(
    key: SecretPlace & {
      readonly secret: string;
      readonly curve: Curve;
      readonly addressFormat: AddressFormat | undefined;
    },
    payloads: readonly Uint8Array[],
  ): Promise<readonly RawSignature[]>;
}

/** What a verified WebAuthn registration says of the passkey. */
export interface VerifiedRegistration {
  readonly credentialId: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  readonly aaguid: string;
  readonly attestationType: string;
  readonly rpIdHash: string;
  readonly signCount: number;
  readonly transports: readonly string[];
}

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

/** The port to client secrets of OAuth 2.0 applications (see `keyring/oauth-secret.ts`). */
interface OauthSecretPort {
  /**
   * Seals in a new vault, whose id it gives, what its owner has sealed to this installation (client protocol 7.7).
   * @throws {CoordinatorError} INVALID_ARGUMENT
   */
  keep(organizationId: string, encryptedClientSecret: string): Promise<string>;
}

/** The port to keys of accounts at fiat on-ramps (see `keyring/on-ramp-secrets.ts`). */
interface OnRampSecretPort {
  /**
   * Seals in a new vault, whose id it gives, what its owner has sealed to this installation (client protocol 7.7).
   * @throws {CoordinatorError} INVALID_ARGUMENT
   */
  keep(
    organizationId: string,
    sealed: { readonly encryptedSecretApiKey: string; readonly encryptedPrivateApiKey?: string },
  ): Promise<string>;
}

/** The port to OAuth 2.0 providers (see `oidc/oauth2-client.ts`). */
interface Oauth2Port {
  /** @throws {CoordinatorError} INVALID_ARGUMENT OAUTH2_PROVIDER_NOT_CONFIGURED */
  checkProvider(provider: string): void;
  /**
   * An OIDC token of ours for whom a provider gave the code (client protocol 8.4).
   * @throws {CoordinatorError} INVALID_ARGUMENT, FAILED_PRECONDITION, UNAVAILABLE
   */
  authenticate(asked: {
    readonly provider: string;
    readonly clientId: string;
    readonly secret: SecretPlace;
    readonly authCode: string;
    readonly redirectUri: string;
    readonly codeVerifier: string;
    readonly nonce: string;
    readonly bearerTokenTargetPublicKey?: string | undefined;
  }): Promise<string>;
}

/** A message on its way to a person. Never logged: it may hold a code. */
export interface OutgoingMessage {
  readonly channel: 'email' | 'sms';
  /** An e-mail address, or a phone number in E.164. */
  readonly to: string;
  /** E-mail only. */
  readonly subject?: string;
  readonly text: string;
  /** E-mail only: the same content as HTML. */
  readonly html?: string;
  /** E-mail only: the sender's address, used where its domain is one that may be sent from. */
  readonly from?: string;
  /** E-mail only: the sender's name. */
  readonly fromName?: string;
  /** E-mail only. */
  readonly replyTo?: string;
  /** The one-time password that the message carries, for reports. */
  readonly otpId?: string;
  /** Milliseconds since the epoch; from then on the message is of no use and is not sent any more. */
  readonly expiresAt?: number;
}

/** The port to people (see `delivery/`). */
interface DeliveryPort {
  /**
   * Refuses what `enqueue` would refuse now, before anything is decided.
   * @throws {CoordinatorError} as `enqueue`
   */
  check(message: OutgoingMessage): void;
  /**
   * Accepts a message without waiting for anything; what cannot be delivered is tried again, and reported.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a message that cannot be one, RESOURCE_EXHAUSTED, UNAVAILABLE
   */
  enqueue(message: OutgoingMessage): unknown;
}

/** A message that somebody asks for. */
export interface AskedMessage {
  /** An e-mail address or a phone number. */
  readonly contact: string;
  /** `known`: the account of the contact, or a member of the parent; `proxy`: somebody through the auth proxy. */
  readonly sender: 'known' | 'proxy' | 'stranger';
  /** Where it is asked for. */
  readonly organizationId: string;
}

/** The port to what limits messages to people (see `delivery/contact-limits.ts`). */
interface ContactLimitPort {
  /**
   * Counts a message to a contact over the whole installation, before it is made.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED for too many, UNAVAILABLE when it cannot be counted
   */
  count(asked: AskedMessage): Promise<void>;
}

/** Claims of a verification token (client protocol, section 8.1). `expiresAt` is milliseconds since the epoch. */
export interface VerificationClaims {
  readonly tokenId: string;
  readonly verificationType: 'OTP_TYPE_EMAIL' | 'OTP_TYPE_SMS';
  readonly contact: string;
  /** The organization that issued it. */
  readonly organizationId: string;
  /** Compressed P-256 key in hex; older flows have none. */
  readonly publicKey?: string;
  /** A member of the organization has asked for the code, and not the auth proxy for anybody: it logs in there too. */
  readonly logsInToIssuer?: true;
  /** It was told in the answer to a repeat, which whoever has read the request may send: only its key proves anything. */
  readonly toldAgain?: true;
  readonly expiresAt: number;
}

/** Claims of a session token (client protocol, section 1.5). `expiresAt` is milliseconds since the epoch. */
export interface SessionClaims {
  readonly userId: string;
  readonly organizationId: string;
  readonly publicKey: string;
  readonly sessionType: 'SESSION_TYPE_READ_WRITE' | 'SESSION_TYPE_READ_ONLY';
  readonly expiresAt: number;
}

/** The port to tokens of ours (see `keyring/tokens.ts`). */
export interface TokenPort {
  signSession(claims: SessionClaims): Promise<string>;
  signVerification(claims: VerificationClaims): Promise<string>;
  /** @throws {CoordinatorError} INVALID_ARGUMENT unless we have signed it and it has not expired at `now` */
  verifyVerification(token: string, now: number): Promise<VerificationClaims>;
  /** A verification token of ours whose signature was left out when it was recorded; it says `told_again`. */
  signVerificationAgain(unsigned: string): Promise<string>;
  /** A read-only session, made of the public half that was recorded; always the same. */
  proveReadSession(publicHalf: string): Promise<string>;
  /** The public half of a read-only session that we have proved; undefined for any other text. */
  readSessionProved(session: string): Promise<string | undefined>;
  /** Whether a P-256 key (compressed, hex) has signed SHA-256 of the message; the signature is r ‖ s or DER, hex. */
  verifyClientSignature(input: {
    readonly publicKey: string;
    readonly message: string;
    readonly signature: string;
  }): Promise<boolean>;
}

/** The port to one-time codes and sealed credentials (see `keyring/login-secrets.ts`). */
interface LoginSecretPort {
  /** A code of that many characters for a contact: decimal digits, or the bech32 alphabet in upper case. */
  newCode(length: number, alphabet: 'digits' | 'bech32', contact: string): string;
  /** Keyed hash of a code, bound to its OTP, hex. Letter case of the code does not matter. */
  hashCode(otpId: string, code: string): Promise<string>;
  /** A fresh P-256 API key, sealed to a target key (client protocol 7.2). */
  newApiKey(targetPublicKey: string): Promise<{ readonly publicKey: string; readonly credentialBundle: string }>;
  /** A target key for one OTP, sealed, and the signed bundle that tells it (client protocol 7.6). */
  startOtpTarget(organizationId: string): Promise<{ readonly vaultId: string; readonly targetBundle: string }>;
  /** What a client has sealed to it. @throws {CoordinatorError} INVALID_ARGUMENT */
  openOtpBundle(
    target: SecretPlace,
    encryptedOtpBundle: string,
  ): Promise<{ readonly code: string; readonly publicKey: string }>;
}

/** The port to API keys of auth proxies (see `keyring/proxy-keys.ts`). */
interface ProxyKeyPort {
  /** A new key, sealed; its public part is a compressed P-256 point, hex. */
  create(organizationId: string): Promise<{ readonly vaultId: string; readonly publicKey: string }>;
}

/** The port to where deliveries of webhooks go (see `webhooks/targets.ts`). */
interface WebhookTargetPort {
  /**
   * Refuses a URL that nothing would be delivered to: its scheme, or an address that its host leads to.
   * @throws {CoordinatorError} INVALID_ARGUMENT; FAILED_PRECONDITION when the host cannot be resolved now
   */
  check(url: string): Promise<void>;
}

/** The port to other organizations. */
interface OrganizationPort {
  /** The organization as it is now. */
  view(organizationId: string): Promise<OrganizationView>;
  /** For what a token was used so far, in whatever organization that is recorded. */
  tokenUses(tokenId: string): Promise<ReadonlySet<string>>;
  /** The sub-organization in which a contact was proved first under a parent, of all that is recorded; undefined for none. */
  homeOfContact(parentId: string, kind: 'EMAIL' | 'PHONE_NUMBER', contact: string): Promise<string | undefined>;
  /** What the auth proxy of an organization is configured with; undefined where none is enabled. */
  authProxySettings(organizationId: string): Promise<AuthProxySettings | undefined>;
}

/** The port to links of invitations (see `keyring/invitation-links.ts`). */
interface InvitationPort {
  /** A link with a fresh key in it; the public part is a compressed P-256 point, hex. The link is for its mail alone. */
  newLink(invited: {
    readonly organizationId: string;
    readonly invitationId: string;
    readonly receiverUserName: string;
    readonly accessType: string;
  }): { readonly publicKey: string; readonly url: string };
}

/** Ports that `prepare` may use. */
export interface PreparePorts {
  readonly keyring: KeyringPort;
  readonly tokens: TokenPort;
  readonly loginSecrets: LoginSecretPort;
  readonly oidc: OidcPort;
  readonly oauth2: Oauth2Port;
  readonly oauthSecrets: OauthSecretPort;
  readonly onRampSecrets: OnRampSecretPort;
  readonly delivery: DeliveryPort;
  readonly contactLimits: ContactLimitPort;
  readonly organizations: OrganizationPort;
  readonly proxyKeys: ProxyKeyPort;
  readonly webhookTargets: WebhookTargetPort;
  readonly invitations: InvitationPort;
  /** The only origins that passkeys of an organization may be used from; empty where nobody has said. */
  readonly passkeyOrigins: (organization: OrganizationView) => Promise<readonly string[]>;
  /** Verifies a WebAuthn registration; see `stamps/webauthn.ts`. */
  readonly verifyRegistration: (input: {
    challenge: string;
    attestation: {
      credentialId: string;
      clientDataJson: string;
      attestationObject: string;
      transports: readonly string[];
    };
    allowedOrigins?: readonly string[];
  }) => Promise<VerifiedRegistration>;
}
