import {
  checkRoomForWebhookEndpoint,
  checkSubscriptions,
  webhookEndpointResource,
  type WebhookEndpoint,
} from '../../domain/organization/webhook-endpoints.js';
import { Label, ListOf, Nested, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkWebhookUrl, maxWebhookUrl, WebhookEndpointShape, WebhookSubscriptionParams } from './webhook-params.js';

class CreateWebhookEndpointIntent {
  @Text({ min: 1, max: maxWebhookUrl, about: 'URL to deliver to: https, at a public address.' })
  url!: string;

  @Label({ about: 'A display name.' })
  name!: string;

  @ListOf(() => WebhookSubscriptionParams, {
    optional: true,
    max: 4,
    about: 'Event subscriptions; default: ACTIVITY_UPDATES.',
  })
  subscriptions?: WebhookSubscriptionParams[];
}

class CreateWebhookEndpointResult {
  @Uuid()
  endpointId!: string;

  @Nested(() => WebhookEndpointShape)
  webhookEndpoint!: WebhookEndpointShape;
}

/** Registers a URL for deliveries from now on. */
export const createWebhookEndpoint = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT',
  summary: 'Creates a webhook endpoint: from now on, signed updates are delivered to its URL.',
  intent: CreateWebhookEndpointIntent,
  result: CreateWebhookEndpointResult,
  policy: { resource: 'WEBHOOK_ENDPOINT', action: 'CREATE' },

  check({ url, subscriptions = [] }, organization, { limits }) {
    checkWebhookUrl(url);
    checkSubscriptions(subscriptions);
    checkRoomForWebhookEndpoint(organization, limits);
  },

  prepare: ({ url }, { webhookTargets }) => webhookTargets.check(url),

  // Only checks whether deliveries could go there.
  recall: (): void => undefined,

  decide({ url, name, subscriptions = [] }, { organization, newId }) {
    // Nothing else could ever add a subscription.
    const wanted: WebhookSubscriptionParams[] =
      subscriptions.length > 0 ? subscriptions : [{ eventType: 'ACTIVITY_UPDATES' }];
    const endpoint: WebhookEndpoint = {
      endpointId: newId(),
      url,
      name,
      isActive: true,
      subscriptions: wanted.map(({ eventType, filtersJson, isActive = true }) => ({
        eventType,
        ...(filtersJson === undefined ? {} : { filtersJson }),
        isActive,
      })),
    };
    const webhookEndpoint = webhookEndpointResource(organization.organizationId, endpoint);
    return {
      events: [{ type: 'WebhookEndpointCreated', data: endpoint }],
      result: { endpointId: endpoint.endpointId, webhookEndpoint },
    };
  },
});
