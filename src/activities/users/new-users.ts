import { presentMembers } from '../../domain/organization/event.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { existingUserTag } from '../../domain/organization/tags.js';
import { checkRoomForUsers } from '../../domain/organization/users.js';
import { oidcTokensUsed, type RecordedTokens } from '../auth/token-uses.js';
import { newCredentials, recalledAuthenticators } from '../credentials/credential-params.js';
import { recalledIdentities } from '../credentials/oauth-params.js';
import type { DecideContext } from '../define-activity.js';
import type { RecordedActivity } from '../recorded-activity.js';
import type { UserParamsV4 } from './user-params.js';

type Credentials = ReturnType<typeof newCredentials>;

/** External verification results for a new user's credentials. */
export interface ProvedCredentials extends RecordedTokens {
  readonly authenticators: Parameters<Credentials['authenticators']>[2];
  readonly identities: Parameters<Credentials['oauthProviders']>[1];
}

/** The verification results for the created users, in order. */
export function recalledUsers(
  users: readonly Pick<UserParamsV4, 'oauthProviders'>[],
  recorded: RecordedActivity,
): readonly ProvedCredentials[] {
  const userIds = recorded.all('UserCreated').map(({ userId }) => userId);
  return users.map(({ oauthProviders = [] }, index) => ({
    authenticators: recalledAuthenticators(recorded, userIds[index] ?? ''),
    ...recalledIdentities(oauthProviders),
  }));
}

/**
 * The events that create users with their credentials and tags, and the users' ids. `field` names the list in errors.
 * @throws {CoordinatorError} for a tag that does not exist, and for credentials that are taken or repeated
 */
export function newUsers(
  users: readonly UserParamsV4[],
  context: DecideContext,
  proved: readonly ProvedCredentials[],
  field: string,
): { readonly userIds: string[]; readonly events: OrganizationEvent[] } {
  checkRoomForUsers(context.organization, users.length, context.limits);
  const credentials = newCredentials(context);
  const userIds: string[] = [];
  const events = users.flatMap((user, index): OrganizationEvent[] => {
    const { userName, userEmail, userPhoneNumber, userTags = [] } = user;
    const { apiKeys = [], authenticators = [] } = user;
    const nothing: ProvedCredentials = { authenticators: [], identities: [] };
    const { authenticators: verified, identities, tokens = [] } = proved[index] ?? nothing;
    const own = `${field}[${index}]`;
    for (const tagId of userTags) existingUserTag(context.organization, tagId);
    const userId = context.newId();
    userIds.push(userId);
    const contacts = presentMembers({
      userEmail: userEmail || undefined,
      userPhoneNumber: userPhoneNumber || undefined,
    });
    const owner = { userId, apiKeys: [], authenticators: [], oauthProviders: [] };
    return [
      { type: 'UserCreated', data: { userId, userName, ...contacts, userTags } },
      ...credentials.apiKeys(owner, apiKeys, `${own}.apiKeys`).events,
      ...credentials.authenticators(owner, authenticators, verified, `${own}.authenticators`).events,
      ...credentials.oauthProviders(owner, identities, `${own}.oauthProviders`).events,
      ...oidcTokensUsed(tokens, 'USAGE_TYPE_OIDC_REGISTRATION'),
    ];
  });
  return { userIds, events };
}
