import { CoordinatorError, invalidField } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { Limits } from './limits.js';
import type { OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

/**
 * Events that an endpoint can subscribe to (docs/protocol.md, webhooks). Only the first occurs here: nothing watches
 * chains. The others stay in the list for endpoints created when a subscription to them was accepted.
 */
export const webhookEventTypes = [
  'ACTIVITY_UPDATES',
  'BALANCE_CONFIRMED_UPDATES',
  'BALANCE_FINALIZED_UPDATES',
  'SEND_TRANSACTION_STATUS_UPDATES',
] as const;

export type WebhookEventType = (typeof webhookEventTypes)[number];

export interface WebhookSubscription {
  readonly eventType: WebhookEventType;
  /** As given: a JSON object; see `checkSubscriptions`. */
  readonly filtersJson?: string;
  readonly isActive: boolean;
}

/** Where deliveries go, and for which events. */
export interface WebhookEndpoint {
  readonly endpointId: string;
  readonly url: string;
  readonly name: string;
  readonly isActive: boolean;
  readonly subscriptions: readonly WebhookSubscription[];
}

export type WebhookEndpointEvent =
  | DomainEvent<'WebhookEndpointCreated', WebhookEndpoint>
  | DomainEvent<'WebhookEndpointUpdated', { endpointId: string; url?: string; name?: string; isActive?: boolean }>
  | DomainEvent<'WebhookEndpointDeleted', { endpointId: string }>;

export const evolveWebhookEndpoints: Evolvers<WebhookEndpointEvent> = {
  WebhookEndpointCreated(organization, endpoint) {
    put(organization, 'webhookEndpoints', endpoint.endpointId, endpoint);
  },
  WebhookEndpointUpdated(organization, changes) {
    const endpoint = organization.webhookEndpoints.get(changes.endpointId);
    if (endpoint) put(organization, 'webhookEndpoints', changes.endpointId, { ...endpoint, ...changes });
  },
  WebhookEndpointDeleted(organization, { endpointId }) {
    remove(organization, 'webhookEndpoints', endpointId);
  },
};

/** @throws {CoordinatorError} RESOURCE_EXHAUSTED when the organization may not have one more */
export function checkRoomForWebhookEndpoint(
  { webhookEndpoints }: OrganizationView,
  { webhookEndpoints: most }: Limits,
): void {
  if (webhookEndpoints.size < most) return;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `the organization has ${most} webhook endpoints, which is the limit: ` + `delete one with delete_webhook_endpoint`,
  );
}

/** The endpoint of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingWebhookEndpoint(organization: OrganizationView, endpointId: string): WebhookEndpoint {
  const found = organization.webhookEndpoints.get(endpointId);
  if (found) return found;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no webhook endpoint \`${endpointId}\` in organization \`${organization.organizationId}\`: ` +
      `see list_webhook_endpoints`,
  );
}

/**
 * Refuses repeated subscriptions, and filters that would have no effect.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkSubscriptions(subscriptions: readonly Omit<WebhookSubscription, 'isActive'>[]): void {
  const seen = new Set<WebhookEventType>();
  for (const { eventType, filtersJson } of subscriptions) {
    if (seen.has(eventType)) {
      throw invalidField('parameters.subscriptions', `list \`${eventType}\` more than once: put it into one`);
    }
    seen.add(eventType);
    if (filtersJson !== undefined) readFilters(eventType, filtersJson);
  }
}

/** The filter of a subscription to activity updates; an absent list means everything. */
interface ActivityFilters {
  readonly types?: readonly string[];
  readonly statuses?: readonly string[];
}

/**
 * Parses `filtersJson`. The members accepted by the published service are unknown; for activities, ours are `types` and
 * `statuses`, lists of strings. Anything else is refused: a filter without effect would be mistaken for one that works.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
function readFilters(eventType: WebhookEventType, filtersJson: string): ActivityFilters {
  const refuse = (description: string) => invalidField('parameters.subscriptions.filtersJson', description);
  let parsed: unknown;
  try {
    parsed = JSON.parse(filtersJson);
  } catch {
    throw refuse('must be a JSON object, as text; this is not JSON');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw refuse('must be a JSON object, as text');
  }
  if (eventType !== 'ACTIVITY_UPDATES') return {};
  for (const [name, value] of Object.entries(parsed)) {
    if (name !== 'types' && name !== 'statuses') {
      throw refuse(`has \`${name.slice(0, 64)}\`: ACTIVITY_UPDATES has only \`types\` and \`statuses\``);
    }
    if (!Array.isArray(value) || value.length === 0 || value.some((one) => typeof one !== 'string')) {
      throw refuse(`has \`${name}\`, which must be a non-empty list of strings`);
    }
  }
  return parsed;
}

/** Whether an endpoint has to be notified that an activity of this type has reached this status. */
export function wantsActivityUpdate(
  { isActive, subscriptions }: WebhookEndpoint,
  { type, status }: { readonly type: string; readonly status: string },
): boolean {
  if (!isActive) return false;
  const subscription = subscriptions.find(({ eventType }) => eventType === 'ACTIVITY_UPDATES');
  if (!subscription?.isActive) return false;
  if (subscription.filtersJson === undefined) return true;
  const { types, statuses } = readFilters('ACTIVITY_UPDATES', subscription.filtersJson);
  return (types?.includes(type) ?? true) && (statuses?.includes(status) ?? true);
}

/** An endpoint as results and queries show it. */
export function webhookEndpointResource(organizationId: string, endpoint: WebhookEndpoint) {
  const { endpointId, url, name, isActive, subscriptions } = endpoint;
  return { endpointId, organizationId, url, name, isActive, subscriptions: subscriptions.map((one) => ({ ...one })) };
}
