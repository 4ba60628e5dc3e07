import { X509Certificate } from 'node:crypto';
import { Controller, Get, Header, Inject } from '@nestjs/common';
import { InstallationKeys } from '../keyring/installation-keys.js';
import { WebhookKey } from '../keyring/webhook-key.js';
import { ATTESTOR, type Attestor } from '../proofs/attestor.js';

/** Public keys of this installation, for callers who verify what it signs or encrypt to it (docs/protocol.md, keys of the installation). */
@Controller('public/v1/discovery')
export class DiscoveryController {
  /** The root certificate of boot proofs, PEM. */
  private readonly attestationRoot: string;

  constructor(
    private readonly keys: InstallationKeys,
    private readonly webhookKey: WebhookKey,
    @Inject(ATTESTOR) { root }: Attestor,
  ) {
    this.attestationRoot = new X509Certificate(root).toString();
  }

  /** P-256 keys in hex: uncompressed, except `onRampEncryption`, which its client expects compressed. */
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

  /** The key that signs webhook deliveries, as a JWK Set (RFC 7517). */
  @Get('webhooks/jwks')
  @Header('cache-control', 'public, max-age=300')
  webhookKeys() {
    return { keys: [this.webhookKey.jwk] };
  }

  /**
   * The root of boot proofs of this installation. Verifiers pin it after getting it once from someone they trust:
   * fetched together with the proof, it proves nothing.
   */
  @Get('attestation-root.pem')
  @Header('content-type', 'application/x-pem-file')
  @Header('cache-control', 'public, max-age=300')
  root(): string {
    return this.attestationRoot;
  }
}
