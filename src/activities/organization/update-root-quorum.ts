import { invalidField } from '../../domain/errors.js';
import { existingUser } from '../../domain/organization/users.js';
import { UuidList, Whole } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class UpdateRootQuorumIntent {
  @Whole({ min: 1, max: 100, about: 'How many of the users must approve.' })
  threshold!: number;

  @UuidList({ min: 1, about: 'The users who make up the root quorum.' })
  userIds!: string[];
}

class UpdateRootQuorumResult {}

/** Changes the members and the threshold of the root quorum. */
export const updateRootQuorum = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM',
  summary: 'Changes the members and the threshold of the root quorum.',
  intent: UpdateRootQuorumIntent,
  result: UpdateRootQuorumResult,
  policy: 'root-quorum-only',

  decide({ threshold, userIds }, { organization }) {
    if (threshold > userIds.length) {
      throw invalidField(
        'parameters.threshold',
        `must not exceed the number of users, ${userIds.length}, got \`${threshold}\``,
      );
    }
    for (const userId of userIds) existingUser(organization, userId);
    return { events: [{ type: 'RootQuorumUpdated', data: { threshold, userIds } }], result: {} };
  },
});
