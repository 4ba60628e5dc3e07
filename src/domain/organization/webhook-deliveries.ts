import type { DomainEvent } from './event.js';

/** Identifies a delivery: of which event, to which endpoint. */
interface DeliveryName {
  readonly endpointId: string;
  /** Id of the recorded event that the endpoint is notified of; sent as X-Turnkey-Event-Id. */
  readonly eventId: string;
}

/** One attempt, or the decision that there will be none. */
interface Attempt extends DeliveryName {
  /** Number of attempts since the delivery was requested, including this one. */
  readonly attempts: number;
  /** HTTP status of the response; absent if there was none. */
  readonly status?: number;
  /** Fencing token of the coordinator that tried (docs/adr/0023). */
  readonly fencingToken: number;
}

/**
 * Outcomes of deliveries, in a separate stream for each organization with endpoints: it grows with every event, and no
 * decision depends on it. What has to be delivered derives from the organizations' streams.
 */
export type WebhookDeliveryEvent =
  | DomainEvent<'WebhookDelivered', Attempt>
  /** `retryAt`: milliseconds since the epoch. `reason` contains nothing of the request or the response. */
  | DomainEvent<'WebhookAttemptFailed', Attempt & { readonly reason: string; readonly retryAt: number }>
  /** Given up permanently. */
  | DomainEvent<'WebhookDeliveryAbandoned', Attempt & { readonly reason: string }>
  /** By an operator: it is delivered once more, whatever its outcome was. */
  | DomainEvent<'WebhookRedeliveryRequested', DeliveryName>;

/** The name of the stream with the outcomes of deliveries to an organization's endpoints. */
export function webhookDeliveryStream(organizationId: string): string {
  return `webhook-deliveries-${organizationId}`;
}
