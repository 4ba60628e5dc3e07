import { Module } from '@nestjs/common';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { KEYRING, type OpenKeyring } from '../keyring/open-keyring.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { OidcModule } from '../oidc/oidc.module.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { ROWS } from '../read-models/define-query.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import { authProxiesModel, isOriginAllowedAnywhere, organizationOfConfig } from '../read-models/auth-proxies.js';
import { accountOf, claimsModel, keysOfCredentialId } from '../read-models/claims.js';
import type { Rows } from '../read-models/database.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { AuthProxies } from './auth-proxies.js';
import { EngineModule } from './engine.module.js';

/** Configurations and stamps for auth proxies. */
@Module({
  imports: [EngineModule, LedgerModule, ReadModelsModule, OidcModule],
  providers: [
    {
      provide: AuthProxies,
      inject: [OrganizationLoader, REGISTRY, ReadModelRunner, ROWS, CLOCK, OIDC, KEYRING],
      useFactory: (
        loader: OrganizationLoader,
        registry: Registry,
        runner: ReadModelRunner,
        rows: Rows,
        clock: Clock,
        oidc: OidcPort,
        { proxyKeys }: OpenKeyring,
      ) =>
        new AuthProxies({
          loader,
          registry,
          passed: (position) => runner.current(position, authProxiesModel, claimsModel),
          organizationOfConfig: (configId) => organizationOfConfig(rows, configId),
          isOriginAllowedAnywhere: (origin) => isOriginAllowedAnywhere(rows, origin),
          accountOf: (parentId, identifier) => accountOf(rows, parentId, identifier, clock.now()),
          keysOfCredentialId: (parentId, credentialId) => keysOfCredentialId(rows, parentId, credentialId),
          verifyOidc: (token) => oidc.verify(token, 'registration'),
          stamp: (place, body) => proxyKeys.stamp(place, body),
        }),
    },
  ],
  exports: [AuthProxies],
})
export class AuthProxiesModule {}
