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

/** Injects where passkeys may be used unless an organization or its parent says so; empty is the rule of `stamps/webauthn.ts`. */
export const PASSKEY_ORIGINS = Symbol('PasskeyOrigins');

/** What was counted of passkeys, wherever under one parent they have stamped. */
export interface PasskeyCounters {
  /** The highest counter that was recorded in a parent (`familyId`) or one of its sub-organizations; 0 for none. */
  highest(familyId: string, passkey: { readonly credentialId: string; readonly publicKey: string }): Promise<number>;
}

export const COUNTERS = Symbol('PasskeyCounters');
