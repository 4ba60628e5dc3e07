import { createCipheriv, createECDH, createHmac, randomBytes } from 'node:crypto';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { openAesGcm } from '../vault/key-encryption.js';
import { parsePublicKey, publicKeyOf, uncompressPublicKey } from './curves.js';

/*
 * The envelope in which published clients encrypt client secrets (docs/protocol.md, secrets of clients), in hex: a nonce, an
 * ephemeral P-256 point, a length, and AES-256-GCM ciphertext with its tag.
 */

/** Parts of the envelope in bytes; the length of the content is a little-endian 32-bit number. */
const nonceLength = 12;
const pointLength = 65;
const headLength = nonceLength + pointLength + 4;
const tagLength = 16;
const keyMessage = 'qos_encryption_hmac_message';

/** @param recipientHex the uncompressed P-256 point that it is sealed to */
export function sealEnvelope(secret: string, recipientHex: string): string {
  const recipient = Buffer.from(recipientHex, 'hex');
  const ecdh = createECDH('prime256v1');
  const ephemeral = ecdh.generateKeys();
  const key = sharedKey(ephemeral, recipient, ecdh.computeSecret(recipient));
  const nonce = randomBytes(nonceLength);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(authenticated(ephemeral, recipient));
  const sealed = Buffer.concat([cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  key.fill(0);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(sealed.length);
  return Buffer.concat([nonce, ephemeral, length, sealed]).toString('hex');
}

/**
 * The contents of an envelope, which the caller wipes.
 * @param title of the parameter that it came in, for errors
 * @throws {CoordinatorError} INVALID_ARGUMENT if it is cut off, changed, or sealed to another key
 */
export function openEnvelope(privateKey: Buffer, hex: string, title: string): Buffer {
  const bytes = Buffer.from(hex, 'hex');
  const sealed = bytes.subarray(headLength);
  if (bytes.length * 2 !== hex.length || sealed.length < tagLength) {
    throw invalidField(title, 'is not a complete envelope in hex: send the output of encryptOauth2ClientSecret');
  }
  if (bytes.readUInt32LE(nonceLength + pointLength) !== sealed.length) {
    throw invalidField(title, 'states a length that it does not have: it was cut off or changed in transit');
  }
  const nonce = bytes.subarray(0, nonceLength);
  const ephemeral = bytes.subarray(nonceLength, nonceLength + pointLength);
  // Refuses points off the curve, which would leak something about the key.
  parsePublicKey('CURVE_P256', ephemeral.toString('hex'), title);
  const recipient = uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', privateKey));
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(privateKey);
  const key = sharedKey(ephemeral, recipient, ecdh.computeSecret(ephemeral));
  try {
    return openAesGcm(key, Buffer.concat([nonce, sealed]), authenticated(ephemeral, recipient));
  } catch (cause) {
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `invalid request: ${title}: it could not be decrypted: seal it to \`oauthSecretEncryption\` of /public/v1/discovery/keys`,
      { category: 'REQUEST_INVALID', cause },
    );
  } finally {
    key.fill(0);
  }
}

/** @param shared the secret of both points, which is wiped */
function sharedKey(ephemeral: Buffer, recipient: Buffer, shared: Buffer): Buffer {
  const preimage = Buffer.concat([ephemeral, recipient, shared]);
  const mac = createHmac('sha512', preimage).update(keyMessage).digest();
  const key = Buffer.from(mac.subarray(0, 32));
  for (const secret of [shared, preimage, mac]) secret.fill(0);
  return key;
}

function authenticated(ephemeral: Buffer, recipient: Buffer): Buffer {
  const length = Buffer.of(pointLength);
  return Buffer.concat([ephemeral, length, recipient, length]);
}
