import { createCipheriv, createDecipheriv, createECDH, createHmac } from 'node:crypto';

/*
 * RFC 9180, base mode, DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM, written from the text of the RFC over
 * node:crypto, to have a second opinion on ours. Slow and short on purpose.
 */

const KEM_SUITE = Buffer.from('KEM\0\x10', 'latin1');
const HPKE_SUITE = Buffer.from('HPKE\0\x10\0\x01\0\x02', 'latin1');

/** Section 4: LabeledExtract, then LabeledExpand. */
function labeledExtract(suite: Buffer, salt: Buffer, label: string, ikm: Buffer): Buffer {
  const labeled = Buffer.concat([Buffer.from('HPKE-v1'), suite, Buffer.from(label), ikm]);
  return createHmac('sha256', salt.length === 0 ? Buffer.alloc(32) : salt)
    .update(labeled)
    .digest();
}

function labeledExpand(suite: Buffer, prk: Buffer, label: string, info: Buffer, length: number): Buffer {
  const labeled = Buffer.concat([Buffer.of(0, length), Buffer.from('HPKE-v1'), suite, Buffer.from(label), info]);
  return createHmac('sha256', prk)
    .update(Buffer.concat([labeled, Buffer.of(1)]))
    .digest()
    .subarray(0, length);
}

/** Section 5.1: key and nonce of the first message, from the Diffie-Hellman value and both public keys. */
function keySchedule(
  dh: Buffer,
  encapsulated: Buffer,
  recipient: Buffer,
  info: Buffer,
): { key: Buffer; nonce: Buffer } {
  const none = Buffer.alloc(0);
  const prk = labeledExtract(KEM_SUITE, none, 'eae_prk', dh);
  const shared = labeledExpand(KEM_SUITE, prk, 'shared_secret', Buffer.concat([encapsulated, recipient]), 32);
  const context = Buffer.concat([
    Buffer.of(0),
    labeledExtract(HPKE_SUITE, none, 'psk_id_hash', none),
    labeledExtract(HPKE_SUITE, none, 'info_hash', info),
  ]);
  const secret = labeledExtract(HPKE_SUITE, shared, 'secret', none);
  return {
    key: labeledExpand(HPKE_SUITE, secret, 'key', context, 32),
    nonce: labeledExpand(HPKE_SUITE, secret, 'base_nonce', context, 12),
  };
}

function publicOf(privateKey: Buffer): Buffer {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(privateKey);
  return ecdh.getPublicKey();
}

function agree(privateKey: Buffer, publicKey: Buffer): Buffer {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(privateKey);
  return ecdh.computeSecret(publicKey);
}

/** Seals the first message with a given ephemeral key. */
export function referenceSeal(
  ephemeral: Buffer,
  recipient: Buffer,
  message: { readonly info: Buffer; readonly aad: Buffer; readonly plaintext: Buffer },
): { encapsulated: Buffer; ciphertext: Buffer } {
  const encapsulated = publicOf(ephemeral);
  const { key, nonce } = keySchedule(agree(ephemeral, recipient), encapsulated, recipient, message.info);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(message.aad);
  const ciphertext = Buffer.concat([cipher.update(message.plaintext), cipher.final(), cipher.getAuthTag()]);
  return { encapsulated, ciphertext };
}

/** Opens the first message; throws when it is not authentic. */
export function referenceOpen(
  privateKey: Buffer,
  encapsulated: Buffer,
  message: { readonly info: Buffer; readonly aad: Buffer; readonly ciphertext: Buffer },
): Buffer {
  const { key, nonce } = keySchedule(agree(privateKey, encapsulated), encapsulated, publicOf(privateKey), message.info);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(message.aad);
  decipher.setAuthTag(message.ciphertext.subarray(-16));
  return Buffer.concat([decipher.update(message.ciphertext.subarray(0, -16)), decipher.final()]);
}
