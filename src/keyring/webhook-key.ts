import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { ed25519Signer } from './ed25519.js';
import { InstallationKeys } from './installation-keys.js';

/** Signs webhook deliveries (docs/protocol.md, webhooks). */
@Injectable()
export class WebhookKey {
  /**
   * The only public key (RFC 8037), with the members that published clients look for; its id is its thumbprint (RFC
   * 7638).
   */
  readonly jwk;

  constructor(private readonly keys: InstallationKeys) {
    const x = Buffer.from(keys.publicKey('webhook', 'compressed'), 'hex').toString('base64url');
    const kid = hash('sha256', JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }), 'base64url');
    this.jwk = {
      kty: 'OKP',
      crv: 'Ed25519',
      x,
      kid,
      alg: 'EdDSA',
      use: 'sig',
      turnkey_signature_algorithm: 'ed25519',
      turnkey_signature_version: 'v1',
    } as const;
  }

  /** A signature over the message, 64 bytes (RFC 8032). */
  sign(message: Uint8Array): Promise<Uint8Array> {
    return this.keys.use('webhook', (key) => ed25519Signer(key)(message));
  }
}
