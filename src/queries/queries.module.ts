import { Module } from '@nestjs/common';
import { CoordinatorModule } from '../coordinator/coordinator.module.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import { OidcModule } from '../oidc/oidc.module.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { QueryReaders } from './query-readers.js';
import { QueryTasks } from './query-tasks.js';
import { ReadSessions } from './read-sessions.js';
import { RunQueryHandler } from './run-query.js';

/** Answers queries. */
@Module({
  imports: [CoordinatorModule, ReadModelsModule, OidcModule, MetricsModule],
  providers: [QueryTasks, ReadSessions, QueryReaders, RunQueryHandler],
})
export class QueriesModule {}
