import { Injectable } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { ClockState } from '../ports/clock.js';
import type { Condition } from '../ports/health.js';
import type { DriverMetrics } from '../ports/driver-metrics.js';

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

interface Build {
  readonly version: string;
  readonly commit?: string | undefined;
  readonly node: string;
}

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

  private readonly unauthenticated = new Counter({
    name: 'countersign_authentication_failures_total',
    help: 'Requests refused because nothing proved who sent them (status 401).',
    registers: [this.registry],
  });
  private readonly rateLimited = new Counter({
    name: 'countersign_rate_limited_requests_total',
    help: 'Requests refused by a rate limit (status 429).',
    registers: [this.registry],
  });

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  answered(route: string, status: number, elapsedSeconds: number): void {
    this.requests.observe({ route, status: String(status) }, elapsedSeconds);
    if (status === 401) this.unauthenticated.inc();
    if (status === 429) this.rateLimited.inc();
  }

  /** Says what runs. */
  describeBuild({ version, commit = '', node }: Build): void {
    new Gauge({
      name: 'countersign_build_info',
      help: 'What runs: always 1.',
      labelNames: ['version', 'commit', 'node'],
      registers: [this.registry],
    }).set({ version, commit, node }, 1);
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
  private readonly failedAppends = new Counter({
    name: 'countersign_append_failures_total',
    help: 'Appends of decisions that the store did not confirm.',
    registers: [this.registry],
  });
  private readonly submits = new Counter({
    name: 'countersign_submits_total',
    help: 'Responses to submits, by activity type and status.',
    labelNames: ['type', 'status'],
    registers: [this.registry],
  });
  private readonly messages = new Counter({
    name: 'countersign_messages_total',
    help: 'E-mail and text messages that were sent, will be sent again (retrying), or were given up (failed, abandoned).',
    labelNames: ['channel', 'outcome'],
    registers: [this.registry],
  });
  private readonly rebuilt = new Gauge({
    name: 'countersign_read_model_rebuild_ratio',
    help: 'How far the read models are on the way to what was recorded when this server started, from 0 to 1.',
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

  private readonly staleCounters = new Counter({
    name: 'countersign_passkey_counters_not_grown_total',
    help: 'Stamps of passkeys whose signature counter was not above the highest seen: there may be a copy of the passkey.',
    registers: [this.registry],
  });

  constructor() {
    super();
    // Prometheus sees an increase only in what it has seen before.
    for (const channel of ['email', 'sms']) {
      for (const outcome of ['sent', 'retrying', 'failed', 'abandoned']) this.messages.inc({ channel, outcome }, 0);
    }
  }

  /** Calls `lag` for the number of events that the read models are behind, whenever the metrics are read. */
  measureLag(lag: () => Promise<number | undefined>): void {
    new Gauge({
      name: 'countersign_read_model_lag_positions',
      help: 'How far the slowest read model is behind the last event, in store positions.',
      registers: [this.registry],
      async collect() {
        const behind = await lag();
        if (behind !== undefined) this.set(behind);
      },
    });
  }

  /** Calls `isReady` whenever the metrics are read. */
  measureReadiness(isReady: () => Promise<boolean>): void {
    new Gauge({
      name: 'countersign_ready',
      help: 'Whether this server is ready (1): what /health/ready says.',
      registers: [this.registry],
      async collect() {
        this.set((await isReady()) ? 1 : 0);
      },
    });
  }

  /** Calls `conditions` whenever the metrics are read. */
  measureConditions(conditions: () => readonly Condition[]): void {
    new Gauge({
      name: 'countersign_condition',
      help: 'A condition that operators must know about is present (1), by name and severity.',
      labelNames: ['name', 'severity'],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const { name, severity } of conditions()) this.set({ name, severity }, 1);
      },
    });
  }

  /** Calls `state` for what the clock has noticed, whenever the metrics are read. */
  measureClock(state: () => ClockState): void {
    const gauge = (name: string, help: string, value: (noticed: ClockState) => number) => {
      new Gauge({
        name,
        help,
        registers: [this.registry],
        collect() {
          this.set(value(state()));
        },
      });
    };
    gauge(
      'countersign_clock_lead_seconds',
      'How far the time of decisions is ahead of the system clock, after that was set back or events were recorded ahead of it.',
      ({ lead }) => lead / 1_000,
    );
    gauge(
      'countersign_clock_untrusted_seconds',
      'How far the system clock has stepped ahead, while the new time is not trusted and nothing is decided.',
      ({ untrusted }) => untrusted / 1_000,
    );
    gauge(
      'countersign_clock_adopted_steps',
      'Steps ahead of the system clock that were adopted at once, since the start.',
      ({ adopted }) => adopted.count,
    );
    gauge(
      'countersign_clock_organizations_ahead',
      'Organizations that refuse every decision because their last event is too far ahead of the clock.',
      ({ organizationsAhead }) => organizationsAhead.size,
    );
  }

  /** Calls `count` for the numbers of waiting activities, by age, whenever the metrics are read. */
  measureWaitingActivities(count: () => Readonly<Record<string, number>>): void {
    new Gauge({
      name: 'countersign_waiting_activities',
      help: 'Activities that wait for votes, by the time since they were submitted.',
      labelNames: ['age'],
      registers: [this.registry],
      collect() {
        for (const [age, waiting] of Object.entries(count())) this.set({ age }, waiting);
      },
    });
  }

  /** Calls `bytes` for the sizes of files, and `free` for the space on their disk, whenever the metrics are read. */
  measureDisk(bytes: () => Promise<Readonly<Record<string, number>>>, free: () => Promise<number | undefined>): void {
    new Gauge({
      name: 'countersign_store_bytes',
      help: 'Size of the files of the event store, the read models and the outbox in DATA_DIR.',
      labelNames: ['file'],
      registers: [this.registry],
      async collect() {
        this.reset();
        for (const [file, size] of Object.entries(await bytes())) this.set({ file }, size);
      },
    });
    new Gauge({
      name: 'countersign_disk_free_bytes',
      help: 'Free space on the disk of DATA_DIR.',
      registers: [this.registry],
      async collect() {
        const left = await free();
        if (left !== undefined) this.set(left);
      },
    });
  }

  /** Calls `count` for the number of messages that are being sent or wait for it, whenever the metrics are read. */
  measureOpenMessages(count: () => number): void {
    new Gauge({
      name: 'countersign_messages_open',
      help: 'E-mail and text messages that are being sent or wait for another attempt.',
      registers: [this.registry],
      collect() {
        this.set(count());
      },
    });
  }

  /** How far the read models are with what was recorded before, from 0 to 1. */
  rebuilding(ratio: number): void {
    this.rebuilt.set(ratio);
  }

  messageEnded(channel: string, outcome: string): void {
    this.messages.inc({ channel, outcome });
  }

  submitted(type: string, status: number): void {
    this.submits.inc({ type, status: String(status) });
  }

  appendFailed(): void {
    this.failedAppends.inc();
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

  passkeyCounterNotGrown(): void {
    this.staleCounters.inc();
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

  projected(model: string, position: bigint): void {
    this.positions.set({ model }, Number(position));
  }

  projectionFailed(model: string): void {
    this.failures.inc({ model });
  }
}
