/**
 * What the keyring asks of a library for secp256k1. Keys and digests are checked before they get here. Every back end
 * returns the same bytes for the same input, because signatures are recorded and promised to be repeatable.
 */
export interface Secp256k1 {
  /** Which library, for the log and `countersign doctor`. */
  readonly name: string;
  /** ECDSA over a digest of 32 bytes: nonce by RFC 6979 with SHA-256, low s (BIP-62, rule 5). */
  signEcdsa(digest: Uint8Array, privateKey: Uint8Array): RecoverableSignature;
  /**
   * BIP-340 over a digest of 32 bytes: 64 bytes. Auxiliary randomness is recommended and may be constant; here it is all
   * zero, so that deciding or replaying the same request gives the same signature. To cover the faults that randomness
   * defends against, the signature is verified before it is returned.
   */
  signSchnorr(digest: Uint8Array, privateKey: Uint8Array): Uint8Array;
  /** Whether a signature (64 bytes, r and s below the order, s low or high) is one over a digest of 32 bytes by a point. */
  verifyEcdsa(compact: Uint8Array, digest: Uint8Array, publicKey: Uint8Array): boolean;
  /** The compressed point of a private key, 33 bytes (SEC 1, section 2.3.3). */
  publicKeyOf(privateKey: Uint8Array): Uint8Array;
  /** The uncompressed form, 65 bytes, of a compressed point. */
  uncompress(publicKey: Uint8Array): Uint8Array;
  /** A compressed point plus the generator times a scalar below the order, 33 bytes. */
  addToPoint(publicKey: Uint8Array, scalar: Uint8Array): Uint8Array;
  /** Overwrites what is left of the keys used so far in memory that the library keeps. */
  forgetKeys(): void;
}

interface RecoverableSignature {
  /** r ‖ s, 64 bytes. */
  readonly compact: Uint8Array;
  /** 0 to 3: the parity of the nonce point's y, and 2 if its x is not below the order. */
  readonly recoveryId: number;
}
