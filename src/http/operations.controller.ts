import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CLOCK, type Clock } from '../ports/clock.js';
import { EVENT_STORE } from '../ports/engine.js';
import type { EventStore } from '../ledger/event-store.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { Metrics } from './metrics.js';

/** How long the read models may take to reach what was recorded when somebody asked, in milliseconds. */
const graceMs = 5_000;

/** What operators ask: is it up, can it work, how is it doing. */
@Controller()
export class OperationsController {
  /** What the read models have yet to reach, and since when; from the beginning everything that there is. */
  private goal: { position: bigint; since: number | undefined } = { position: 2n ** 63n, since: -Infinity };

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
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

  /** The store answers and takes what we write, and every read model runs, has caught up once, and does not stay behind. */
  @Get('health/ready')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<object> {
    const failed = this.runner.failures();
    try {
      await this.store.check?.();
      const head = (await this.store.head()) ?? -1n;
      const status = failed.length > 0 ? 'failed' : this.isBehind(head) ? 'catching-up' : 'ok';
      if (status !== 'ok') void reply.status(503);
      return { status, readModels: { failed } };
    } catch (error) {
      void reply.status(503);
      return { status: 'store-unavailable', reason: error instanceof Error ? error.message : 'unknown' };
    }
  }

  /** Positions say which is further, not how far: what counts is how long the read models have not reached one. */
  private isBehind(head: bigint): boolean {
    const reached = this.runner.reached();
    const now = this.clock.now();
    if (reached >= head) this.goal = { position: head, since: undefined };
    else if (reached >= this.goal.position) this.goal = { position: head, since: now };
    const { since } = this.goal;
    return since !== undefined && now - since > graceMs;
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
