import { presentMembers } from '../../domain/organization/event.js';
import { existingUserTag } from '../../domain/organization/tags.js';
import { existingUser } from '../../domain/organization/users.js';
import { Email, Label, Phone, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class UpdateUserIntent {
  @Uuid({ about: 'The user to change.' })
  userId!: string;

  @Label({ optional: true, about: 'The new name.' })
  userName?: string;

  @Email({ optional: true, about: 'The new e-mail address; to remove it, use update_user_email.' })
  userEmail?: string;

  @UuidList({
    optional: true,
    about:
      'New tags of the user, replacing the current ones. If empty, they stay; to remove them, use update_user_tag.',
  })
  userTagIds?: string[];

  @Phone({ optional: true, about: 'The new phone number in E.164 format; to remove it, use update_user_phone_number.' })
  userPhoneNumber?: string;
}

class UpdateUserResult {
  @Uuid()
  userId!: string;
}

/** Updates a user; omitted fields stay unchanged. */
export const updateUser = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_USER',
  summary: 'Updates a user; omitted fields stay unchanged.',
  intent: UpdateUserIntent,
  result: UpdateUserResult,
  policy: { resource: 'USER', action: 'UPDATE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  touches: ({ userId, userEmail, userPhoneNumber }) => ({
    type: 'UserUpdated',
    data: { userId, ...presentMembers({ userEmail, userPhoneNumber }) },
  }),

  decide({ userId, userName, userEmail, userPhoneNumber, userTagIds = [] }, { organization }) {
    existingUser(organization, userId);
    for (const tagId of userTagIds) existingUserTag(organization, tagId);
    // Clients are told to send an empty list when they do not mean tags, so it cannot mean "no tags".
    const userTags = userTagIds.length > 0 ? userTagIds : undefined;
    const changes = presentMembers({ userName, userEmail, userPhoneNumber, userTags });
    const isChanged = Object.keys(changes).length > 0;
    return { events: isChanged ? [{ type: 'UserUpdated', data: { userId, ...changes } }] : [], result: { userId } };
  },
});
