/** A fact about an activity, signed by the coordinator that decided it (docs/protocol.md, app proofs). */
export interface AppProof {
  readonly scheme: typeof appProofScheme;
  /** The key of the boot that signed it, which names its boot proof. */
  readonly publicKey: string;
  /** JSON; exactly these characters are signed. */
  readonly proofPayload: string;
  /** r ‖ s over SHA-256 of the payload, hex. */
  readonly signature: string;
}

export const appProofScheme = 'SIGNATURE_SCHEME_EPHEMERAL_KEY_P256';

/** An address and what it was derived from: a path of a wallet, or an independent private key. */
export interface DerivedAddress {
  readonly organizationId: string;
  readonly walletId?: string;
  readonly derivationPath?: string;
  readonly privateKeyId?: string;
  readonly address: string;
}
