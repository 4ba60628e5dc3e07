import { CoordinatorError } from '../../domain/errors.js';
import { checkUserTagNameFree, userTagMoves } from '../../domain/organization/tags.js';
import { Label, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class CreateUserTagIntent {
  @Label({ about: 'The name of the tag; no other user tag of the organization may have it.' })
  userTagName!: string;

  @UuidList({ optional: true, about: 'Users who carry it from the beginning.' })
  userIds?: string[];
}

class CreateUserTagResult {
  @Uuid()
  userTagId!: string;

  @UuidList()
  userIds!: string[];
}

/** Creates a tag for users. */
export const createUserTag = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_USER_TAG',
  summary: 'Creates a tag for users.',
  intent: CreateUserTagIntent,
  result: CreateUserTagResult,
  policy: { resource: 'USER', action: 'CREATE' },

  decide({ userTagName, userIds = [] }, { organization, newId, limits }) {
    const { userTags: most } = limits;
    if (organization.userTags.size >= most) {
      throw new CoordinatorError(
        'RESOURCE_EXHAUSTED',
        `the organization has ${most} user tags, and may not have more: delete one with delete_user_tags`,
      );
    }
    checkUserTagNameFree(organization, userTagName);
    const userTagId = newId();
    const moves = userTagMoves(organization, userTagId, { add: userIds, remove: [] });
    return {
      events: [{ type: 'UserTagCreated', data: { tagId: userTagId, tagName: userTagName } }, ...moves],
      result: { userTagId, userIds },
    };
  },
});
