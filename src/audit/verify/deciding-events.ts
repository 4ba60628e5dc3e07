import type { DecisionContext } from '../../decide/decision-context.js';
import type { ActivityEvent } from '../../domain/activity/events.js';
import { rulesNumber } from '../../domain/activity/rules.js';
import { organizationEvent, type OrganizationEvent } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { readEvent } from '../../ledger/read-event.js';

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
  return organizationEvent(readEvent(recorded));
}

/** Whether the event starts a decision. */
export function isDeciding(event: OrganizationEvent): event is Deciding {
  return decidingTypes.has(event.type);
}

/** In stored form. */
export const plain = (event: OrganizationEvent) => JSON.parse(JSON.stringify(event)) as OrganizationEvent;

/** The number of the rules that decided. */
export function rulesOf({ type, data }: Deciding): number {
  return type === 'ActivityRejected' ? data.rules : data.decision.rules;
}

/** Whether a decision can be made again: other rules could decide otherwise. */
export function hasOurRules(event: Deciding): boolean {
  return rulesOf(event) === rulesNumber;
}

/** @throws {Error} unless the decision was made by the rules of this release */
export function checkRules(event: Deciding, revision: number): void {
  if (hasOurRules(event)) return;
  throw new Error(
    `revision ${revision} was not decided by the rules of this release (${rulesNumber}): its rules are \`${rulesOf(event)}\`; ` +
      'use the release that recorded it',
  );
}

/** The limits that were set at the time of a decision, if any. */
export function limitsOf(event: Deciding): Pick<DecisionContext, 'limits'> {
  const limits = event.type === 'ActivityRejected' ? undefined : event.data.decision.limits;
  return limits ? { limits } : {};
}

/** Milliseconds since the epoch. */
export function timeOf({ metadata }: RecordedEvent): number {
  return (metadata as EventMetadata).at;
}
