import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { LOGGER } from '../http/logger.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { CHILD_INDEX, type ChildIndex } from '../ports/child-index.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { Children } from './children.js';

/** Sub-organizations, as recorded by their parents. */
@Module({
  imports: [ReadModelsModule],
  providers: [
    {
      provide: Children,
      inject: [EVENT_STORE, CHILD_INDEX, LOGGER],
      useFactory: (store: EventStore, lookUps: ChildIndex, logger: Logger) =>
        new Children(store, lookUps, {
          failed: (organizationId, err) =>
            logger.error({ organizationId, err }, 'a sub-organization could not be founded yet'),
          finished: (organizationId) =>
            logger.warn({ organizationId }, 'a sub-organization was left behind unfounded, and is founded now'),
        }),
    },
  ],
  exports: [Children],
})
export class ChildrenModule {}
