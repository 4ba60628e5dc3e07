import type { Randomness } from '../ports/randomness.js';
import { generatePrivateKey, publicKeyOf, uncompressPublicKey } from '../keyring/curves.js';
import { signBytesP256 } from '../keyring/p256.js';

/** The key of one boot, which signs its app proofs. Only this process has it, and it dies with the process. */
export class EphemeralKey {
  private constructor(
    /** 130 bytes, lower-case hex: an encryption key and the signing key, both uncompressed P-256 points. */
    readonly publicKey: string,
    private readonly signingKey: Buffer,
    private readonly randomness: Randomness,
  ) {}

  static make(randomness: Randomness): EphemeralKey {
    const newKey = () => generatePrivateKey('CURVE_P256', (count) => randomness.bytes(count));
    const [encryptionKey, signingKey] = [newKey(), newKey()];
    const publicKey = Buffer.concat([encryptionKey, signingKey].map(pointOf)).toString('hex');
    // The published form has this key; nothing is encrypted to a boot, so nobody needs its private part.
    encryptionKey.fill(0);
    return new EphemeralKey(publicKey, signingKey, randomness);
  }

  /** ECDSA over SHA-256 of a text in UTF-8: r ‖ s, hex. */
  sign(text: string): string {
    return Buffer.from(this.signBytes(Buffer.from(text))).toString('hex');
  }

  /** The same over bytes, as bytes. */
  signBytes(data: Uint8Array): Uint8Array {
    return signBytesP256(data, this.signingKey, this.randomness);
  }

  /** Wipes the key: nothing more can be signed. */
  close(): void {
    this.signingKey.fill(0);
  }
}

function pointOf(privateKey: Buffer): Buffer {
  return uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', privateKey));
}
