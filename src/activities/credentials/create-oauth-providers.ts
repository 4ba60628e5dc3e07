import { existingUser } from '../../domain/organization/users.js';
import { ListOf, Uuid, UuidList } from '../../wire/fields.js';
import { claimsOf, oidcTokensUsed, type RecordedTokens } from '../auth/token-uses.js';
import { defineActivity } from '../define-activity.js';
import { credentialsForeseen, newCredentials } from './credential-params.js';
import {
  OauthProviderParams,
  OauthProviderParamsV2,
  recalledIdentities,
  registrarsOf,
  verifiedIdentities,
  type NamedIdentity,
} from './oauth-params.js';
import { checkLinkedByEmail, linkingEmail } from './social-linking.js';

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

/** Output of `prepare`. */
export interface Registered extends RecordedTokens {
  readonly identities: readonly NamedIdentity[];
  /** If the parent submitted it: the address that each token vouches for. */
  readonly linkingEmails?: readonly (string | undefined)[];
}

const field = 'parameters.oauthProviders';

/**
 * Adds OpenID identities to a user. A parent may add one to a user of a sub-organization whose proved e-mail address
 * the token vouches for (docs/protocol.md, who may stamp what).
 */
export const createOauthProviders = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2',
  summary: 'Adds OpenID identities to a user.',
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
  params: { user_id: { type: { kind: 'string' }, from: ({ userId }) => userId } },
  ownCredentialsOf: ({ userId }) => userId,
  foreseen: ({ userId, ...credentials }) => credentialsForeseen(userId, credentials),
  touches: ({ userId }) => ({ type: 'OauthProviderCreated', data: { userId } }),
  submittedBy: 'user-or-parent',

  check({ userId }, organization) {
    existingUser(organization, userId);
  },

  async prepare({ oauthProviders }, ports, { organization, submitterId, limits }): Promise<Registered> {
    const registrars = await registrarsOf(organization, ports);
    const { proved = [], ...verified } = await verifiedIdentities(oauthProviders, ports, registrars, field, limits);
    if (organization.users.has(submitterId)) return verified;
    const emails = proved.map(async (identity) => identity && linkingEmail(identity, organization, ports));
    return { ...verified, linkingEmails: await Promise.all(emails) };
  },

  recall: ({ oauthProviders }): Registered => ({
    ...recalledIdentities(oauthProviders),
    linkingEmails: oauthProviders.map(({ oidcToken }) => (oidcToken ? claimsOf(oidcToken)['email'] : undefined)),
  }),

  decide({ userId }, context, { identities, tokens = [], linkingEmails = [] }) {
    const { organization, submitterId } = context;
    const user = existingUser(organization, userId);
    // A caller who is nobody here belongs to the parent.
    const isParents = !organization.users.has(submitterId);
    if (isParents) {
      for (const index of identities.keys()) checkLinkedByEmail(user, linkingEmails[index], `${field}[${index}]`);
    }
    const { providerIds, events } = newCredentials(context).oauthProviders(user, identities, field);
    const login = isParents ? { login: { userId, by: 'email' as const } } : {};
    return {
      events: [...events, ...oidcTokensUsed(tokens, 'USAGE_TYPE_OIDC_REGISTRATION')],
      result: { providerIds },
      ...login,
    };
  },
});
