import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { existingUserTag } from '../../domain/organization/tags.js';
import { checkNoDenialNames } from '../../domain/policy/known-literals.js';
import { UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteUserTagsIntent {
  @UuidList({ min: 1, about: 'The user tags to delete, all or none.' })
  userTagIds!: string[];
}

class DeleteUserTagsResult {
  @UuidList()
  userTagIds!: string[];

  @UuidList({ about: 'The users who had any of the tags.' })
  userIds!: string[];
}

/** Deletes user tags, and removes them from all users. */
export const deleteUserTags = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_USER_TAGS',
  summary: 'Deletes user tags and removes them from all users.',
  intent: DeleteUserTagsIntent,
  result: DeleteUserTagsResult,
  policy: { resource: 'USER', action: 'DELETE' },
  foreseen: ({ userTagIds }) => userTagIds.map((tagId) => ({ type: 'UserTagDeleted', data: { tagId } })),

  decide({ userTagIds }, { organization, policyEnvironment }) {
    for (const tagId of userTagIds) existingUserTag(organization, tagId);
    checkNoDenialNames('User.tags', userTagIds, policyEnvironment, organization);
    const events: OrganizationEvent[] = [];
    const userIds: string[] = [];
    for (const { userId, userTags } of organization.users.values()) {
      const left = userTags.filter((tagId) => !userTagIds.includes(tagId));
      if (left.length === userTags.length) continue;
      userIds.push(userId);
      events.push({ type: 'UserUpdated', data: { userId, userTags: left } });
    }
    for (const tagId of userTagIds) events.push({ type: 'UserTagDeleted', data: { tagId } });
    return { events, result: { userTagIds, userIds } };
  },
});
