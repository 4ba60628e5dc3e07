import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { Children } from '../engine/children.js';
import { ChildrenModule } from '../engine/children.module.js';
import { LOGGER } from '../http/logger.js';
import { MetricsModule } from '../http/metrics.module.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { EVENT_STORE, type EventStore } from './event-store.js';
import { HISTORY, type HistoryOptions } from './history-options.js';
import { OrganizationLoader } from './load-organization.js';
import { SNAPSHOTS, Snapshots } from './snapshots.js';
import { UnreadableOrganizations } from './unreadable-organizations.js';

/** Organizations, folded from their streams and cached. */
@Module({
  imports: [MetricsModule, ReadModelsModule, ChildrenModule],
  providers: [
    {
      provide: SNAPSHOTS,
      inject: [ReadModelRunner, LOGGER, HISTORY],
      useFactory: (runner: ReadModelRunner, logger: Logger, { snapshotFolder }: HistoryOptions) =>
        snapshotFolder === undefined
          ? undefined
          : new Snapshots({
              folder: snapshotFolder,
              checkpoint: () => runner.checkpoint('activities'),
              ignored: (file, reason) => logger.warn({ file, reason }, 'snapshot ignored'),
              failed: (organizationId, err) => logger.warn({ organizationId, err }, 'snapshot not written'),
            }),
    },
    {
      provide: OrganizationLoader,
      inject: [EVENT_STORE, DRIVER_METRICS, SNAPSHOTS, Children, UnreadableOrganizations, HISTORY],
      useFactory: (
        store: EventStore,
        metrics: DriverMetrics,
        snapshots: Snapshots | undefined,
        children: Children,
        unreadable: UnreadableOrganizations,
        { takesImported = false }: HistoryOptions,
      ) =>
        new OrganizationLoader(store, metrics, {
          children,
          unreadable,
          takesImported,
          ...(snapshots ? { snapshots } : {}),
        }),
    },
  ],
  exports: [SNAPSHOTS, OrganizationLoader],
})
export class LedgerModule {}
