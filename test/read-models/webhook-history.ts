import type { ActivityStatus } from '../../src/domain/activity/events.js';
import { webhookDeliveryStream } from '../../src/domain/organization/webhook-deliveries.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { id } from '../activities/given.js';

/** The events of one organization with one webhook endpoint, each at the next position. */
export class WebhookHistory {
  readonly organizationId = id(700);
  readonly endpointId = id(701);
  private position = 0n;

  /** It is a sub-organization. */
  isFounded(): RecordedEvent {
    return this.event('OrganizationCreated', { organizationId: this.organizationId, parentOrganizationId: id(702) });
  }

  /** Its endpoint is told of everything. */
  begins(): RecordedEvent {
    const { endpointId } = this;
    const subscriptions = [{ eventType: 'ACTIVITY_UPDATES', isActive: true }];
    const endpoint = { endpointId, url: 'https://app.example.com', name: 'Main', isActive: true, subscriptions };
    return this.event('WebhookEndpointCreated', endpoint);
  }

  /** An activity that waits for votes, and gets so many. */
  waits(activityId: string, votes: number): readonly RecordedEvent[] {
    const status: ActivityStatus = 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
    const type = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
    const submitted = this.event('ActivitySubmitted', { activityId, type, status, intent: {}, vote: {} });
    const approved = { activityId, status, vote: {} };
    return [submitted, ...Array.from({ length: votes }, () => this.event('ActivityApproved', approved))];
  }

  /** An attempt to deliver an event has failed. */
  failed({ id: eventId }: RecordedEvent, retryAt: number): RecordedEvent {
    return this.outcome('WebhookAttemptFailed', eventId, { attempts: 1, token: 1, reason: 'no', retryAt });
  }

  delivered({ id: eventId }: RecordedEvent): RecordedEvent {
    return this.outcome('WebhookDelivered', eventId, { attempts: 1, token: 1, status: 200 });
  }

  abandoned({ id: eventId }: RecordedEvent): RecordedEvent {
    return this.outcome('WebhookDeliveryAbandoned', eventId, { attempts: 8, token: 1, reason: 'no' });
  }

  requestedAgain({ id: eventId }: RecordedEvent): RecordedEvent {
    return this.outcome('WebhookRedeliveryRequested', eventId, {});
  }

  stops(): RecordedEvent {
    return this.event('WebhookEndpointUpdated', { endpointId: this.endpointId, isActive: false });
  }

  goesOn(): RecordedEvent {
    return this.event('WebhookEndpointUpdated', { endpointId: this.endpointId, isActive: true });
  }

  private outcome(type: string, eventId: string, data: object): RecordedEvent {
    const { organizationId, endpointId } = this;
    return { ...this.event(type, { endpointId, eventId, ...data }), stream: webhookDeliveryStream(organizationId) };
  }

  private event(type: string, data: object): RecordedEvent {
    const position = this.position++;
    const stream = organizationStream(this.organizationId);
    const metadata = { at: Number(position), schemaVersion: 1 };
    return { stream, revision: Number(position), position, id: `event-${position}`, type, data, metadata };
  }
}
