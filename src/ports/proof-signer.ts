export const PROOF_SIGNER = Symbol('ProofSigner');

/** Signs facts with the key of this boot (docs/protocol.md, app proofs). */
export interface ProofSigner {
  /** 130 bytes, lower-case hex: identifies the boot. */
  readonly publicKey: string;
  /** r ‖ s over SHA-256 of the text, hex. */
  sign(text: string): string;
}
