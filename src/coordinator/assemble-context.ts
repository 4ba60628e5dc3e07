import type { ToReadAhead } from '../activities/define-activity.js';
import type { DecisionContext } from '../decide/decision-context.js';
import { decisionTime } from '../decide/decision-time.js';
import { CoordinatorError } from '../domain/errors.js';
import { limitsSetFor } from '../domain/organization/limits.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Meter, Steps } from '../domain/steps.js';
import { organizationPath } from '../fairness/fair-queue.js';
import type { CoordinatorPorts } from './pending-request.js';

/** How often one request is read again because interfaces or keys have changed, or it had to make room, as long as its steps last. */
const mostReadings = 4;

export type ContextPorts = Pick<CoordinatorPorts, 'registry' | 'clock' | 'reading' | 'limits'>;

/** The basis of a decision: the organization at a revision, now, under the limits in force. */
export function assembleContext(
  ports: ContextPorts,
  organization: OrganizationView,
  revision: number,
  parent: OrganizationView | undefined,
  steps: Steps,
): DecisionContext {
  const now = decisionTime(ports.clock, organization, parent);
  const reading = ports.reading && steps;
  const limits = limitsSetFor(organization, parent, ports.limits);
  const { registry } = ports;
  return { registry, organization, revision, now, reading, limits };
}

/**
 * Has anything that takes long read elsewhere, so that the decision finds it done.
 * @throws {CoordinatorError} if it could not be read
 */
export async function readElsewhere(
  { reading }: Pick<CoordinatorPorts, 'reading'>,
  { job, keep }: ToReadAhead,
  { organizationId, parentOrganizationId }: OrganizationView,
  { decoding }: Meter,
): Promise<void> {
  const outcome = await reading?.read(job, organizationPath(organizationId, parentOrganizationId));
  if (!outcome) return;
  decoding.note(outcome.spent);
  keep(outcome, parentOrganizationId ?? organizationId);
}

/**
 * Checks that a request that was read so often may be read once more.
 * @throws {CoordinatorError} UNAVAILABLE
 */
export function checkReadings(readings: number, organizationId: string, { decoding }: Meter): void {
  if (readings < mostReadings && !decoding.isSpent) return;
  throw new CoordinatorError(
    'UNAVAILABLE',
    `organization \`${organizationId}\` changed while the request was processed, or the server was too busy: send the same request again`,
    { retryAfterSeconds: 1 },
  );
}
