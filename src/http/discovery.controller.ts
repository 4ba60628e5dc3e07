import { Controller, Get, Header } from '@nestjs/common';
import { InstallationKeys } from '../keyring/installation-keys.js';
import { WebhookKey } from '../keyring/webhook-key.js';

/** Public keys of this installation, for callers who check what it signs or seal something to it (client protocol 7.5). */
@Controller('public/v1/discovery')
export class DiscoveryController {
  constructor(
    private readonly keys: InstallationKeys,
    private readonly webhookKey: WebhookKey,
  ) {}

  /** P-256 keys in hex: uncompressed, but for `onRampEncryption`, which its client takes compressed. */
  @Get('keys')
  @Header('cache-control', 'public, max-age=300')
  publicKeys() {
    const { keys } = this;
    return {
      signer: keys.publicKey('signer', 'uncompressed'),
      notarizer: keys.publicKey('notarizer', 'uncompressed'),
      verificationToken: keys.publicKey('verification-token', 'uncompressed'),
      oauthSecretEncryption: keys.publicKey('oauth-secret', 'uncompressed'),
      onRampEncryption: keys.publicKey('on-ramp', 'compressed'),
    };
  }

  /** The key that deliveries of webhooks are signed with, as a JWK Set (RFC 7517). */
  @Get('webhooks/jwks')
  @Header('cache-control', 'public, max-age=300')
  webhookKeys() {
    return { keys: [this.webhookKey.jwk] };
  }
}
