import { invalidField } from '../../domain/errors.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { checkUserTagNameFree, existingUserTag, userTagMoves } from '../../domain/organization/tags.js';
import { Label, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class UpdateUserTagIntent {
  @Uuid({ about: 'The tag to change.' })
  userTagId!: string;

  @Label({ optional: true, about: 'The new name; must be unique among user tags of the organization.' })
  newUserTagName?: string;

  @UuidList({ optional: true, about: 'Users to add the tag to.' })
  addUserIds?: string[];

  @UuidList({ optional: true, about: 'Users to remove the tag from.' })
  removeUserIds?: string[];
}

class UpdateUserTagResult {
  @Uuid()
  userTagId!: string;
}

/** Renames a user tag, and adds it to and removes it from users. */
export const updateUserTag = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_USER_TAG',
  summary: 'Renames a user tag, and adds it to or removes it from users.',
  intent: UpdateUserTagIntent,
  result: UpdateUserTagResult,
  policy: { resource: 'USER', action: 'UPDATE' },

  decide({ userTagId, newUserTagName, addUserIds = [], removeUserIds = [] }, { organization }) {
    existingUserTag(organization, userTagId);
    const both = addUserIds.find((userId) => removeUserIds.includes(userId));
    if (both !== undefined) {
      throw invalidField('parameters.removeUserIds', `lists user \`${both}\`, who is also in addUserIds`);
    }
    const events: OrganizationEvent[] = userTagMoves(organization, userTagId, {
      add: addUserIds,
      remove: removeUserIds,
    });
    if (newUserTagName !== undefined) {
      checkUserTagNameFree(organization, newUserTagName, userTagId);
      events.unshift({ type: 'UserTagUpdated', data: { tagId: userTagId, tagName: newUserTagName } });
    }
    return { events, result: { userTagId } };
  },
});
