import { ListOf, UuidList } from '../../wire/fields.js';
import { verifyAuthenticators } from '../credentials/credential-params.js';
import { registrarsOf, verifiedIdentities } from '../credentials/oauth-params.js';
import { defineActivity } from '../define-activity.js';
import { newUsers, recalledUsers } from './new-users.js';
import {
  liftUser,
  liftUserV2,
  UserParams,
  UserParamsV2,
  UserParamsV3,
  UserParamsV4,
  usersForeseen,
} from './user-params.js';

class CreateUsersIntent {
  @ListOf(() => UserParams, { min: 1, about: 'The new users. All are created, or none.' })
  users!: UserParams[];
}

class CreateUsersIntentV2 {
  @ListOf(() => UserParamsV2, { min: 1, about: 'The new users. All are created, or none.' })
  users!: UserParamsV2[];
}

class CreateUsersIntentV3 {
  @ListOf(() => UserParamsV3, { min: 1, about: 'The new users. All are created, or none.' })
  users!: UserParamsV3[];
}

class CreateUsersIntentV4 {
  @ListOf(() => UserParamsV4, { min: 1, about: 'The new users. All are created, or none.' })
  users!: UserParamsV4[];
}

class CreateUsersResult {
  @UuidList()
  userIds!: string[];
}

const resultKey = 'createUsersResult';
const fieldOf = (index: number): string => `parameters.users[${index}]`;

/** Creates users with their credentials and tags. */
export const createUsers = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_USERS_V4',
  resultKey,
  summary: 'Creates users with their credentials and tags.',
  intent: CreateUsersIntentV4,
  result: CreateUsersResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_USERS_V3',
      resultKey,
      intent: CreateUsersIntentV3,
      lift: (intent: CreateUsersIntentV3): CreateUsersIntentV4 => intent,
    },
    {
      type: 'ACTIVITY_TYPE_CREATE_USERS_V2',
      resultKey,
      intent: CreateUsersIntentV2,
      lift: ({ users }: CreateUsersIntentV2): CreateUsersIntentV4 => ({ users: users.map(liftUserV2) }),
    },
    {
      type: 'ACTIVITY_TYPE_CREATE_USERS',
      resultKey,
      intent: CreateUsersIntent,
      lift: ({ users }: CreateUsersIntent): CreateUsersIntentV4 => ({
        users: users.map((user, index) => liftUser(user, fieldOf(index))),
      }),
    },
  ],
  policy: { resource: 'USER', action: 'CREATE' },
  foreseen: ({ users }) => usersForeseen(users),

  async prepare({ users }, ports, { organization, limits }) {
    const registrars = await registrarsOf(organization, ports);
    return Promise.all(
      users.map(async ({ authenticators = [], oauthProviders = [] }, index) => {
        const passkeys = `${fieldOf(index)}.authenticators`;
        const verified = await verifyAuthenticators(authenticators, ports, organization, passkeys, limits);
        const field = `${fieldOf(index)}.oauthProviders`;
        const { proved: _proved, ...registered } = await verifiedIdentities(
          oauthProviders,
          ports,
          registrars,
          field,
          limits,
        );
        return { authenticators: verified, ...registered };
      }),
    );
  },

  recall: ({ users }, recorded) => recalledUsers(users, recorded),

  decide({ users }, context, verified) {
    const { userIds, events } = newUsers(users, context, verified, 'parameters.users');
    return { events, result: { userIds } };
  },
});
