import type { OrganizationView } from '../domain/organization/organization.js';

/** Recorded time of the last event that each folded organization has seen. */
const lastEvents = new WeakMap<OrganizationView, number>();

/** Notes the recorded time of an event that a folded organization has seen: only a mend of its clock goes back. */
export function noteTime(organization: OrganizationView, at: number, type?: string): void {
  if (at > lastTime(organization) || type === 'ClockMended') lastEvents.set(organization, at);
}

/** Recorded time of the last event, in milliseconds since the epoch. */
export function lastTime(organization: OrganizationView): number {
  return lastEvents.get(organization) ?? -Infinity;
}
