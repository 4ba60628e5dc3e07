import { Injectable } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { DriverMetrics } from '../ports/driver-metrics.js';
import type { RunnerObserver } from '../read-models/runner.js';

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Prometheus metrics of one server; not global, so that several can run in one process. */
@Injectable()
export class HttpMetrics {
  readonly registry = new Registry();

  private readonly requests = new Histogram({
    name: 'countersign_http_request_seconds',
    help: 'Time to answer a request, by route and status.',
    labelNames: ['route', 'status'],
    buckets: seconds,
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  answered(route: string, status: number, elapsedSeconds: number): void {
    this.requests.observe({ route, status: String(status) }, elapsedSeconds);
  }
}

/** Prometheus metrics of one running coordinator. */
@Injectable()
export class Metrics extends HttpMetrics implements DriverMetrics {
  private readonly decisions = new Counter({
    name: 'countersign_decisions_total',
    help: 'Decisions of the policy engine, by outcome and activity type.',
    labelNames: ['outcome', 'type'],
    registers: [this.registry],
  });
  private readonly steps = new Histogram({
    name: 'countersign_steps',
    help: 'Main-thread steps (docs/limits.md) taken by one request: a submit or a query.',
    labelNames: ['on'],
    buckets: [100, 1_000, 10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000],
    registers: [this.registry],
  });
  private readonly readingSteps = new Histogram({
    name: 'countersign_reading_steps',
    help: 'Steps taken by worker threads to read what one request is about, when that takes long.',
    labelNames: ['on'],
    buckets: [10_000, 100_000, 1_000_000, 10_000_000],
    registers: [this.registry],
  });
  private readonly appends = new Histogram({
    name: 'countersign_append_seconds',
    help: 'Time until an append was durable.',
    buckets: seconds,
    registers: [this.registry],
  });
  private readonly batches = new Histogram({
    name: 'countersign_append_requests',
    help: 'Requests decided and recorded in one append.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers: [this.registry],
  });
  private readonly conflicts = new Counter({
    name: 'countersign_append_conflicts_total',
    help: 'Appends that lost a race against another writer and were decided again.',
    registers: [this.registry],
  });
  private readonly folds = new Histogram({
    name: 'countersign_fold_seconds',
    help: 'Time to fold the unread part of an organization stream.',
    buckets: seconds,
    registers: [this.registry],
  });
  private readonly foldedEvents = new Counter({
    name: 'countersign_folded_events_total',
    help: 'Events folded into organizations.',
    registers: [this.registry],
  });
  private readonly positions = new Gauge({
    name: 'countersign_read_model_position',
    help: 'Store position that a read model has reached.',
    labelNames: ['model'],
    registers: [this.registry],
  });
  private readonly failures = new Counter({
    name: 'countersign_read_model_failures_total',
    help: 'Read models that have stopped.',
    labelNames: ['model'],
    registers: [this.registry],
  });
  private readonly deliveries = new Counter({
    name: 'countersign_webhook_attempts_total',
    help: 'Webhook deliveries that succeeded (delivered), will be retried (retrying), or were given up (abandoned).',
    labelNames: ['outcome'],
    registers: [this.registry],
  });

  /** Calls `lag` for the number of events that the read models are behind, whenever the metrics are read. */
  measureLag(lag: () => Promise<number>): void {
    new Gauge({
      name: 'countersign_read_model_lag_positions',
      help: 'How far the slowest read model is behind the last event, in store positions.',
      registers: [this.registry],
      async collect() {
        this.set(await lag());
      },
    });
  }

  /** Calls `count` for the number of waiting webhook deliveries, whenever the metrics are read. */
  measureWaitingDeliveries(count: () => number): void {
    new Gauge({
      name: 'countersign_webhook_deliveries_waiting',
      help: 'Pending webhook deliveries, including those to be retried.',
      registers: [this.registry],
      collect() {
        this.set(count());
      },
    });
  }

  deliveryEnded(outcome: string): void {
    this.deliveries.inc({ outcome });
  }

  decided(outcome: string, type: string): void {
    this.decisions.inc({ outcome, type });
  }

  spent(...[on, { spent, decoding }]: Parameters<DriverMetrics['spent']>): void {
    this.steps.observe({ on }, spent);
    if (decoding.spent > 0) this.readingSteps.observe({ on }, decoding.spent);
  }

  appended(elapsedSeconds: number, batch: number): void {
    this.appends.observe(elapsedSeconds);
    this.batches.observe(batch);
  }

  conflict(): void {
    this.conflicts.inc();
  }

  folded(elapsedSeconds: number, events: number): void {
    this.folds.observe(elapsedSeconds);
    this.foldedEvents.inc(events);
  }

  /** Turns reports of the read-model runner into metrics, and passes the rest to `and`. */
  observing(and: Omit<RunnerObserver, 'projected'>): RunnerObserver {
    return {
      projected: (model, position) => this.positions.set({ model }, Number(position)),
      failed: (model, position, reason) => {
        this.failures.inc({ model });
        and.failed(model, position, reason);
      },
      interrupted: (error) => and.interrupted(error),
    };
  }
}
