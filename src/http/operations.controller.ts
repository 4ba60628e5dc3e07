import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CLOCK, type Clock } from '../ports/clock.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { CatchingUp } from './catching-up.js';
import { Metrics } from './metrics.js';

/** Health checks and metrics for operators. */
@Controller()
export class OperationsController {
  private readonly catchingUp = new CatchingUp();

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly runner: ReadModelRunner,
    private readonly metrics: Metrics,
  ) {
    metrics.measureLag(() => this.lag());
  }

  /** The process responds. */
  @Get('health/live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * The store responds and accepts our writes, and every read model runs, has caught up once, and does not stay behind.
   */
  @Get('health/ready')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<object> {
    const failed = this.runner.failures();
    try {
      await this.store.check?.();
      const head = (await this.store.head()) ?? -1n;
      const isBehind = this.catchingUp.isBehind(head, this.runner.reached(), this.clock.now());
      const status = failed.length > 0 ? 'failed' : isBehind ? 'catching-up' : 'ok';
      if (status !== 'ok') void reply.status(503);
      return { status, readModels: { failed } };
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
