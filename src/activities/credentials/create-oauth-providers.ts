import { existingUser } from '../../domain/organization/users.js';
import { ListOf, Uuid, UuidList } from '../../schema/fields.js';
import { defineActivity } from '../define-activity.js';
import { newCredentials } from './credential-params.js';
import { OauthProviderParams, OauthProviderParamsV2, verifiedIdentities } from './oauth-params.js';

class CreateOauthProvidersIntent {
  @Uuid({ about: 'The user who gets the identities.' })
  userId!: string;

  @ListOf(() => OauthProviderParams, { min: 1, about: 'The identities to register.' })
  oauthProviders!: OauthProviderParams[];
}

class CreateOauthProvidersIntentV2 {
  @Uuid({ about: 'The user who gets the identities.' })
  userId!: string;

  @ListOf(() => OauthProviderParamsV2, { min: 1, about: 'The identities to register.' })
  oauthProviders!: OauthProviderParamsV2[];
}

class CreateOauthProvidersResult {
  @UuidList()
  providerIds!: string[];
}

const field = 'parameters.oauthProviders';

/** Gives a user identities at OpenID providers to log in with. */
export const createOauthProviders = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2',
  summary: 'Gives a user identities at OpenID providers to log in with.',
  intent: CreateOauthProvidersIntentV2,
  result: CreateOauthProvidersResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS',
      intent: CreateOauthProvidersIntent,
      lift: (intent: CreateOauthProvidersIntent): CreateOauthProvidersIntentV2 => intent,
    },
  ],
  policy: { resource: 'CREDENTIAL', action: 'CREATE' },
  ownCredentialsOf: ({ userId }) => userId,

  check({ userId }, organization) {
    existingUser(organization, userId);
  },

  prepare: ({ oauthProviders }, ports) => verifiedIdentities(oauthProviders, ports, field),

  decide({ userId }, context, identities) {
    const user = existingUser(context.organization, userId);
    const { providerIds, events } = newCredentials(context).oauthProviders(user, identities, field);
    return { events, result: { providerIds } };
  },
});
