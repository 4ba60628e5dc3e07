import { CoordinatorError } from '../domain/errors.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Clock } from '../ports/clock.js';
import { lastTime } from '../ledger/recorded-time.js';

/**
 * How far a clock may be behind the last event of a stream, in milliseconds: the tolerated difference between clocks of
 * one installation.
 */
export const toleranceMs = 5_000;

/**
 * The time of the decision, in milliseconds since the epoch: the clock's, but never before the last event of the
 * organization, or of the parent if its credentials are valid here (security rule R8). What has expired in a stream
 * stays expired.
 * @throws {CoordinatorError} UNAVAILABLE if the clock is too far behind, or has jumped
 */
export function decisionTime(clock: Clock, ...organizations: readonly (OrganizationView | undefined)[]): number {
  const jump = clock.jumped?.() ?? 0;
  if (jump !== 0) {
    const direction = jump > 0 ? 'ahead' : 'back';
    throw undecided(`has jumped ${direction} by ${seconds(Math.abs(jump))} s against its monotonic clock`);
  }
  let now = clock.now();
  for (const organization of organizations) {
    if (!organization) continue;
    const last = lastTime(organization);
    const behind = last - clock.now();
    if (behind > toleranceMs) {
      const { organizationId } = organization;
      throw undecided(
        `is ${seconds(behind)} s behind the last event of organization \`${organizationId}\`, which was recorded at ` +
          new Date(last).toISOString(),
      );
    }
    now = Math.max(now, last);
  }
  return now;
}

function undecided(what: string): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `the clock of this coordinator ${what}: it decides nothing until the clock is right; send the same request again later`,
  );
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
