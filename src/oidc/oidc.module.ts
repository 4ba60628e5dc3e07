import { Module } from '@nestjs/common';
import type { Config } from '../config/config.js';
import { CONFIG } from '../config/config.token.js';
import { mendsOf } from '../domain/organization/clock-mends.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { OidcIssuer } from '../keyring/oidc-issuer.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { OIDC } from '../ports/oidc.js';
import { Oauth2Client } from './oauth2-client.js';
import { OidcVerifier } from './verify-token.js';

/** Other ways to log in: OpenID providers, and OAuth 2.0 providers for which this installation vouches. */
@Module({
  imports: [KeyringModule],
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
    Oauth2Client,
  ],
  exports: [OIDC, Oauth2Client],
})
export class OidcModule {}
