import { createHash, sign } from 'node:crypto';
import { ed25519KeyObject } from './curves.js';
import type { InstallationKeys } from './installation-keys.js';

/** Signs webhook deliveries (client protocol, section 10). */
export class WebhookKey {
  constructor(private readonly keys: InstallationKeys) {}

  /**
   * The only public key (RFC 8037), with the members that published clients look for; its id is its thumbprint (RFC
   * 7638).
   */
  get jwk() {
    const x = Buffer.from(this.keys.publicKey('webhook', 'compressed'), 'hex').toString('base64url');
    const thumbprint = createHash('sha256').update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }));
    return {
      kty: 'OKP',
      crv: 'Ed25519',
      x,
      kid: thumbprint.digest('base64url'),
      alg: 'EdDSA',
      use: 'sig',
      turnkey_signature_algorithm: 'ed25519',
      turnkey_signature_version: 'v1',
    } as const;
  }

  /** A signature over the message, 64 bytes (RFC 8032). */
  sign(message: Uint8Array): Promise<Uint8Array> {
    return this.keys.use('webhook', (key) => sign(null, message, ed25519KeyObject(key)));
  }
}
