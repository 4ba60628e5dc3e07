import { Inject, Injectable } from '@nestjs/common';
import { UnreadableOrganizations, type UnreadablePlace } from '../ledger/unreadable-organizations.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { Metrics } from '../metrics/metrics.js';
import { logRebuild } from './log-rebuild.js';
import type { RunnerObserver } from './runner.js';

/** Reports of the runner as metrics and log lines. */
@Injectable()
export class RunnerReports implements RunnerObserver {
  readonly rebuild: NonNullable<RunnerObserver['rebuild']>;

  constructor(
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Log,
    private readonly unreadable: UnreadableOrganizations,
  ) {
    this.rebuild = logRebuild(logger);
  }

  projected(model: string, position: bigint): void {
    this.metrics.projected(model, position);
  }

  failed(model: string, position: bigint, reason: string): void {
    this.metrics.projectionFailed(model);
    this.logger.error({ model, position: String(position), reason }, 'read model stopped');
  }

  leftOut(place: UnreadablePlace): void {
    this.unreadable.note(place);
  }

  interrupted(err: unknown): void {
    this.logger.warn({ err }, 'event feed interrupted, resuming');
  }
}
