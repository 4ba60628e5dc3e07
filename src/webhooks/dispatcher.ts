import { hostname } from 'node:os';
import type { Registry } from '../decide/registry.js';
import { activityEnvelope } from '../wire/envelope.js';
import { Lease } from '../engine/lease.js';
import type { VotingRights } from '../engine/voting-rights.js';
import type { GuardedFetch } from '../http-client/guarded-fetch.js';
import type { EventStore } from '../ledger/event-store.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { Clock } from '../ports/clock.js';
import { activityAsOf } from '../read-models/activities.js';
import type { Rows } from '../read-models/database.js';
import type { ReadModelRunner } from '../read-models/runner.js';
import { hasWebhookEndpoints, type WebhookDelivery } from '../read-models/webhooks.js';
import type { Signer } from './attempt.js';
import { WebhookDeliveries } from './deliveries.js';

/** How long others wait for whoever delivers webhooks, in milliseconds (docs/adr/0017). */
const deliveryLeaseMs = 15_000;
/** Read models that a delivery is made from. */
const models = ['activities', 'users', 'webhooks'];

/** What is told of deliveries, and of whose turn it is. */
interface Reports {
  ended(outcome: string): void;
  abandoned(delivery: WebhookDelivery, reason: string | undefined): void;
  interrupted(error: unknown): void;
  readonly lease: ConstructorParameters<typeof Lease>[0]['observer'];
}

interface Ports {
  readonly rows: Rows;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly fetch: GuardedFetch;
  readonly signer: Signer;
  readonly loader: Pick<OrganizationLoader, 'load'>;
  readonly registry: Pick<Registry, 'versions'>;
  readonly rights: Pick<VotingRights, 'decoded'>;
  readonly runner: Pick<ReadModelRunner, 'follow' | 'modelPassed'>;
  readonly reports: Reports;
}

/** Deliveries of webhooks, by one of all coordinators on the store. As long as nobody has an endpoint, nobody stands for it. */
export class WebhookDispatcher {
  private readonly deliveries: WebhookDeliveries;
  private readonly lease: Lease;
  private isStarted = false;

  constructor(private readonly ports: Ports) {
    const { rows, store, clock, fetch, signer, runner, reports } = ports;
    this.deliveries = new WebhookDeliveries({
      rows,
      store,
      clock,
      fetch,
      signer,
      endpoint: (organizationId, endpointId) => this.endpoint(organizationId, endpointId),
      body: (delivery) => this.body(delivery),
      passed: (position, signal) => runner.modelPassed('webhooks', position, models, signal),
      observer: {
        settled(outcome, delivery, reason) {
          reports.ended(outcome);
          if (outcome === 'abandoned') reports.abandoned(delivery, reason);
        },
        interrupted: (error) => reports.interrupted(error),
      },
    });
    this.lease = new Lease({
      store,
      clock,
      name: 'webhook-deliveries',
      holder: `${hostname()}:${process.pid}`,
      ttlMs: deliveryLeaseMs,
      work: (term) => this.deliveries.work(term),
      observer: reports.lease,
    });
  }

  /** Delivers from now on, as soon as there is an endpoint. */
  start(): void {
    this.ports.runner.follow(() => this.look());
    this.look();
  }

  /** Resolves when nothing is on its way any more. */
  close(): Promise<void> {
    return this.lease.close();
  }

  private look(): void {
    if (!this.isStarted && hasWebhookEndpoints(this.ports.rows)) {
      this.isStarted = true;
      this.lease.start();
    }
    this.deliveries.wake();
  }

  private async endpoint(organizationId: string, endpointId: string) {
    const { organization } = await this.ports.loader.load(organizationId);
    return organization.isDeleted ? undefined : organization.webhookEndpoints.get(endpointId);
  }

  /** The activity as of the event, so that every attempt says the same. */
  private async body({
    sourceOrganizationId,
    activityId,
    activityType,
    revision,
    activityStatus,
  }: WebhookDelivery): Promise<object> {
    const { rows, loader, rights, registry } = this.ports;
    const record = activityAsOf(rows, sourceOrganizationId, activityId, revision);
    // Nobody asks: it is said whether there is anything to vote on at all.
    const waits = activityStatus === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
    const { organization } = await loader.load(sourceOrganizationId);
    const decoded = waits ? await rights.decoded(organization, record) : undefined;
    const shown = { canApprove: waits, canReject: waits, ...(decoded ? { decoded } : {}) };
    const { keys } = registry.versions.get(activityType)!;
    return activityEnvelope(record, { keys, rights: shown, now: record.updatedAt });
  }
}
