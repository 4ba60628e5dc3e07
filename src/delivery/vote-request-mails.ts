import type { DecodedFact } from '../domain/policy/decoded/account.js';
import { messageSender } from '../domain/organization/message-senders.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import { organizationPath } from '../fairness/fair-queue.js';
import type { VoteNotices } from './vote-notices.js';

/** Mails those who may approve and have an address. */
export function mailVoteRequests(
  notices: VoteNotices,
  parentOf: (organization: OrganizationView) => Promise<OrganizationView | undefined>,
) {
  return (
    { activityId, type, votes }: OpenActivity,
    organization: OrganizationView,
    users: readonly User[],
    wouldSign: readonly DecodedFact[],
  ): void => {
    const { organizationId } = organization;
    const path = organizationPath(organizationId, organization.parentOrganizationId);
    const addresses = users.flatMap(({ userEmail, emailReleased }) => (emailReleased ? [] : (userEmail ?? [])));
    const submitterId = votes[0]?.userId ?? '';
    const send = (parent: OrganizationView | undefined): void => {
      const approvers = addresses.map((contact) => {
        const sender = messageSender({ organization, parent, submitterId }, 'email', contact);
        return { contact, sender, organizationId };
      });
      // Anyone may have chosen names in a sub-organization, and the notice speaks for the parent.
      const words =
        organization.parentOrganizationId === undefined
          ? { organizationName: organization.name, submitterName: votes[0]?.voter?.userName ?? 'a user' }
          : { organizationName: parent?.name ?? 'your account' };
      notices.send({ ...words, activityType: type, activityId, wouldSign, approvers }, path);
    };
    parentOf(organization).then(send, (error: unknown) => notices.failed(activityId, error));
  };
}
