import { CoordinatorError } from '../../domain/errors.js';
import { checkUserTagNameFree, userTagMoves } from '../../domain/organization/tags.js';
import { Label, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class CreateUserTagIntent {
  @Label({ about: 'The name of the tag; must be unique among user tags of the organization.' })
  userTagName!: string;

  @UuidList({ optional: true, about: 'Users to tag at once.' })
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
        `the organization has ${most} user tags, which is the limit: delete one with delete_user_tags`,
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
