import { Controller, Get, Header, Inject, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { CLOCK, type Clock } from '../ports/clock.js';
import { EVENT_STORE, latestPosition, type EventStore } from '../ledger/event-store.js';
import { HEALTH, type Condition, type Health } from '../ports/health.js';
import { waitingByAge } from '../read-models/activities.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { CatchingUp } from './catching-up.js';
import { Metrics } from '../metrics/metrics.js';
import { Shutdown } from './shutdown.js';

/** How long the store may take to respond to a probe, in milliseconds. Probes themselves usually wait for 3 s or more. */
const storeMs = 2_000;

interface Readiness {
  readonly isReady: boolean;
  readonly status: 'ok' | 'degraded' | 'failed' | 'catching-up' | 'stopping' | 'store-unavailable';
  readonly reason?: string;
  readonly readModels?: { readonly failed: readonly string[] };
  readonly conditions?: readonly Omit<Condition, 'since'>[];
}

/** Health checks and metrics for operators. */
@Controller()
export class OperationsController {
  private readonly catchingUp = new CatchingUp();
  /** What was recorded at the first question whether this server has started. */
  private recordedBefore: bigint | undefined;
  private hasStarted = false;

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(HEALTH) private readonly health: Health,
    private readonly runner: ReadModelRunner,
    private readonly metrics: Metrics,
    private readonly shutdown: Shutdown,
    @Inject(ROWS) rows: Rows,
  ) {
    metrics.measureLag(() => this.lag());
    metrics.measureReadiness(async () => (await this.readiness()).isReady);
    metrics.measureConditions(() => health.conditions());
    if (clock.state) metrics.measureClock(() => clock.state!());
    metrics.measureWaitingActivities(() => waitingByAge(rows, clock.now()));
  }

  /** The process responds. A restart is what helps if it does not; nothing else turns this red. */
  @Get('health/live')
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** 503 until the read models have once reached what was recorded before; from then on 200. */
  @Get('health/startup')
  async startup(@Res({ passthrough: true }) reply: FastifyReply): Promise<object> {
    if (!this.hasStarted) {
      const reached = this.runner.reached();
      try {
        this.recordedBefore ??= await within(storeMs, latestPosition(this.store));
      } catch (error) {
        void reply.status(503);
        return { status: 'store-unavailable', reason: reasonOf(error) };
      }
      if (reached < this.recordedBefore) {
        void reply.status(503);
        return { status: 'starting', readModels: { reached: String(reached), recorded: String(this.recordedBefore) } };
      }
      this.hasStarted = true;
    }
    return { status: 'ok' };
  }

  /**
   * 503 if something stops this instance: a failing condition, a store that does not respond or accept our writes, a read
   * model that has stopped, has not caught up once, or stays behind, or because it is shutting down. `conditions` says what is
   * wrong, also where it only degrades.
   */
  @Get('health/ready')
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<object> {
    const { isReady, ...body } = await this.readiness();
    if (!isReady) void reply.status(503);
    return body;
  }

  @Get('metrics')
  @Header('content-type', 'text/plain; version=0.0.4; charset=utf-8')
  prometheus(): Promise<string> {
    return this.metrics.registry.metrics();
  }

  private async readiness(): Promise<Readiness> {
    const failed = this.runner.failures();
    const conditions = this.health.conditions().map(({ name, severity, message }) => ({ name, severity, message }));
    const isFailing = conditions.some(({ severity }) => severity === 'failing');
    const shown = conditions.length > 0 ? { conditions } : {};
    try {
      this.store.remote?.check();
      await within(storeMs, this.store.check?.() ?? Promise.resolve());
      const head = await within(storeMs, latestPosition(this.store));
      const isBehind = this.catchingUp.isBehind(head, this.runner.reached(), this.clock.now());
      const stopped = failed.length > 0 || isFailing ? 'failed' : isBehind ? 'catching-up' : undefined;
      const red = this.shutdown.isAnnounced ? 'stopping' : stopped;
      const status = red ?? (conditions.length > 0 ? 'degraded' : 'ok');
      return { isReady: red === undefined, status, readModels: { failed }, ...shown };
    } catch (error) {
      return { isReady: false, status: 'store-unavailable', reason: reasonOf(error), ...shown };
    }
  }

  /** Undefined if the store does not say: metrics are needed most while it does not. */
  private async lag(): Promise<number | undefined> {
    const recorded = await within(storeMs, latestPosition(this.store)).catch(() => undefined);
    if (recorded === undefined) return undefined;
    const reached = this.runner.reached();
    this.recordedBefore ??= recorded;
    const goal = Number(this.recordedBefore + 1n);
    this.metrics.rebuilding(goal === 0 ? 1 : Math.min(1, Number(reached + 1n) / goal));
    return recorded > reached ? Number(recorded - reached) : 0;
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

/** @throws {Error} after so many milliseconds; the work itself continues */
async function within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      work,
      new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`the event store has not responded within ${ms} ms`)), ms);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}
