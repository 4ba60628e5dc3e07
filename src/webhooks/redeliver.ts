import type { Clock } from '../ports/clock.js';
import { webhookDeliveryStream, type WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import { GENESIS_HASH, verifyChain, type EventMetadata } from '../ledger/chain.js';
import type { EventStore } from '../ledger/event-store.js';
import { DeliveryLog } from './delivery-log.js';

/** Which deliveries to repeat: one, or all that were given up and not delivered since. */
export interface Wanted {
  readonly organizationId: string;
  readonly endpointId: string;
  readonly eventId: string | undefined;
}

/**
 * Requests deliveries again, whatever their outcome was: each with its event id, to the endpoint's URL at that time. A
 * coordinator may be running.
 * @returns how many
 * @throws {Error} if the log has no such finished delivery
 */
export async function redeliver(
  { store, clock }: { readonly store: EventStore; readonly clock: Clock },
  { organizationId, endpointId, eventId }: Wanted,
): Promise<number> {
  const latest = new Map<string, { readonly type: string; readonly activityId: string }>();
  let hash = GENESIS_HASH;
  for await (const event of store.read(webhookDeliveryStream(organizationId))) {
    hash = verifyChain(hash, event);
    const { type, data } = event as { readonly type: string; readonly data: WebhookDeliveryEvent['data'] };
    if (data.endpointId !== endpointId) continue;
    latest.set(data.eventId, { type, activityId: (event.metadata as EventMetadata).$correlationId });
  }
  const ended = eventId === undefined ? ['WebhookDeliveryAbandoned'] : ['WebhookDeliveryAbandoned', 'WebhookDelivered'];
  const chosen = [...latest].filter(
    ([id, { type }]) => ended.includes(type) && (eventId === undefined || id === eventId),
  );
  if (eventId !== undefined && chosen.length === 0) {
    throw new Error(
      `no finished delivery of event \`${eventId}\` to endpoint \`${endpointId}\` of organization \`${organizationId}\`: ` +
        `see list_webhook_deliveries`,
    );
  }
  // An operator's request has no term, so it uses the greatest token.
  const log = new DeliveryLog(store, clock, () => -1, Infinity);
  for (const [id, { activityId }] of chosen) {
    await log.record(organizationId, activityId, {
      type: 'WebhookRedeliveryRequested',
      data: { endpointId, eventId: id },
    });
  }
  return chosen.length;
}
