/**
 * What the keyring asks of a library for Ed25519 (RFC 8032). Keys are checked before they get here. Every library returns
 * the same bytes for the same input, because signatures are recorded and promised to be repeatable.
 */
export interface Ed25519 {
  /** Which library, for the log and `countersign doctor`. */
  readonly name: string;
  /** The public key of a private key, 32 bytes each (RFC 8032, section 5.1.5). */
  publicKeyOf(privateKey: Uint8Array): Uint8Array;
  /** Prepares a private key of 32 bytes, which costs as much as a signature. */
  signer(privateKey: Uint8Array): Ed25519Signer;
}

interface Ed25519Signer {
  /** The signature of a message of any length, 64 bytes (RFC 8032, section 5.1.6). */
  sign(message: Uint8Array): Uint8Array;
  /** Wipes what was made of the key; the key itself is the caller's to wipe. */
  forget(): void;
}
