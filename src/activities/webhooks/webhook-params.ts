import { invalidField } from '../../domain/errors.js';
import { webhookEventTypes, type WebhookEventType } from '../../domain/organization/webhook-endpoints.js';
import { Flag, ListOf, OneOf, Text, Uuid } from '../../wire/fields.js';

class WebhookSubscriptionOptions {
  @Text({
    optional: true,
    max: 4096,
    about: 'JSON object as text. For ACTIVITY_UPDATES: `types` and `statuses` to deliver; all others are skipped.',
  })
  filtersJson?: string;

  @Flag({ optional: true, about: 'Default: true.' })
  isActive?: boolean;
}

/** The events that a new endpoint subscribes to. */
export class WebhookSubscriptionParams extends WebhookSubscriptionOptions {
  @OneOf(['ACTIVITY_UPDATES'], {
    about: 'Other event types are refused: they concern chains, which this server does not watch.',
  })
  eventType!: WebhookEventType;
}

/** The subscriptions of an endpoint. */
class WebhookSubscriptionShape extends WebhookSubscriptionOptions {
  @OneOf(webhookEventTypes, { about: 'Only ACTIVITY_UPDATES is delivered.' })
  eventType!: WebhookEventType;
}

/** An endpoint as results and queries show it. */
export class WebhookEndpointShape {
  @Uuid()
  endpointId!: string;

  @Uuid()
  organizationId!: string;

  @Text()
  url!: string;

  @Text()
  name!: string;

  @Flag({ about: 'While false, nothing is delivered, and events from that time are never delivered later.' })
  isActive!: boolean;

  @ListOf(() => WebhookSubscriptionShape)
  subscriptions!: WebhookSubscriptionShape[];
}

/** Longest URL of an endpoint, in characters. */
export const maxWebhookUrl = 2_048;

/**
 * Checks of a URL that need no network; the rest is for `WebhookTargetPort`.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkWebhookUrl(text: string): void {
  const refuse = (description: string) => invalidField('parameters.url', description);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw refuse(`must be an absolute URL such as https://app.example.com/hooks, got \`${text.slice(0, 64)}\``);
  }
  // Everyone who may read the organization would see it, and it would be forwarded in unexpected ways.
  if (url.username !== '' || url.password !== '') throw refuse('must not contain a user or password: leave them out');
  if (url.hash !== '') throw refuse('must not have a fragment, because fragments are not sent');
}
