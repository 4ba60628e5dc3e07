import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';

/** A wrapped data key, safe to store anywhere, with the id of the key-encryption key that opens it. */
export interface WrappedKey {
  readonly kekId: string;
  /** Base64; opaque except to the key-encryption key. */
  readonly wrappedKey: string;
}

/**
 * The port for the key-encryption key (KEK): `LocalKeyEncryption` holds it in memory, an adapter may leave it in an
 * external key management service. `context` binds a wrapped key to what it protects.
 */
export interface KeyEncryption {
  /** Id of the key that wraps now; earlier ones may still unwrap. */
  readonly currentId: string;
  /** Ids of all keys that can unwrap. */
  readonly knownIds: readonly string[];
  wrap(dataKey: Uint8Array, context: string): Promise<WrappedKey>;
  /**
   * The caller wipes the result.
   * @throws {KeyEncryptionError} if the key is unknown here, or does not open it
   */
  unwrap(wrapped: WrappedKey, context: string): Promise<Buffer>;
}

/** A secret cannot be opened with the available key-encryption keys. */
export class KeyEncryptionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeyEncryptionError';
  }
}

/** Bytes of a nonce of AES-GCM (NIST SP 800-38D, section 8.2). */
export const nonceLength = 12;
const tagLength = 16;
/** Bytes of a key of AES-256. */
const keyLength = 32;

/**
 * Identifies a key-encryption key without revealing anything about it: the first 8 bytes of an HMAC under it, in hex.
 */
export function keyId(key: Uint8Array): string {
  return createHmac('sha256', key).update('countersign kek id').digest('hex').slice(0, 16);
}

/** Key-encryption keys in memory: AES-256-GCM, the first wraps, all unwrap. */
export class LocalKeyEncryption implements KeyEncryption {
  readonly currentId: string;
  readonly knownIds: readonly string[];
  private readonly keys: ReadonlyMap<string, Buffer>;

  /** @param keys 32 bytes each, the current one first; at least one. They are copied: the caller may wipe them. */
  constructor(
    keys: readonly Uint8Array[],
    private readonly randomness: { bytes(count: number): Uint8Array },
  ) {
    const wrong = keys.find(({ length }) => length !== keyLength);
    if (wrong)
      throw new KeyEncryptionError(`a key-encryption key has ${wrong.length} bytes: it must have ${keyLength}`);
    this.keys = new Map(keys.map((key) => [keyId(key), ownCopy(key)]));
    this.knownIds = [...this.keys.keys()];
    const first = this.knownIds[0];
    if (first === undefined) throw new KeyEncryptionError('a key-encryption key is needed, got none');
    this.currentId = first;
  }

  wrap(dataKey: Uint8Array, context: string): Promise<WrappedKey> {
    const nonce = this.randomness.bytes(nonceLength);
    const wrapped = sealAesGcm(this.keys.get(this.currentId)!, nonce, dataKey, context);
    return Promise.resolve({ kekId: this.currentId, wrappedKey: wrapped.toString('base64') });
  }

  // Async, so that a refusal is a rejection, like that of an adapter to an external service.
  async unwrap({ kekId, wrappedKey }: WrappedKey, context: string): Promise<Buffer> {
    const key = this.keys.get(kekId);
    if (!key) {
      throw new KeyEncryptionError(
        `sealed under key-encryption key \`${kekId}\`, which is not among the available ones (${this.knownIds.join(', ')})`,
      );
    }
    try {
      return openAesGcm(key, Buffer.from(wrappedKey, 'base64'), context);
    } catch {
      throw new KeyEncryptionError(`key-encryption key \`${kekId}\` does not open a data key: it was changed or moved`);
    }
  }
}

/** Memory of its own: small buffers created by copying share theirs with others. */
function ownCopy(key: Uint8Array): Buffer {
  const copy = Buffer.alloc(key.length);
  copy.set(key);
  return copy;
}

/** AES-256-GCM: nonce (12 bytes) ‖ ciphertext ‖ tag (16 bytes). */
export function sealAesGcm(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, context: string): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** The caller wipes the result. @throws if it is not authentic under this key and context */
export function openAesGcm(key: Uint8Array, sealed: Buffer, context: string | Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceLength), { authTagLength: tagLength });
  decipher.setAAD(typeof context === 'string' ? Buffer.from(context) : context);
  decipher.setAuthTag(sealed.subarray(sealed.length - tagLength));
  const opened = decipher.update(sealed.subarray(nonceLength, sealed.length - tagLength));
  try {
    // GCM returns everything from `update`; only `final` says whether it is authentic.
    decipher.final();
    return opened;
  } catch (error) {
    opened.fill(0);
    throw error;
  }
}
