import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { importsEndedWith } from '../wallets/import-params.js';
import { CoordinatorError } from '../../domain/errors.js';
import { existingUser } from '../../domain/organization/users.js';
import { UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteUsersIntent {
  @UuidList({ min: 1, about: 'The users to delete, all or none.' })
  userIds!: string[];
}

class DeleteUsersResult {
  @UuidList()
  userIds!: string[];
}

/** Deletes users and their credentials. */
export const deleteUsers = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_USERS',
  summary: 'Deletes users and their credentials.',
  intent: DeleteUsersIntent,
  result: DeleteUsersResult,
  policy: { resource: 'USER', action: 'DELETE' },
  params: {
    user_ids: { type: { kind: 'list', of: { kind: 'string' } }, from: ({ userIds }) => userIds },
  },

  decide({ userIds }, { organization }) {
    const events = userIds.flatMap((userId): OrganizationEvent[] => {
      existingUser(organization, userId);
      // Policies may grant this activity, but they must not change the root quorum.
      if (organization.rootQuorum.userIds.includes(userId)) {
        throw new CoordinatorError(
          'FAILED_PRECONDITION',
          `user \`${userId}\` is a member of the root quorum: remove the user from it with update_root_quorum first`,
        );
      }
      return [{ type: 'UserDeleted', data: { userId } }, ...importsEndedWith(organization, userId)];
    });
    return { events, result: { userIds } };
  },
});
