import { existingUser } from '../../domain/organization/users.js';
import { Label, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class UpdateUserNameIntent {
  @Uuid({ about: 'The user to rename.' })
  userId!: string;

  @Label({ about: 'The new name.' })
  userName!: string;
}

class UpdateUserNameResult {
  @Uuid()
  userId!: string;
}

/** Renames a user. */
export const updateUserName = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
  summary: 'Renames a user.',
  intent: UpdateUserNameIntent,
  result: UpdateUserNameResult,
  policy: { resource: 'USER', action: 'UPDATE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },

  decide({ userId, userName }, { organization }) {
    existingUser(organization, userId);
    return { events: [{ type: 'UserUpdated', data: { userId, userName } }], result: { userId } };
  },
});
