import { ListOf, UuidList } from '../../wire/fields.js';
import { ApiKeyParams } from '../credentials/credential-params.js';
import { defineActivity } from '../define-activity.js';
import { newUsers } from './new-users.js';
import { liftUserV2, NamedUserParams, usersForeseen } from './user-params.js';

class ApiOnlyUserParams extends NamedUserParams {
  @ListOf(() => ApiKeyParams, { optional: true, about: 'API keys of the user, all P-256.' })
  apiKeys?: ApiKeyParams[];
}

class CreateApiOnlyUsersIntent {
  @ListOf(() => ApiOnlyUserParams, { min: 1, about: 'The new users. All are created, or none.' })
  apiOnlyUsers!: ApiOnlyUserParams[];
}

class CreateApiOnlyUsersResult {
  @UuidList()
  userIds!: string[];
}

/** Creates users with API keys and no other way to authenticate. */
export const createApiOnlyUsers = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_API_ONLY_USERS',
  summary: 'Creates users who can authenticate only with API keys.',
  intent: CreateApiOnlyUsersIntent,
  result: CreateApiOnlyUsersResult,
  policy: { resource: 'USER', action: 'CREATE' },
  foreseen: ({ apiOnlyUsers }) => usersForeseen(apiOnlyUsers.map(liftUserV2)),

  decide({ apiOnlyUsers }, context) {
    const { userIds, events } = newUsers(apiOnlyUsers.map(liftUserV2), context, [], 'parameters.apiOnlyUsers');
    return { events, result: { userIds } };
  },
});
