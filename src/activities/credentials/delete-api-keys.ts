import { existingApiKey } from '../../domain/organization/credentials.js';
import { existingUser } from '../../domain/organization/users.js';
import { Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteApiKeysIntent {
  @Uuid({ about: 'The owner of the keys.' })
  userId!: string;

  @UuidList({ min: 1, about: 'The keys to delete.' })
  apiKeyIds!: string[];
}

class DeleteApiKeysResult {
  @UuidList()
  apiKeyIds!: string[];
}

/** Deletes API keys of a user. */
export const deleteApiKeys = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_API_KEYS',
  summary: 'Deletes API keys of a user.',
  intent: DeleteApiKeysIntent,
  result: DeleteApiKeysResult,
  policy: { resource: 'CREDENTIAL', action: 'DELETE' },
  params: {
    user_id: { type: { kind: 'string' }, from: ({ userId }) => userId },
    api_key_ids: { type: { kind: 'list', of: { kind: 'string' } }, from: ({ apiKeyIds }) => apiKeyIds },
  },
  ownCredentialsOf: ({ userId }) => userId,
  touches: ({ userId }) => ({ type: 'ApiKeyDeleted', data: { userId } }),

  decide({ userId, apiKeyIds }, { organization }) {
    const user = existingUser(organization, userId);
    const events = apiKeyIds.map((apiKeyId) => {
      existingApiKey(user, apiKeyId);
      return { type: 'ApiKeyDeleted', data: { userId, apiKeyId } } as const;
    });
    return { events, result: { apiKeyIds } };
  },
});
