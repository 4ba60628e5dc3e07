import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { EVENT_STORE } from '../coordinator/ports.js';
import type { EventStore } from '../event-store/event-store.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { Metrics } from './metrics.js';

/** What operators ask: is it up, can it work, how is it doing. */
@Controller()
export class OperationsController {
  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    private readonly runner: ReadModelRunner,
    private readonly metrics: Metrics,
  ) {
    metrics.measureLag(() => this.lag());
  }

  /** The process answers. */
  @Get('health/live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** The store answers, and every read model runs and has caught up with it. */
  @Get('health/ready')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<object> {
    const failed = this.runner.failures();
    try {
      const lag = await this.lag();
      const status = failed.length > 0 ? 'failed' : lag > 1_000 ? 'catching-up' : 'ok';
      if (status !== 'ok') void reply.status(503);
      return { status, readModels: { lag, failed } };
    } catch (error) {
      void reply.status(503);
      return { status: 'store-unavailable', reason: error instanceof Error ? error.message : 'unknown' };
    }
  }

  @Get('metrics')
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  prometheus(): Promise<string> {
    return this.metrics.registry.metrics();
  }

  private async lag(): Promise<number> {
    const head = (await this.store.head()) ?? -1n;
    const behind = head - this.runner.reached();
    return behind > 0n ? Number(behind) : 0;
  }
}
