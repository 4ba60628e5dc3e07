import { oauthProviderResource } from '../domain/organization/resources.js';
import { ListOf, Uuid } from '../schema/fields.js';
import { defineQuery, OrganizationRequest } from './define-query.js';
import { OauthProviderShape } from './shapes.js';
import { userOf, usersOf } from './users.js';

class GetOauthProvidersRequest extends OrganizationRequest {
  @Uuid({ optional: true, about: 'Only the identities of this user.' })
  userId?: string;
}

class GetOauthProvidersResponse {
  @ListOf(() => OauthProviderShape)
  oauthProviders!: object[];
}

/** Identities at OpenID providers (specification, section 4.4). */
export const getOauthProviders = defineQuery({
  path: 'get_oauth_providers',
  summary: 'The identities at OpenID providers of one user, or of all users.',
  request: GetOauthProvidersRequest,
  response: GetOauthProvidersResponse,
  answer({ organizationId, userId }, { rows }) {
    const users = userId === undefined ? usersOf(rows, organizationId) : [userOf(rows, organizationId, userId)];
    return { oauthProviders: users.flatMap(({ oauthProviders }) => oauthProviders.map(oauthProviderResource)) };
  },
});
