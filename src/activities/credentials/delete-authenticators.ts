import { existingAuthenticator } from '../../domain/organization/credentials.js';
import { existingUser } from '../../domain/organization/users.js';
import { Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteAuthenticatorsIntent {
  @Uuid({ about: 'The owner of the passkeys.' })
  userId!: string;

  @UuidList({ min: 1, about: 'The authenticators to delete.' })
  authenticatorIds!: string[];
}

class DeleteAuthenticatorsResult {
  @UuidList()
  authenticatorIds!: string[];
}

/** Deletes passkeys of a user. */
export const deleteAuthenticators = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_AUTHENTICATORS',
  summary: 'Deletes passkeys of a user.',
  intent: DeleteAuthenticatorsIntent,
  result: DeleteAuthenticatorsResult,
  policy: { resource: 'CREDENTIAL', action: 'DELETE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  ownCredentialsOf: ({ userId }) => userId,
  touches: ({ userId }) => ({ type: 'AuthenticatorDeleted', data: { userId } }),

  decide({ userId, authenticatorIds }, { organization }) {
    const user = existingUser(organization, userId);
    const events = authenticatorIds.map((authenticatorId) => {
      existingAuthenticator(user, authenticatorId);
      return { type: 'AuthenticatorDeleted', data: { userId, authenticatorId } } as const;
    });
    return { events, result: { authenticatorIds } };
  },
});
