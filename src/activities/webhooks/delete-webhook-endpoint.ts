import { existingWebhookEndpoint } from '../../domain/organization/webhook-endpoints.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteWebhookEndpointIntent {
  @Uuid({ about: 'The endpoint to delete.' })
  endpointId!: string;
}

class DeleteWebhookEndpointResult {
  @Uuid()
  endpointId!: string;
}

/** Deletes a webhook endpoint and all its pending deliveries. */
export const deleteWebhookEndpoint = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT',
  summary: 'Deletes a webhook endpoint and drops its pending deliveries.',
  intent: DeleteWebhookEndpointIntent,
  result: DeleteWebhookEndpointResult,
  policy: { resource: 'WEBHOOK_ENDPOINT', action: 'DELETE' },
  params: { endpoint_id: { type: { kind: 'string' }, from: ({ endpointId }) => endpointId } },

  check: ({ endpointId }, organization) => void existingWebhookEndpoint(organization, endpointId),

  decide: ({ endpointId }) => ({
    events: [{ type: 'WebhookEndpointDeleted', data: { endpointId } }],
    result: { endpointId },
  }),
});
