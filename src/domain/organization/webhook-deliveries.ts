import type { DomainEvent } from './event.js';

/** Which delivery: of what, where to. */
interface DeliveryName {
  readonly endpointId: string;
  /** Id of the recorded event that the endpoint is told of; it is sent as X-Turnkey-Event-Id. */
  readonly eventId: string;
}

/** One attempt, or the decision that there will be none. */
interface Attempt extends DeliveryName {
  /** Attempts so far since the delivery was asked for, this one included. */
  readonly attempts: number;
  /** HTTP status of the answer; absent when there was none. */
  readonly status?: number;
  /** Fencing token of whoever has tried (docs/adr/0017). */
  readonly token: number;
}

/**
 * What became of deliveries, in a stream of its own for each organization that has endpoints: it grows with what happens,
 * and nobody decides on it. What is to be delivered follows from the organizations' streams.
 */
export type WebhookDeliveryEvent =
  | DomainEvent<'WebhookDelivered', Attempt>
  /** `retryAt`: milliseconds since the epoch. `reason` holds nothing that was sent or answered. */
  | DomainEvent<'WebhookAttemptFailed', Attempt & { readonly reason: string; readonly retryAt: number }>
  /** Given up for good. */
  | DomainEvent<'WebhookDeliveryAbandoned', Attempt & { readonly reason: string }>
  /** By an operator: it is delivered once more, whatever became of it. */
  | DomainEvent<'WebhookRedeliveryRequested', DeliveryName>;

/** The name of the stream that says what became of deliveries to an organization's endpoints. */
export function webhookDeliveryStream(organizationId: string): string {
  return `webhook-deliveries-${organizationId}`;
}
