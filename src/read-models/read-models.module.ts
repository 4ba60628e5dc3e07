import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { CONFIG } from '../http/config.token.js';
import { logRebuild } from '../http/log-rebuild.js';
import { LOGGER } from '../http/logger.js';
import { Metrics } from '../http/metrics.js';
import { MetricsModule } from '../http/metrics.module.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { UnreadableOrganizations } from '../ledger/unreadable-organizations.js';
import { CHILD_INDEX } from '../ports/child-index.js';
import { CLAIMS } from '../ports/claims.js';
import { CLOCK } from '../ports/clock.js';
import { ROWS } from './define-query.js';
import { KNOWN_ACTIVITIES } from '../ports/known-activities.js';
import { COUNTERS } from '../ports/passkeys.js';
import type { Rows } from './database.js';
import { childIndex, claimIndex, knownActivities, passkeyCounters } from './indexes.js';
import { PROJECTING, type Projecting } from './projecting.js';
import { ReadModelRunner } from './runner.js';

/** The rows that queries read, their projections, and the ports that read them. */
@Module({
  imports: [MetricsModule],
  providers: [
    { provide: ROWS, inject: [PROJECTING], useFactory: ({ rows }: Projecting) => rows },
    {
      provide: ReadModelRunner,
      inject: [EVENT_STORE, PROJECTING, Metrics, LOGGER, UnreadableOrganizations],
      useFactory: (
        store: EventStore,
        projecting: Projecting,
        metrics: Metrics,
        logger: Logger,
        unreadable: UnreadableOrganizations,
      ) =>
        new ReadModelRunner(
          store,
          projecting,
          metrics.observing({
            failed: (model, position, reason) =>
              logger.error({ model, position: String(position), reason }, 'read model stopped'),
            leftOut: (place) => void unreadable.note(place),
            interrupted: (error) => logger.warn({ err: error }, 'event feed interrupted, resuming'),
            rebuild: logRebuild(logger),
          }),
        ),
    },
    { provide: KNOWN_ACTIVITIES, inject: [ReadModelRunner, ROWS], useFactory: knownActivities },
    { provide: CHILD_INDEX, inject: [ROWS], useFactory: childIndex },
    { provide: CLAIMS, inject: [ReadModelRunner, ROWS, CLOCK], useFactory: claimIndex },
    {
      provide: COUNTERS,
      inject: [EVENT_STORE, ReadModelRunner, ROWS, CONFIG, Metrics, LOGGER],
      useFactory: (
        store: EventStore,
        runner: ReadModelRunner,
        rows: Rows,
        config: Config,
        metrics: Metrics,
        logger: Logger,
      ) =>
        passkeyCounters(store, runner, rows, {
          isStrict: config.passkeyCounters === 'strict',
          notGrown: (seen) => {
            metrics.passkeyCounterNotGrown();
            logger.warn(seen, 'the signature counter of a passkey did not grow: there may be a copy of it');
          },
        }),
    },
  ],
  exports: [ROWS, ReadModelRunner, KNOWN_ACTIVITIES, CHILD_INDEX, CLAIMS, COUNTERS],
})
export class ReadModelsModule {}
