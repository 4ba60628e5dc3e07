import { createDecipheriv, createECDH, createHmac } from 'node:crypto';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import type { SecretVault } from '../vault/attempt-vault.js';
import { parsePublicKey, publicKeyOf, uncompressPublicKey } from './curves.js';
import type { InstallationKeys } from './installation-keys.js';

interface Ports {
  readonly vault: SecretVault;
  readonly keys: InstallationKeys;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
}

interface Place {
  readonly organizationId: string;
  readonly vaultId: string;
}

/** Parts of the envelope in bytes; the length of the content is a little-endian 32-bit number. */
const nonceLength = 12;
const pointLength = 65;
const headLength = nonceLength + pointLength + 4;
const tagLength = 16;
const keyMessage = 'qos_encryption_hmac_message';

const secretName = 'client-secret';
const title = 'parameters.encryptedClientSecret';

/**
 * Client secrets of OAuth 2.0 applications: encrypted by their owner to the installation, and kept sealed in the vault.
 */
export class OauthSecrets {
  constructor(private readonly ports: Ports) {}

  /**
   * Opens what was encrypted to the installation's key `oauth-secret` and seals it in a new vault, whose id it returns.
   * @throws {CoordinatorError} INVALID_ARGUMENT for an envelope that does not open, or an invalid secret
   */
  async keep(organizationId: string, encryptedClientSecret: string): Promise<string> {
    const { vault, keys, newId } = this.ports;
    const secret = await keys.use('oauth-secret', (key) => openEnvelope(key, encryptedClientSecret));
    try {
      // RFC 6749, appendix A.2; other characters mean that it was cut off or encoded once too often.
      if (secret.length === 0 || secret.some((byte) => byte < 0x20 || byte > 0x7e)) {
        throw invalidField(title, 'the sealed content is not printable ASCII, so it is not a client secret');
      }
      const vaultId = newId();
      await vault.seal(vaultId, organizationId, [{ name: secretName, secret }]);
      return vaultId;
    } finally {
      secret.fill(0);
    }
  }

  /** Opens a client secret while `use` runs. */
  use<Result>(place: Place, use: (clientSecret: string) => Promise<Result>): Promise<Result> {
    return this.ports.vault.open({ ...place, name: secretName }, (secret) => use(secret.toString('latin1')));
  }
}

/**
 * Opens an envelope in which published clients encrypt client secrets (client protocol, section 7.7): hex of nonce,
 * ephemeral P-256 point, length, and AES-256-GCM ciphertext with its tag. The caller wipes the contents.
 */
function openEnvelope(privateKey: Buffer, hex: string): Buffer {
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
  const key = sharedKey(privateKey, ephemeral, recipient);
  try {
    const length = Buffer.from([pointLength]);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagLength });
    decipher.setAAD(Buffer.concat([ephemeral, length, recipient, length]));
    decipher.setAuthTag(sealed.subarray(-tagLength));
    return Buffer.concat([decipher.update(sealed.subarray(0, -tagLength)), decipher.final()]);
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

function sharedKey(privateKey: Buffer, ephemeral: Buffer, recipient: Buffer): Buffer {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(privateKey);
  const shared = ecdh.computeSecret(ephemeral);
  const preimage = Buffer.concat([ephemeral, recipient, shared]);
  const mac = createHmac('sha512', preimage).update(keyMessage).digest();
  const key = Buffer.from(mac.subarray(0, 32));
  for (const secret of [shared, preimage, mac]) secret.fill(0);
  return key;
}
