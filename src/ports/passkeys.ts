/** A registration as the client sends it (docs/protocol.md, passkey stamps); everything base64url. */
export interface Registration {
  /** The challenge the client used, at most 256 characters. */
  readonly challenge: string;
  readonly attestation: {
    readonly credentialId: string;
    readonly clientDataJson: string;
    readonly attestationObject: string;
    readonly transports: readonly string[];
  };
  /** Accepted origins, exactly as a browser serializes them; without a list, any whose host fits the RP id. */
  readonly allowedOrigins?: readonly string[];
}

/** The passkey in a verified WebAuthn registration. */
export interface VerifiedRegistration {
  /** Base64url. */
  readonly credentialId: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  /** A UUID. */
  readonly aaguid: string;
  /** Format of the attestation statement: `none`, `packed`, … */
  readonly attestationType: string;
  /** SHA-256 of the RP id, hex. */
  readonly rpIdHash: string;
  readonly signCount: number;
  readonly transports: readonly string[];
}

/** The length of a credential id, in bytes (WebAuthn level 3, section 4). */
export const maxCredentialIdBytes = 1_023;

/** A signature counter that is not above the highest seen: the passkey may have been copied. */
interface StaleCounter {
  readonly organizationId: string;
  readonly userId: string;
  readonly credentialId: string;
  readonly signCount: number;
  readonly highestSeen: number;
}

/** Signature counters of passkeys, wherever under one parent they have stamped. */
export interface PasskeyCounters {
  /** A counter that has not grown refuses the request. */
  readonly isStrict: boolean;
  /** Called for a counter that has not grown, unless the passkey is backup-eligible. */
  notGrown(seen: StaleCounter): void;
  /** The highest counter recorded in a parent (`familyId`) or one of its sub-organizations; 0 for none. */
  highest(familyId: string, passkey: { readonly credentialId: string; readonly publicKey: string }): Promise<number>;
}

export const COUNTERS = Symbol('PasskeyCounters');
