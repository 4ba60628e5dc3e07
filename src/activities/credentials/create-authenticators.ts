import { invalidField } from '../../domain/errors.js';
import { existingUser } from '../../domain/organization/users.js';
import { ListOf, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  AuthenticatorParams,
  AuthenticatorParamsV2,
  credentialsForeseen,
  liftAuthenticator,
  newCredentials,
  recalledAuthenticators,
  verifyAuthenticators,
} from './credential-params.js';

class CreateAuthenticatorsIntent {
  @ListOf(() => AuthenticatorParams, { min: 1, about: 'The passkeys to register.' })
  authenticators!: AuthenticatorParams[];

  @Uuid({ about: 'The user who gets the passkeys.' })
  userId!: string;
}

class CreateAuthenticatorsIntentV2 {
  @ListOf(() => AuthenticatorParamsV2, { min: 1, about: 'The passkeys to register.' })
  authenticators!: AuthenticatorParamsV2[];

  @Uuid({ about: 'The user who gets the passkeys.' })
  userId!: string;
}

class CreateAuthenticatorsResult {
  @UuidList()
  authenticatorIds!: string[];
}

const field = 'parameters.authenticators';

/** Registers passkeys for a user. */
export const createAuthenticators = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2',
  resultKey: 'createAuthenticatorsResult',
  summary: 'Registers passkeys for a user.',
  intent: CreateAuthenticatorsIntentV2,
  result: CreateAuthenticatorsResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS',
      intent: CreateAuthenticatorsIntent,
      lift: ({ userId, authenticators }: CreateAuthenticatorsIntent): CreateAuthenticatorsIntentV2 => ({
        userId,
        authenticators: authenticators.map((params, index) => {
          // With two fields naming the user, policies could have been asked about the wrong one.
          if (params.userId !== userId) {
            throw invalidField(
              `${field}[${index}].userId`,
              `must be the user of the request, \`${userId}\`, got \`${params.userId}\``,
            );
          }
          return liftAuthenticator(params, `${field}[${index}]`);
        }),
      }),
    },
  ],
  policy: { resource: 'CREDENTIAL', action: 'CREATE' },
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  ownCredentialsOf: ({ userId }) => userId,
  foreseen: ({ userId, ...credentials }) => credentialsForeseen(userId, credentials),
  touches: ({ userId }) => ({ type: 'AuthenticatorCreated', data: { userId } }),

  prepare: ({ authenticators }, ports, { organization, limits }) =>
    verifyAuthenticators(authenticators, ports, organization, field, limits),

  recall: ({ userId }, recorded) => recalledAuthenticators(recorded, userId),

  decide({ userId, authenticators }, context, verified) {
    const user = existingUser(context.organization, userId);
    const made = newCredentials(context).authenticators(user, authenticators, verified, field);
    return { events: made.events, result: { authenticatorIds: made.authenticatorIds } };
  },
});
