import { Module } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../http/config.token.js';
import { guardedFetch } from '../http-client/guarded-fetch.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { OidcIssuer } from '../keyring/oidc-issuer.js';
import { KEYRING, type OpenKeyring } from '../keyring/open-keyring.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { OIDC } from '../ports/oidc.js';
import { Oauth2Client } from './oauth2-client.js';
import { knownOauth2Providers } from './oauth2-providers.js';
import { OidcVerifier } from './verify-token.js';

/** Other ways to log in: OpenID providers, and OAuth 2.0 providers for which this installation vouches. */
@Module({
  imports: [KeyringModule],
  providers: [
    {
      provide: OIDC,
      inject: [CONFIG, CLOCK, OidcIssuer],
      useFactory: (
        { allowPrivateNetwork, oidcIssuers: issuers, socialLinkingIssuers: emailIssuers }: Config,
        clock: Clock,
        own: OidcIssuer,
      ) => new OidcVerifier({ clock, fetch: guardedFetch({ allowPrivateNetwork }), issuers, emailIssuers, own }),
    },
    {
      provide: Oauth2Client,
      inject: [CONFIG, CLOCK, KEYRING, OidcIssuer],
      useFactory: (
        { allowPrivateNetwork, oauth2Providers }: Config,
        clock: Clock,
        { oauthSecrets: secrets }: OpenKeyring,
        issuer: OidcIssuer,
      ) => {
        const providers = { ...knownOauth2Providers, ...oauth2Providers };
        return new Oauth2Client({ fetch: guardedFetch({ allowPrivateNetwork }), clock, providers, secrets, issuer });
      },
    },
  ],
  exports: [OIDC, Oauth2Client],
})
export class OidcModule {}
