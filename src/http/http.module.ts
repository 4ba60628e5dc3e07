import { X509Certificate } from 'node:crypto';
import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { endpoints } from '../auth-proxy/endpoints.js';
import type { Config } from '../config/config.js';
import { AuthProxiesModule } from '../engine/auth-proxies.module.js';
import { EngineModule } from '../engine/engine.module.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { ATTESTOR, type Attestor } from '../proofs/attestor.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadGuard, StampGuard } from '../stamps/stamp.guard.js';
import { AuthProxyKeysController } from './auth-proxy-keys.controller.js';
import { CONFIG } from './config.token.js';
import { ATTESTATION_ROOT, DiscoveryController } from './discovery.controller.js';
import { DocsController, PROXY_ENDPOINTS } from './docs.controller.js';
import { ErrorsFilter } from './errors.filter.js';
import { FreshnessModule } from './freshness.module.js';
import { InvitationPageController } from './invitation-page.controller.js';
import { MetricsModule } from './metrics.module.js';
import { OperationsController } from './operations.controller.js';
import { QueryController } from './query.controller.js';
import { RateLimits } from './rate-limits.js';
import { SubmitController } from './submit.controller.js';
import { WellKnownController } from './well-known.controller.js';

/** Everything that a coordinator serves over HTTP, except the auth proxy's own paths. */
@Module({
  imports: [EngineModule, AuthProxiesModule, KeyringModule, ReadModelsModule, MetricsModule, FreshnessModule],
  controllers: [
    AuthProxyKeysController,
    SubmitController,
    QueryController,
    DiscoveryController,
    WellKnownController,
    OperationsController,
    DocsController,
    InvitationPageController,
  ],
  providers: [
    { provide: APP_FILTER, useClass: ErrorsFilter },
    RateLimits,
    StampGuard,
    ReadGuard,
    {
      provide: PROXY_ENDPOINTS,
      inject: [CONFIG],
      useFactory: ({ app }: Config) => (app === 'all' ? endpoints : []),
    },
    {
      provide: ATTESTATION_ROOT,
      inject: [ATTESTOR],
      useFactory: ({ root }: Attestor) => ({ pem: new X509Certificate(root).toString() }),
    },
  ],
})
export class HttpModule {}
