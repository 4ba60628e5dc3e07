import { existingOauthProvider } from '../../domain/organization/credentials.js';
import { existingUser } from '../../domain/organization/users.js';
import { Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteOauthProvidersIntent {
  @Uuid({ about: 'The owner of the identities.' })
  userId!: string;

  @UuidList({ min: 1, about: 'The identities to delete.' })
  providerIds!: string[];
}

class DeleteOauthProvidersResult {
  @UuidList()
  providerIds!: string[];
}

/** Removes OpenID identities from a user; keys created by logins with them remain valid until they expire. */
export const deleteOauthProviders = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS',
  summary: 'Removes OpenID identities from a user.',
  intent: DeleteOauthProvidersIntent,
  result: DeleteOauthProvidersResult,
  policy: { resource: 'CREDENTIAL', action: 'DELETE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  ownCredentialsOf: ({ userId }) => userId,
  touches: ({ userId }) => ({ type: 'OauthProviderDeleted', data: { userId } }),

  decide({ userId, providerIds }, { organization }) {
    const user = existingUser(organization, userId);
    const events = providerIds.map((providerId) => {
      existingOauthProvider(user, providerId);
      return { type: 'OauthProviderDeleted', data: { userId, providerId } } as const;
    });
    return { events, result: { providerIds } };
  },
});
