import type { InstallationEvent } from '../decide/found-organization.js';
import type { DenialEvent } from '../domain/activity/denial.js';
import type { BootEvent } from '../domain/boots.js';
import type { ClaimEvent } from '../domain/organization/claims.js';
import type { DomainEvent } from '../domain/organization/event.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import type { SendEvent } from '../delivery/contact-limits.js';
import type { KekFact } from '../vault/kek-record.js';
import type { VaultEvent } from '../vault/vault.js';

/**
 * Every event in a store except those of leases, as readers see it: `data` in the current shape of its type.
 * `list_events` returns, and webhooks follow, those of an organization.
 */
export type AnyEvent =
  | OrganizationEvent
  | DenialEvent
  | ClaimEvent
  | WebhookDeliveryEvent
  | SendEvent
  | BootEvent
  | InstallationEvent
  | KekFact
  | VaultEvent;

/** The name of an event, such as `PolicyCreated`. */
export type EventType = AnyEvent['type'];

/** The data of an event by its name: `EventData<'PolicyCreated'>`. */
export type EventData<Type extends EventType> = Extract<AnyEvent, DomainEvent<Type, unknown>>['data'];

/** The data of all events by name. The JSON Schema in docs/reference is generated from this. */
export type EventDataByType = { readonly [Type in EventType]: EventData<Type> };
