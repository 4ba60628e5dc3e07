import { presentMembers } from '../../domain/organization/event.js';
import { existingWebhookEndpoint, webhookEndpointResource } from '../../domain/organization/webhook-endpoints.js';
import { Flag, Label, Nested, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkWebhookUrl, maxWebhookUrl, WebhookEndpointShape } from './webhook-params.js';

class UpdateWebhookEndpointIntent {
  @Uuid({ about: 'The endpoint to change.' })
  endpointId!: string;

  @Text({ optional: true, min: 1, max: maxWebhookUrl, about: 'The new URL, also for pending deliveries.' })
  url?: string;

  @Label({ optional: true, about: 'The new name.' })
  name?: string;

  @Flag({
    optional: true,
    about: 'False stops deliveries at once and drops pending ones; true resumes with new events.',
  })
  isActive?: boolean;
}

class UpdateWebhookEndpointResult {
  @Uuid()
  endpointId!: string;

  @Nested(() => WebhookEndpointShape)
  webhookEndpoint!: WebhookEndpointShape;
}

/** Changes the URL or name of a webhook endpoint, pauses it or resumes it. */
export const updateWebhookEndpoint = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_WEBHOOK_ENDPOINT',
  summary: 'Changes the URL or name of a webhook endpoint, or pauses or resumes it.',
  intent: UpdateWebhookEndpointIntent,
  result: UpdateWebhookEndpointResult,
  policy: { resource: 'WEBHOOK_ENDPOINT', action: 'UPDATE' },
  params: { endpoint_id: { type: { kind: 'string' }, from: ({ endpointId }) => endpointId } },

  check({ endpointId, url }, organization) {
    existingWebhookEndpoint(organization, endpointId);
    if (url !== undefined) checkWebhookUrl(url);
  },

  async prepare({ url }, { webhookTargets }) {
    if (url !== undefined) await webhookTargets.check(url);
  },

  // Only checks whether deliveries could go there.
  recall: (): void => undefined,

  decide({ endpointId, url, name, isActive }, { organization }) {
    const changes = presentMembers({ url, name, isActive });
    const endpoint = { ...existingWebhookEndpoint(organization, endpointId), ...changes };
    return {
      events:
        Object.keys(changes).length > 0 ? [{ type: 'WebhookEndpointUpdated', data: { endpointId, ...changes } }] : [],
      result: { endpointId, webhookEndpoint: webhookEndpointResource(organization.organizationId, endpoint) },
    };
  },
});
