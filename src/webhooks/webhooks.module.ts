import { Module } from '@nestjs/common';
import { CoordinatorModule } from '../coordinator/coordinator.module.js';
import { KeyringModule } from '../keyring/keyring.module.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { WebhookDispatcher } from './dispatcher.js';

/** Webhook deliveries. */
@Module({
  imports: [CoordinatorModule, KeyringModule, ReadModelsModule, MetricsModule],
  providers: [WebhookDispatcher],
  exports: [WebhookDispatcher],
})
export class WebhooksModule {}
