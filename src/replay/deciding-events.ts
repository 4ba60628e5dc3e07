import type { Basis } from '../decide/basis.js';
import type { ActivityEvent } from '../domain/activity/events.js';
import { organizationEvent, type OrganizationEvent } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { upcast } from '../ledger/upcast.js';

/** An event that starts a decision: a request or a vote. */
export type Deciding = Extract<ActivityEvent, { type: 'ActivitySubmitted' | 'ActivityApproved' | 'ActivityRejected' }>;

/** Events that start a decision, with its basis. */
export const decidingTypes: ReadonlySet<string> = new Set<Deciding['type']>([
  'ActivitySubmitted',
  'ActivityApproved',
  'ActivityRejected',
]);

/** A recorded event as readers see it, including what the store keeps only once. */
export function eventOf(recorded: RecordedEvent): OrganizationEvent {
  return organizationEvent(upcast(recorded));
}

/** Whether the event starts a decision. */
export function isDeciding(event: OrganizationEvent): event is Deciding {
  return decidingTypes.has(event.type);
}

/** In stored form. */
export const plain = (event: OrganizationEvent) => JSON.parse(JSON.stringify(event)) as OrganizationEvent;

/** Whether an event says which rules decided. */
export function isNumbered(event: OrganizationEvent): boolean {
  return isDeciding(event) && rulesOf(event) !== undefined;
}

/** The number of the rules that decided, if it says so. */
export function rulesOf({ type, data }: Deciding): number | undefined {
  return type === 'ActivityRejected' ? data.rules : data.decision.rules;
}

/** The number of the rules of a decision; undefined for one from before rules had a number. */
export function termsOf(event: Deciding): Pick<Basis, 'rules' | 'limits'> | undefined {
  const rules = rulesOf(event);
  if (rules === undefined) return undefined;
  const limits = event.type === 'ActivityRejected' ? undefined : event.data.decision.limits;
  return { rules, ...(limits ? { limits } : {}) };
}

/** Milliseconds since the epoch. */
export function timeOf({ metadata }: RecordedEvent): number {
  return (metadata as EventMetadata).at;
}
