import type { SecretPlace } from './keyring.js';

/** The port for client secrets of OAuth 2.0 applications (see `keyring/oauth-secret.ts`). */
export interface OauthSecretPort {
  /**
   * Seals in a new vault, whose id it returns, what the owner has encrypted to this installation (docs/protocol.md, secrets of clients).
   * @throws {CoordinatorError} INVALID_ARGUMENT
   */
  keep(organizationId: string, encryptedClientSecret: string): Promise<string>;
}

export const OAUTH_SECRETS = Symbol('OauthSecretUse');

/** The port for using such a secret. */
export interface OauthSecretUsePort {
  /** Opens a secret while `use` runs. */
  use<Result>(place: SecretPlace, use: (secret: string) => Promise<Result>): Promise<Result>;
}

/** The port for OAuth 2.0 providers (see `oidc/oauth2-client.ts`). */
export interface Oauth2Port {
  /** @throws {CoordinatorError} INVALID_ARGUMENT OAUTH2_PROVIDER_NOT_CONFIGURED */
  checkProvider(provider: string): void;
  /**
   * An OIDC token of ours for the person to whom a provider gave the code (docs/protocol.md, OAuth 2.0).
   * @throws {CoordinatorError} INVALID_ARGUMENT, FAILED_PRECONDITION, UNAVAILABLE
   */
  authenticate(requested: {
    readonly provider: string;
    readonly clientId: string;
    readonly secret: SecretPlace;
    readonly authCode: string;
    readonly redirectUri: string;
    readonly codeVerifier: string;
    readonly nonce: string;
    /** How often the clock of the organization of the secret has been mended, if it ever was. */
    readonly clockMends?: number;
    readonly bearerTokenTargetPublicKey?: string | undefined;
  }): Promise<string>;
}
