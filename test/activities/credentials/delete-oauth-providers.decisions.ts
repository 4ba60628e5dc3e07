import { deleteOauthProviders } from '../../../src/activities/credentials/delete-oauth-providers.js';
import { anIdentity, anOrganization, aUser } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history = [anOrganization(), aUser(ann), anIdentity(ann, 301), anIdentity(ann, 302)] as const;

describe('delete_oauth_providers', () => {
  it('removes the identities', () =>
    given(...history)
      .when(deleteOauthProviders, { userId: ann, providerIds: [id(302), id(301)] })
      .then(
        [
          { type: 'OauthProviderDeleted', data: { userId: ann, providerId: id(302) } },
          { type: 'OauthProviderDeleted', data: { userId: ann, providerId: id(301) } },
        ],
        { providerIds: [id(302), id(301)] },
      ));

  it('refuses to take the last way in from the only user of the root quorum', () => {
    const quorum = { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [ann] } } as const;
    const both = { userId: ann, providerIds: [id(301), id(302)] };
    given(...history, quorum)
      .when(deleteOauthProviders, both)
      .thenRefused(
        'FAILED_PRECONDITION',
        /^the root quorum requires 1 of 1 users, but only 0 of them would have a credential/,
      );
    given(...history, quorum)
      .when(deleteOauthProviders, { userId: ann, providerIds: [id(301)] })
      .then([{ type: 'OauthProviderDeleted', data: { userId: ann, providerId: id(301) } }], { providerIds: [id(301)] });
  });

  it.each([
    ['an identity that is not there', ann, id(399), 'NOT_FOUND', /has no OAuth provider/],
    ["somebody else's", id(102), id(301), 'NOT_FOUND', /has no OAuth provider/],
    ['one of nobody', id(109), id(301), 'NOT_FOUND', /no user/],
  ] as const)('refuses %s', (_what, userId, providerId, code, message) =>
    given(...history, aUser(id(102)))
      .when(deleteOauthProviders, { userId, providerIds: [providerId] })
      .thenRefused(code, message),
  );
});
