import { existingUser } from '../../domain/organization/users.js';
import { ListOf, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { ApiKeyParams, ApiKeyParamsV2, credentialsForeseen, liftApiKey, newCredentials } from './credential-params.js';

class CreateApiKeysIntent {
  @ListOf(() => ApiKeyParams, { min: 1, about: 'The new keys, all P-256.' })
  apiKeys!: ApiKeyParams[];

  @Uuid({ about: 'The user who gets the keys.' })
  userId!: string;
}

class CreateApiKeysIntentV2 {
  @ListOf(() => ApiKeyParamsV2, { min: 1, about: 'The new keys.' })
  apiKeys!: ApiKeyParamsV2[];

  @Uuid({ about: 'The user who gets the keys.' })
  userId!: string;
}

class CreateApiKeysResult {
  @UuidList()
  apiKeyIds!: string[];
}

/** Adds API keys to a user. A full set of expiring keys makes room: expired ones are deleted first, then the oldest. */
export const createApiKeys = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_API_KEYS_V2',
  resultKey: 'createApiKeysResult',
  summary: 'Adds API keys to a user.',
  intent: CreateApiKeysIntentV2,
  result: CreateApiKeysResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_API_KEYS',
      intent: CreateApiKeysIntent,
      lift: ({ userId, apiKeys }: CreateApiKeysIntent): CreateApiKeysIntentV2 => ({
        userId,
        apiKeys: apiKeys.map(liftApiKey),
      }),
    },
  ],
  policy: { resource: 'CREDENTIAL', action: 'CREATE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  ownCredentialsOf: ({ userId }) => userId,
  foreseen: ({ userId, ...credentials }) => credentialsForeseen(userId, credentials),
  touches: ({ userId }) => ({ type: 'ApiKeyCreated', data: { userId } }),

  decide({ userId, apiKeys }, context) {
    const user = existingUser(context.organization, userId);
    const { apiKeyIds, events } = newCredentials(context).apiKeys(user, apiKeys, 'parameters.apiKeys');
    return { events, result: { apiKeyIds } };
  },
});
