import { longestLeadMs } from '../domain/organization/clock-mends.js';
import { CoordinatorError } from '../domain/errors.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Clock } from '../ports/clock.js';
import { lastTime } from '../ledger/recorded-time.js';

/** The tolerated difference between clocks of one installation, in milliseconds. */
export const toleranceMs = 5_000;

/**
 * The time of the decision, in milliseconds since the epoch: the clock's, but never before the last event of the
 * organization, or of its parent (security rule R8). What has expired in a stream stays expired. A parent that is too far
 * ahead is passed over: see `checkParentsTime`.
 * @throws {CoordinatorError} UNAVAILABLE if the clock has stepped ahead, or the organization is too far ahead of it
 */
export function decisionTime(clock: Clock, organization: OrganizationView, parent?: OrganizationView): number {
  checkClockTrusted(clock);
  return timeIn(clock, organization, parent);
}

/** @throws {CoordinatorError} UNAVAILABLE while a step ahead is not trusted */
export function checkClockTrusted(clock: Clock): void {
  const jump = clock.jumped?.() ?? 0;
  if (jump !== 0) throw steppedAhead(jump);
}

/**
 * The time by which readers are known: as that of decisions, but while a step ahead is not trusted yet, the later of both times, so
 * that what may have expired reads nothing.
 * @throws {CoordinatorError} UNAVAILABLE if the organization is too far ahead of the clock
 */
export function readingTime(clock: Clock, organization: OrganizationView, parent?: OrganizationView): number {
  return Math.max(clock.latest?.() ?? 0, timeIn(clock, organization, parent));
}

function timeIn(clock: Clock, organization: OrganizationView, parent: OrganizationView | undefined): number {
  const own = lastTime(organization);
  if (!follows(clock, organization)) throw tooFarAhead(organization, own - clock.now());
  const parents = parent && follows(clock, parent) ? lastTime(parent) : -Infinity;
  return Math.max(clock.now(), own, parents);
}

/**
 * Refuses what relies on the parent's credentials or tokens while the parent is too far ahead of the clock.
 * @throws {CoordinatorError} UNAVAILABLE
 */
export function checkParentsTime(clock: Clock, parent: OrganizationView): void {
  if (!follows(clock, parent)) throw tooFarAhead(parent, lastTime(parent) - clock.now());
}

/** Whether the clock can continue from the last event of an organization. */
function follows(clock: Clock, organization: OrganizationView): boolean {
  const { organizationId } = organization;
  const last = lastTime(organization);
  const lead = last - clock.now();
  const isNear = lead <= toleranceMs || (clock.follow?.(last, organizationId) ?? lead <= longestLeadMs);
  if (isNear) clock.caughtUp?.(organizationId);
  return isNear;
}

function steppedAhead(jump: number): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `the clock of this coordinator has stepped ahead by ${seconds(jump)} s: it decides nothing until the new time has run steadily ` +
      'for a minute; send the same request again later',
    { retryAfterSeconds: 60 },
  );
}

function tooFarAhead({ organizationId }: OrganizationView, lead: number): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `the clock of this coordinator is ${seconds(lead)} s behind the last event of organization \`${organizationId}\`, so nothing is ` +
      'decided or read there: if the clock is wrong, its operator must set it; if it is right, and was ahead when that was recorded, the operator must ' +
      `run \`countersign clock mend ${organizationId}\``,
  );
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
