import { Module } from '@nestjs/common';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import { CHILD_INDEX } from '../ports/child-index.js';
import { CLAIMS } from '../ports/claims.js';
import { KNOWN_ACTIVITIES } from '../ports/known-activities.js';
import { COUNTERS } from '../ports/passkeys.js';
import { ActivityIndex, ClaimIndex, CounterIndex, InstallationIndex, RecordedChildren } from './indexes.js';
import { PROJECTING, type Projecting } from './projecting.js';
import { ReadModelRunner } from './runner.js';
import { RunnerReports } from './runner-reports.js';

/** What projects events into rows, and the ports that read those. */
@Module({
  imports: [MetricsModule],
  providers: [
    RunnerReports,
    {
      // Commands build rows too, without Nest.
      provide: ReadModelRunner,
      inject: [EVENT_STORE, PROJECTING, RunnerReports],
      useFactory: (store: EventStore, projecting: Projecting, reports: RunnerReports) =>
        new ReadModelRunner(store, projecting, reports),
    },
    InstallationIndex,
    { provide: KNOWN_ACTIVITIES, useClass: ActivityIndex },
    { provide: CHILD_INDEX, useClass: RecordedChildren },
    { provide: CLAIMS, useClass: ClaimIndex },
    { provide: COUNTERS, useClass: CounterIndex },
  ],
  exports: [ReadModelRunner, InstallationIndex, KNOWN_ACTIVITIES, CHILD_INDEX, CLAIMS, COUNTERS],
})
export class ReadModelsModule {}
