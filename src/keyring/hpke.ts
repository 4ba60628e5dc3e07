import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import { Aes256Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import type { Randomness } from '../ports/randomness.js';
import { checkPrivateKey, parsePublicKey, publicKeyOf, uncompressPublicKey } from './curves.js';
import { derOfP256, signBytesP256 } from './p256.js';

/**
 * The HPKE encryption of a message: encapsulated key (65 bytes, uncompressed) and ciphertext with tag, lower-case hex.
 */
export interface SealedMessage {
  readonly encappedPublic: string;
  readonly ciphertext: string;
}

/** Signs bundles: `publicKey` is the uncompressed P-256 point in lower-case hex, `sign` returns DER over SHA-256. */
export interface BundleSigner {
  readonly publicKey: string;
  sign(data: Uint8Array): Buffer;
}

/** Base mode, DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM (RFC 9180; docs/protocol.md, HPKE). */
export const hpkeSuite = new CipherSuite({
  kem: new DhkemP256HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes256Gcm(),
});

const INFO = Buffer.from('turnkey_hpke');
const BUNDLE_VERSION = 'v1.0.0';
const base58check = createBase58check(sha256);
const COMPRESSED_LENGTH = 33;

/**
 * Seals a plaintext to a P-256 public key in hex, one message to each encapsulated key (docs/protocol.md, HPKE:
 * info `turnkey_hpke`, AAD = encapsulated ‖ recipient key). Throws INVALID_ARGUMENT naming `title` for a bad key.
 * `ephemeralSeed` (32 fresh random bytes) makes the encapsulated key (RFC 9180, 7.1.3); by default the platform does.
 */
export async function sealMessage(
  targetPublicKey: string,
  plaintext: Uint8Array,
  title = 'targetPublicKey',
  ephemeralSeed?: Uint8Array,
): Promise<SealedMessage> {
  const recipient = uncompressPublicKey('CURVE_P256', parsePublicKey('CURVE_P256', targetPublicKey, title));
  const copy = Uint8Array.from(plaintext);
  const seed = ephemeralSeed && Uint8Array.from(ephemeralSeed);
  try {
    const context = await hpkeSuite.createSenderContext({
      recipientPublicKey: await hpkeSuite.kem.deserializePublicKey(Uint8Array.from(recipient)),
      info: Uint8Array.from(INFO),
      // Of secrets the library gets the buffer itself: it would copy a view, and not wipe its copy.
      ...(seed ? { ekm: seed.buffer } : {}),
    });
    const encapsulated = new Uint8Array(context.enc);
    const ciphertext = await context.seal(copy.buffer, Uint8Array.from([...encapsulated, ...recipient]));
    return {
      encappedPublic: Buffer.from(encapsulated).toString('hex'),
      ciphertext: Buffer.from(ciphertext).toString('hex'),
    };
  } finally {
    copy.fill(0);
    seed?.fill(0);
  }
}

/**
 * Opens what was sealed to a P-256 private key (32 bytes). Throws INVALID_ARGUMENT naming `title`, and the expected
 * recipient, if a part is not hex, the encapsulated key is not a point, or the ciphertext is not authentic. The caller
 * wipes the plaintext.
 */
export async function openMessage(
  targetPrivateKey: Uint8Array,
  message: SealedMessage,
  title = 'encryptedBundle',
  target = 'the target key that was issued for it',
): Promise<Buffer> {
  const recipient = uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', targetPrivateKey));
  const encapsulated = uncompressPublicKey(
    'CURVE_P256',
    parsePublicKey('CURVE_P256', message.encappedPublic, `${title}.encappedPublic`),
  );
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(message.ciphertext)) {
    throw invalidField(`${title}.ciphertext`, 'it is not hex: send pairs of hex digits without a 0x prefix');
  }
  const privateKey = Uint8Array.from(targetPrivateKey);
  try {
    const context = await hpkeSuite.createRecipientContext({
      recipientKey: {
        privateKey: await hpkeSuite.kem.deserializePrivateKey(privateKey.buffer),
        publicKey: await hpkeSuite.kem.deserializePublicKey(Uint8Array.from(recipient)),
      },
      enc: Uint8Array.from(encapsulated),
      info: Uint8Array.from(INFO),
    });
    const aad = Uint8Array.from(Buffer.concat([encapsulated, recipient]));
    return Buffer.from(await context.open(Uint8Array.from(Buffer.from(message.ciphertext, 'hex')), aad));
  } catch (cause) {
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `invalid request: ${title}: it could not be decrypted: seal it to ${target}, with the info and additional data of docs/protocol.md, HPKE`,
      { category: 'REQUEST_INVALID', cause },
    );
  } finally {
    privateKey.fill(0);
  }
}

/**
 * A credential bundle (docs/protocol.md, credential bundles): a 32-byte API private key, sealed; base58check of the compressed
 * encapsulated key and the ciphertext. Not signed.
 */
export async function sealCredentialBundle(
  targetPublicKey: string,
  privateKey: Uint8Array,
  ephemeralSeed?: Uint8Array,
): Promise<string> {
  checkPrivateKey('CURVE_P256', privateKey);
  return sealTextBundle(targetPublicKey, privateKey, undefined, ephemeralSeed);
}

/** Seals anything in the form of a credential bundle, which published clients open whatever it contains. */
export async function sealTextBundle(
  targetPublicKey: string,
  plaintext: Uint8Array,
  title?: string,
  ephemeralSeed?: Uint8Array,
): Promise<string> {
  const { encappedPublic, ciphertext } = await sealMessage(targetPublicKey, plaintext, title, ephemeralSeed);
  const encapsulated = parsePublicKey('CURVE_P256', encappedPublic);
  return base58check.encode(Buffer.concat([encapsulated, Buffer.from(ciphertext, 'hex')]));
}

/**
 * Opens the form of a credential bundle, which on-ramp secrets share (sections 7.2 and 7.7). Throws as `openMessage`.
 */
export async function openCredentialBundle(
  targetPrivateKey: Uint8Array,
  bundle: string,
  title = 'credentialBundle',
  target?: string,
): Promise<Buffer> {
  let bytes: Buffer;
  try {
    bytes = Buffer.from(base58check.decode(bundle));
  } catch {
    throw invalidField(title, 'it is not base58 with a valid checksum: it was cut off or changed in transit');
  }
  const message = {
    encappedPublic: bytes.subarray(0, COMPRESSED_LENGTH).toString('hex'),
    ciphertext: bytes.subarray(COMPRESSED_LENGTH).toString('hex'),
  };
  return openMessage(targetPrivateKey, message, title, target);
}

/**
 * A signer of bundles from its P-256 private key (32 bytes), which it does not copy: sign before the key is wiped.
 */
export function bundleSigner(privateKey: Uint8Array, randomness: Pick<Randomness, 'isSeeded'>): BundleSigner {
  checkPrivateKey('CURVE_P256', privateKey);
  return {
    publicKey: uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', privateKey)).toString('hex'),
    sign: (data) => derOfP256(signBytesP256(data, privateKey, randomness)),
  };
}

/** The JSON text of every signed bundle: version, hex of the data's JSON, signature over those bytes, signer key. */
export function signBundle(data: Readonly<Record<string, string>>, signer: BundleSigner): string {
  const bytes = Buffer.from(JSON.stringify(data));
  return JSON.stringify({
    version: BUNDLE_VERSION,
    data: bytes.toString('hex'),
    dataSignature: signer.sign(bytes).toString('hex'),
    enclaveQuorumPublic: signer.publicKey,
  });
}

/**
 * An export bundle (docs/protocol.md, export bundles): a mnemonic as UTF-8, or a 32-byte private key, sealed to the
 * caller's target key and signed together with the organization's id.
 */
export async function sealExportBundle(
  content: {
    readonly targetPublicKey: string;
    readonly organizationId: string;
    readonly plaintext: Uint8Array;
    readonly ephemeralSeed?: Uint8Array;
  },
  signer: BundleSigner,
): Promise<string> {
  const { targetPublicKey, organizationId, plaintext, ephemeralSeed } = content;
  const { encappedPublic, ciphertext } = await sealMessage(targetPublicKey, plaintext, undefined, ephemeralSeed);
  return signBundle({ encappedPublic, ciphertext, organizationId }, signer);
}

/**
 * An import bundle (docs/protocol.md, import bundles): gives a client the key to seal its secret to. `targetPublicKey` is
 * the P-256 point in hex, created for this one import of this user.
 */
export function makeImportBundle(
  target: { readonly targetPublicKey: string; readonly organizationId: string; readonly userId: string },
  signer: BundleSigner,
): string {
  const { targetPublicKey, organizationId, userId } = target;
  const point = uncompressPublicKey('CURVE_P256', parsePublicKey('CURVE_P256', targetPublicKey, 'targetPublicKey'));
  return signBundle({ targetPublic: point.toString('hex'), organizationId, userId }, signer);
}

/**
 * Opens the `encryptedBundle` of an import activity with the private key of its import bundle. Throws INVALID_ARGUMENT
 * naming `title` if it is not JSON of the form `{"encappedPublic","ciphertext"}`, or as `openMessage`.
 */
export async function openImportedBundle(
  targetPrivateKey: Uint8Array,
  encryptedBundle: string,
  title = 'encryptedBundle',
): Promise<Buffer> {
  const message = readSealedMessage(encryptedBundle);
  if (message === undefined) {
    throw invalidField(title, 'it is not JSON with the strings `encappedPublic` and `ciphertext`');
  }
  return openMessage(targetPrivateKey, message, title);
}

function readSealedMessage(text: string): SealedMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { encappedPublic, ciphertext } = value as { encappedPublic?: unknown; ciphertext?: unknown };
  if (typeof encappedPublic !== 'string' || typeof ciphertext !== 'string') return undefined;
  return { encappedPublic, ciphertext };
}
