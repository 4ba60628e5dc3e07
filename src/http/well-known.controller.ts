import { Controller, Get, Header } from '@nestjs/common';
import { OidcIssuer } from '../keyring/oidc-issuer.js';

/**
 * This installation as an OpenID issuer (OpenID Connect Discovery 1.0), for those who verify its ID tokens elsewhere.
 */
@Controller('.well-known')
export class WellKnownController {
  constructor(private readonly own: OidcIssuer) {}

  /** There is no authorization endpoint: tokens come only from the activity oauth2_authenticate. */
  @Get('openid-configuration')
  @Header('cache-control', 'public, max-age=300')
  configuration() {
    const { issuer } = this.own;
    return {
      issuer,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
      claims_supported: ['iss', 'aud', 'sub', 'nonce', 'iat', 'exp', 'encrypted_bearer_token'],
    };
  }

  @Get('jwks.json')
  @Header('cache-control', 'public, max-age=300')
  keys() {
    return { keys: this.own.keys() };
  }
}
