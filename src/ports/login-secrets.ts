import type { SecretPlace } from './keyring.js';

/** The port for one-time codes and sealed credentials (see `keyring/login-secrets.ts`). */
export interface LoginSecretPort {
  /** A code with that many characters for a contact: decimal digits, or the bech32 alphabet in upper case. */
  newCode(length: number, alphabet: 'digits' | 'bech32', contact: string): string;
  /** Keyed hash of a code, bound to its OTP, hex. Codes are case-insensitive. */
  hashCode(otpId: string, code: string): Promise<string>;
  /** A fresh P-256 API key, sealed to a target key (docs/protocol.md, credential bundles). */
  newApiKey(targetPublicKey: string): Promise<{ readonly publicKey: string; readonly credentialBundle: string }>;
  /** A target key for one OTP, sealed, and the signed bundle that contains it (docs/protocol.md, code bundles). */
  startOtpTarget(organizationId: string): Promise<{ readonly vaultId: string; readonly targetBundle: string }>;
  /** What a client has sealed to it. @throws {CoordinatorError} INVALID_ARGUMENT */
  openOtpBundle(
    target: SecretPlace,
    encryptedOtpBundle: string,
  ): Promise<{ readonly code: string; readonly publicKey: string }>;
}
