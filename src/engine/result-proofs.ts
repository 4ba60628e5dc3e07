import { proveEnded } from '../decide/app-proofs.js';
import { countedApprovals } from '../decide/approvals.js';
import type { DecisionContext } from '../decide/decision-context.js';
import { activityVersion, newestIntent } from '../decide/registry.js';
import type { ActivityEvent } from '../domain/activity/events.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { DriverPorts, Job } from './job.js';

/** The app proofs of an activity that requested some and ends with these events. */
export function proofOf(
  ports: Pick<DriverPorts, 'registry' | 'proofs'>,
  { request, prepared }: Pick<Job, 'request' | 'prepared'>,
  events: readonly OrganizationEvent[],
  target: OpenActivity | undefined,
  basis: DecisionContext,
  organizationHash: string,
  parentHash: string | undefined,
): readonly ActivityEvent[] {
  const end = events.at(-1);
  if (end?.type !== 'ActivityCompleted' && end?.type !== 'ActivityFailed') return [];
  if (!(target ?? request).generateAppProofs) return [];
  const { activityId } = end.data;
  const { organizationId } = basis.organization;
  const type = target?.type ?? request.version.type;
  const { definition, ...version } = activityVersion(ports.registry, type);
  const intent = target ? newestIntent({ ...version, definition }, target.intent) : request.intent;
  const given = prepared && 'value' in prepared ? prepared.value : undefined;
  const derivedBeside = given === undefined ? [] : (definition.derivedBeside?.(intent, organizationId, given) ?? []);
  const ended = {
    organizationId,
    activityId,
    type,
    parameters: target?.intent ?? request.parameters,
    approvals: target ? countedApprovals(basis, target) : [],
    events,
    derivedBeside,
    organizationHash,
    parentHash,
    at: basis.now,
  };
  return [proveEnded(ended, ports.proofs)];
}
