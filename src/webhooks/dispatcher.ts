import { hostname } from 'node:os';
import type { Registry } from '../decide/registry.js';
import { activityEnvelope } from '../wire/envelope.js';
import { Lease } from '../engine/lease.js';
import { noRights, type VotingRights } from '../engine/voting-rights.js';
import type { TurnFor } from '../fairness/turns.js';
import type { GuardedFetch } from '../http-client/guarded-request.js';
import type { EventStore } from '../ledger/event-store.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { Clock } from '../ports/clock.js';
import { activityAsOf } from '../read-models/activities.js';
import type { Rows } from '../read-models/database.js';
import type { ReadModelRunner } from '../read-models/runner.js';
import { hasWebhookEndpoints, type WebhookDelivery } from '../read-models/webhooks.js';
import type { Signer } from './attempt.js';
import { WebhookDeliveries } from './deliveries.js';

/** How long others wait for the coordinator that delivers webhooks, in milliseconds (docs/adr/0023). */
const deliveryLeaseMs = 15_000;
/** Read models that a delivery is built from. */
const models = ['activities', 'users', 'webhooks'];

/** Reports on deliveries, and on who holds the lease. */
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
  readonly rights: Pick<VotingRights, 'ofAnybody'>;
  readonly runner: Pick<ReadModelRunner, 'checkpoint' | 'follow' | 'modelPassed'>;
  readonly reports: Reports;
}

/**
 * Webhook deliveries, by one of the coordinators on a store. While there are no endpoints, nobody competes for the
 * lease.
 */
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
      body: (delivery, turn) => this.body(delivery, turn),
      passed: (position, signal) => runner.modelPassed('webhooks', position, models, signal),
      shown: () => runner.checkpoint('webhooks'),
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

  /** Resolves once nothing is in flight. */
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
  private async body(
    { sourceOrganizationId: organizationId, activityId, activityType, revision, activityStatus }: WebhookDelivery,
    turn: TurnFor,
  ): Promise<object> {
    const { rows, loader, rights, registry } = this.ports;
    const { record, characters } = await activityAsOf(rows, { organizationId, activityId, revision }, turn);
    const waits = activityStatus === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
    const shown = waits ? await rights.ofAnybody((await loader.load(organizationId)).organization, record) : noRights;
    const { keys } = registry.versions.get(activityType)!;
    const envelope = activityEnvelope(record, { keys, rights: shown, now: record.updatedAt });
    await turn(characters);
    return envelope;
  }
}
