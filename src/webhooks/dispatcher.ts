import { hostname } from 'node:os';
import { Inject, Injectable } from '@nestjs/common';
import { REGISTRY, type Registry } from '../decide/registry.js';
import { activityEnvelope } from '../wire/envelope.js';
import { Lease } from '../lease/lease.js';
import { Driver } from '../coordinator/execute-activity.js';
import { noRights } from '../coordinator/voting-rights.js';
import type { TurnFor } from '../fairness/turns.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { WebhookKey } from '../keyring/webhook-key.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { Metrics } from '../metrics/metrics.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { activityAsOf } from '../read-models/activities.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { hasWebhookEndpoints, type WebhookDelivery } from '../read-models/webhooks.js';
import { WebhookDeliveries } from './deliveries.js';

/** How long others wait for the coordinator that delivers webhooks, in milliseconds (docs/adr/0023). */
const deliveryLeaseMs = 15_000;
/** Read models that a delivery is built from. */
const models = ['activities', 'users', 'webhooks'];

/**
 * Webhook deliveries, by one of the coordinators on a store. While there are no endpoints, nobody competes for the
 * lease.
 */
@Injectable()
export class WebhookDispatcher {
  private readonly deliveries: WebhookDeliveries;
  private readonly lease: Lease;
  private isStarted = false;

  constructor(
    { fetch }: OutboundHttp,
    @Inject(EVENT_STORE) store: EventStore,
    @Inject(CLOCK) clock: Clock,
    @Inject(LOGGER) logger: Log,
    @Inject(ROWS) private readonly rows: Rows,
    private readonly runner: ReadModelRunner,
    private readonly loader: OrganizationLoader,
    private readonly driver: Driver,
    @Inject(REGISTRY) private readonly registry: Registry,
    signer: WebhookKey,
    metrics: Metrics,
  ) {
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
        settled(outcome, { endpointId, eventId, activityId }, reason) {
          metrics.deliveryEnded(outcome);
          if (outcome !== 'abandoned') return;
          logger.warn({ endpointId, eventId, activityId, reason }, 'a webhook was not delivered, and is given up');
        },
        interrupted: (err) => logger.warn({ err }, 'a delivery of a webhook was interrupted; it is taken up again'),
      },
    });
    this.lease = new Lease({
      store,
      clock,
      name: 'webhook-deliveries',
      holder: `${hostname()}:${process.pid}`,
      ttlMs: deliveryLeaseMs,
      work: (term) => this.deliveries.work(term),
      observer: {
        held: (name, token) => logger.debug({ name, token }, 'lease taken'),
        ended: (name, token, why) => logger.debug({ name, token, why }, 'lease ended'),
        interrupted: (name, err) => logger.warn({ name, err }, 'lease interrupted'),
      },
    });
  }

  /** Delivers from now on, as soon as there is an endpoint. */
  start(): void {
    this.runner.follow(() => this.look());
    this.look();
  }

  /** Resolves once nothing is in flight. */
  close(): Promise<void> {
    return this.lease.close();
  }

  private look(): void {
    if (!this.isStarted && hasWebhookEndpoints(this.rows)) {
      this.isStarted = true;
      this.lease.start();
    }
    this.deliveries.wake();
  }

  private async endpoint(organizationId: string, endpointId: string) {
    const { organization } = await this.loader.load(organizationId);
    return organization.isDeleted ? undefined : organization.webhookEndpoints.get(endpointId);
  }

  /** The activity as of the event, so that every attempt says the same. */
  private async body(
    { sourceOrganizationId: organizationId, activityId, activityType, revision, activityStatus }: WebhookDelivery,
    turn: TurnFor,
  ): Promise<object> {
    const { rows, loader, driver, registry } = this;
    const { record, characters } = await activityAsOf(rows, { organizationId, activityId, revision }, turn);
    const waits = activityStatus === 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
    const shown = waits
      ? await driver.rights.ofAnybody((await loader.load(organizationId)).organization, record)
      : noRights;
    const { keys } = registry.versions.get(activityType)!;
    const envelope = activityEnvelope(record, { keys, rights: shown, now: record.updatedAt });
    await turn(characters);
    return envelope;
  }
}
