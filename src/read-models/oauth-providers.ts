import { oauthProviderResource } from '../wire/resources.js';
import { ListOf, Uuid } from '../wire/fields.js';
import { defineQuery, ListRequest, PagedResponse } from './define-query.js';
import { OauthProviderShape } from '../wire/shapes.js';
import { heldBy } from './users.js';

class GetOauthProvidersRequest extends ListRequest {
  @Uuid({ optional: true, about: 'Only the identities of this user.' })
  userId?: string;
}

class GetOauthProvidersResponse extends PagedResponse {
  @ListOf(() => OauthProviderShape)
  oauthProviders!: readonly OauthProviderShape[];
}

/** Identities at OpenID providers (specification, section 4.4). */
export const getOauthProviders = defineQuery({
  path: 'get_oauth_providers',
  summary: 'The OpenID identities of one user, or of all users.',
  request: GetOauthProvidersRequest,
  response: GetOauthProvidersResponse,
  answer: async ({ organizationId, userId, paginationOptions }, { rows, page }) => ({
    oauthProviders: await page(
      heldBy(
        rows,
        organizationId,
        userId,
        {
          kind: 'OauthProvider',
          of: ({ oauthProviders }) => oauthProviders.map(oauthProviderResource),
          idOf: ({ providerId }) => providerId,
        },
        paginationOptions,
      ),
    ),
  }),
});
