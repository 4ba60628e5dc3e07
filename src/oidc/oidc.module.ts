import { Module } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../http/config.token.js';
import { HttpClientModule } from '../http-client/http-client.module.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { OidcIssuer } from '../keyring/oidc-issuer.js';
import { KEYRING, type OpenKeyring } from '../keyring/open-keyring.js';
import { mendsOf } from '../domain/organization/clock-mends.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { OIDC } from '../ports/oidc.js';
import { Oauth2Client } from './oauth2-client.js';
import { knownOauth2Providers } from './oauth2-providers.js';
import { OidcVerifier } from './verify-token.js';

/** Other ways to log in: OpenID providers, and OAuth 2.0 providers for which this installation vouches. */
@Module({
  imports: [HttpClientModule, KeyringModule, LedgerModule],
  providers: [
    {
      provide: OIDC,
      inject: [CONFIG, CLOCK, OutboundHttp, OidcIssuer, OrganizationLoader],
      useFactory: (
        { oidcIssuers: issuers, socialLinkingIssuers: emailIssuers }: Config,
        clock: Clock,
        { fetch }: OutboundHttp,
        own: OidcIssuer,
        loader: OrganizationLoader,
      ) => {
        const mendsIn = async (organizationId: string) => mendsOf((await loader.recorded(organizationId)).organization);
        return new OidcVerifier({ clock, fetch, issuers, emailIssuers, own, mendsOf: mendsIn });
      },
    },
    {
      provide: Oauth2Client,
      inject: [CONFIG, CLOCK, OutboundHttp, KEYRING, OidcIssuer],
      useFactory: (
        { oauth2Providers }: Config,
        clock: Clock,
        { fetch }: OutboundHttp,
        { oauthSecrets: secrets }: OpenKeyring,
        issuer: OidcIssuer,
      ) => {
        const providers = { ...knownOauth2Providers, ...oauth2Providers };
        return new Oauth2Client({ fetch, clock, providers, secrets, issuer });
      },
    },
  ],
  exports: [OIDC, Oauth2Client],
})
export class OidcModule {}
