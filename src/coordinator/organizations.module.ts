import { Global, Module } from '@nestjs/common';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { HISTORY, type HistoryOptions } from '../ledger/history-options.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { SNAPSHOTS, Snapshots } from '../ledger/snapshots.js';
import { UnreadableOrganizations } from '../ledger/unreadable-organizations.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { Children } from './children.js';

/** Organizations, folded from their streams and cached: rooms below this one read them too, so it is global. */
@Global()
@Module({
  imports: [MetricsModule, ReadModelsModule],
  providers: [
    Children,
    {
      provide: SNAPSHOTS,
      inject: [ReadModelRunner, LOGGER, HISTORY],
      useFactory: (runner: ReadModelRunner, logger: Log, { snapshotFolder }: HistoryOptions) =>
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
  exports: [Children, SNAPSHOTS, OrganizationLoader],
})
export class OrganizationsModule {}
