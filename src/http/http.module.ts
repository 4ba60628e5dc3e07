import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AuthProxiesModule } from '../coordinator/auth-proxies.module.js';
import { CoordinatorModule } from '../coordinator/coordinator.module.js';
import { QueriesModule } from '../queries/queries.module.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadGuard, StampGuard } from '../stamps/stamp.guard.js';
import { AuthProxyKeysController } from './auth-proxy-keys.controller.js';
import { DiscoveryController } from './discovery.controller.js';
import { DocsController } from './docs.controller.js';
import { ErrorsFilter } from './errors.filter.js';
import { Freshness } from './freshness.js';
import { InvitationPageController } from './invitation-page.controller.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import { OperationsController } from './operations.controller.js';
import { QueryController } from './query.controller.js';
import { RateLimits } from './rate-limits.js';
import { SubmitController } from './submit.controller.js';
import { WellKnownController } from './well-known.controller.js';

/** Everything that a coordinator serves over HTTP, except the auth proxy's own paths. */
@Module({
  imports: [CoordinatorModule, QueriesModule, AuthProxiesModule, KeyringModule, ReadModelsModule, MetricsModule],
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
  providers: [{ provide: APP_FILTER, useClass: ErrorsFilter }, Freshness, RateLimits, StampGuard, ReadGuard],
})
export class HttpModule {}
