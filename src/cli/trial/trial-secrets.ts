import { createCipheriv, createECDH, createHmac, randomBytes } from 'node:crypto';
import { sealMessage, sealTextBundle } from '../../keyring/hpke.js';

const pointLength = 65;

/** The client secret of an OAuth 2.0 application, sealed to a P-256 key in hex as a client does (client protocol, section 7.7). */
export function sealedClientSecret(secret: string, targetPublicKey: string): string {
  const recipient = Buffer.from(targetPublicKey, 'hex');
  const ecdh = createECDH('prime256v1');
  const ephemeral = ecdh.generateKeys();
  const preimage = Buffer.concat([ephemeral, recipient, ecdh.computeSecret(recipient)]);
  const key = createHmac('sha512', preimage).update('qos_encryption_hmac_message').digest().subarray(0, 32);
  const nonce = randomBytes(12);
  const length = Buffer.of(pointLength);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.concat([ephemeral, length, recipient, length]));
  const sealed = Buffer.concat([cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(sealed.length);
  return Buffer.concat([nonce, ephemeral, size, sealed]).toString('hex');
}

/** A key of an account at an on-ramp, as `sealedClientSecret`. */
export const sealedProviderKey = (secret: string, targetPublicKey: string): Promise<string> =>
  sealTextBundle(targetPublicKey, Buffer.from(secret));

/** Anything, sealed to the key in a bundle of the coordinator as a client does. */
export async function sealedToBundle(bundle: string, secret: Uint8Array): Promise<string> {
  const { data } = JSON.parse(bundle) as { readonly data: string };
  const { targetPublic } = JSON.parse(Buffer.from(data, 'hex').toString()) as { readonly targetPublic: string };
  return JSON.stringify(await sealMessage(targetPublic, secret));
}
