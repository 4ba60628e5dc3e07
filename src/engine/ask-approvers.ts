import { ReadFirst } from '../decide/decision-context.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Meter } from '../domain/steps.js';
import { approversTask } from '../audit/approvers/approvers-task.js';
import type { ApproversTask } from '../audit/approvers/approver-sets.js';
import type { VotingRights } from './voting-rights.js';

/**
 * Who could make a waiting activity pass, as a question for the lab's thread. What takes long to read is read first, in
 * another thread.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export async function askApprovers(
  rights: VotingRights,
  organization: OrganizationView,
  activityId: string,
  meter: Meter,
): Promise<ApproversTask | 'not waiting' | 'not read'> {
  const open = organization.isDeleted ? undefined : organization.openActivities.get(activityId);
  if (!open) return 'not waiting';
  for (const isRead of [false, true]) {
    try {
      return approversTask(rights.assembleContext(organization, meter), open);
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      if (!isRead) await rights.readUnread([{ ahead: error.ahead, organization }], meter);
    }
  }
  return 'not read';
}
