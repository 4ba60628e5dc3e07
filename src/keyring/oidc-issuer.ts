import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { ADDRESSES, type Addresses } from '../ports/addresses.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import { sealTextBundle } from './hpke.js';
import { InstallationKeys } from './installation-keys.js';

/** Claims of our ID tokens. */
interface Claims {
  readonly audience: string;
  readonly subject: string;
  readonly nonce: string;
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The organization that requested it, and how often its clock had been mended, if it ever was: the token ends with the next time. */
  readonly organizationId: string;
  readonly clockMends?: number;
  /** Put into the token, sealed to the caller's P-256 key (hex), so that only the caller can read it. */
  readonly bearerToken?: { readonly text: string; readonly targetPublicKey: string };
}

/**
 * This installation as an OpenID issuer: for people authenticated by an OAuth 2.0 provider that does not issue ID
 * tokens itself (docs/protocol.md, OAuth 2.0). ES256 with the key `oidc-issuer`.
 */
@Injectable()
export class OidcIssuer {
  constructor(
    private readonly installation: InstallationKeys,
    @Inject(RANDOMNESS) private readonly randomness: Randomness,
    @Inject(ADDRESSES) private readonly addresses: Pick<Addresses, 'told'>,
  ) {}

  get issuer(): string {
    return this.addresses.told();
  }

  /** The only public key (RFC 7517); its id is its thumbprint (RFC 7638). */
  keys() {
    const point = Buffer.from(this.installation.publicKey('oidc-issuer', 'uncompressed'), 'hex');
    const [x, y] = [point.toString('base64url', 1, 33), point.toString('base64url', 33)];
    const thumbprint = createHash('sha256').update(JSON.stringify({ crv: 'P-256', kty: 'EC', x, y }));
    return [{ kty: 'EC', crv: 'P-256', x, y, kid: thumbprint.digest('base64url'), alg: 'ES256', use: 'sig' }] as const;
  }

  /**
   * An ID token (OpenID Connect Core 1.0, section 2), compact.
   * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid target key
   */
  async sign({
    audience,
    subject,
    nonce,
    issuedAt,
    expiresAt,
    organizationId,
    clockMends,
    bearerToken,
  }: Claims): Promise<string> {
    const [{ kid }] = this.keys();
    const payload = {
      iss: this.issuer,
      aud: audience,
      sub: subject,
      nonce,
      iat: Math.floor(issuedAt / 1000),
      exp: Math.floor(expiresAt / 1000),
      organization_id: organizationId,
      ...(clockMends === undefined ? {} : { clock_mends: clockMends }),
      ...(bearerToken ? { encrypted_bearer_token: await this.seal(bearerToken) } : {}),
    };
    const input = [{ alg: 'ES256', kid, typ: 'JWT' }, payload]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = await this.installation.sign('oidc-issuer', Buffer.from(input));
    return `${input}.${Buffer.from(signature).toString('base64url')}`;
  }

  private async seal({ text, targetPublicKey }: NonNullable<Claims['bearerToken']>): Promise<string> {
    const seed = this.randomness.bytes(32);
    const plaintext = Buffer.from(text);
    try {
      return await sealTextBundle(targetPublicKey, plaintext, 'parameters.bearerTokenTargetPublicKey', seed);
    } finally {
      plaintext.fill(0);
      seed.fill(0);
    }
  }
}
