import { ReadFirst } from '../decide/basis.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Meter } from '../domain/steps.js';
import { approversAsked } from '../lab/approvers-asked.js';
import type { ToldQuestion } from '../lab/told-approvers.js';
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
): Promise<ToldQuestion | 'not waiting' | 'not read'> {
  const open = organization.isDeleted ? undefined : organization.openActivities.get(activityId);
  if (!open) return 'not waiting';
  for (const isRead of [false, true]) {
    try {
      return approversAsked(rights.basisOf(organization, meter), open);
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      if (!isRead) await rights.readUnread([{ ahead: error.ahead, organization }], meter);
    }
  }
  return 'not read';
}
