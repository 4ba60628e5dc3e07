import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { Driver } from '../engine/execute-activity.js';
import { EngineModule } from '../engine/engine.module.js';
import { LOGGER } from '../http/logger.js';
import { Metrics } from '../http/metrics.js';
import { MetricsModule } from '../http/metrics.module.js';
import { HttpClientModule } from '../http-client/http-client.module.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { WebhookKey } from '../keyring/webhook-key.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { ROWS } from '../read-models/define-query.js';
import type { Rows } from '../read-models/database.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { WebhookDispatcher } from './dispatcher.js';

/** Webhook deliveries. */
@Module({
  imports: [EngineModule, HttpClientModule, KeyringModule, LedgerModule, ReadModelsModule, MetricsModule],
  providers: [
    {
      provide: WebhookDispatcher,
      inject: [
        OutboundHttp,
        EVENT_STORE,
        CLOCK,
        LOGGER,
        ROWS,
        ReadModelRunner,
        OrganizationLoader,
        Driver,
        REGISTRY,
        WebhookKey,
        Metrics,
      ],
      useFactory: (
        { fetch }: OutboundHttp,
        store: EventStore,
        clock: Clock,
        logger: Logger,
        rows: Rows,
        runner: ReadModelRunner,
        loader: OrganizationLoader,
        { rights }: Driver,
        registry: Registry,
        signer: WebhookKey,
        metrics: Metrics,
      ) =>
        new WebhookDispatcher({
          rows,
          store,
          clock,
          fetch,
          signer,
          loader,
          registry,
          rights,
          runner,
          reports: {
            ended: (outcome) => metrics.deliveryEnded(outcome),
            abandoned: ({ endpointId, eventId, activityId }, reason) =>
              logger.warn({ endpointId, eventId, activityId, reason }, 'a webhook was not delivered, and is given up'),
            interrupted: (err) => logger.warn({ err }, 'a delivery of a webhook was interrupted; it is taken up again'),
            lease: {
              held: (name, token) => logger.debug({ name, token }, 'lease taken'),
              ended: (name, token, why) => logger.debug({ name, token, why }, 'lease ended'),
              interrupted: (name, err) => logger.warn({ name, err }, 'lease interrupted'),
            },
          },
        }),
    },
  ],
  exports: [WebhookDispatcher],
})
export class WebhooksModule {}
