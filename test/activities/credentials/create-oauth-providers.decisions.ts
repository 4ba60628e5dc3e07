import { createOauthProviders } from '../../../src/activities/credentials/create-oauth-providers.js';
import { anIdentity, anOrganization, aUser, identityOf } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';

const ann = id(101);
const named = (number: number) => ({ providerName: `provider ${number}`, ...identityOf(number) });
const params = (number: number) => ({ providerName: `provider ${number}`, oidcToken: 'a token' });
const intent = { userId: ann, oauthProviders: [params(301), params(302)] };
const prepared = [named(301), named(302)];

describe('create_oauth_providers', () => {
  it('gives the user each identity', () =>
    given(anOrganization(), aUser(ann))
      .when(createOauthProviders, intent, { prepared })
      .then([anIdentity(ann, 301, { providerId: id(1) }), anIdentity(ann, 302, { providerId: id(2) })], {
        providerIds: [id(1), id(2)],
      }));

  it.each([
    ['of somebody else', id(102)],
    ['of the user', ann],
  ])('refuses an identity %s', (_what, owner) =>
    given(anOrganization(), aUser(ann), aUser(id(102)), anIdentity(owner, 302))
      .when(createOauthProviders, intent, { prepared })
      .thenRefused('ALREADY_EXISTS', /oauthProviders\[1\]: identity .* is registered for user/),
  );

  it('refuses an identity that the request has twice', () =>
    given(anOrganization(), aUser(ann))
      .when(createOauthProviders, intent, { prepared: [named(301), named(301)] })
      .thenRefused('ALREADY_EXISTS', /is in this request twice/));

  it('takes the same person of another app for another identity', () =>
    given(anOrganization(), aUser(ann), anIdentity(ann, 301))
      .when(
        createOauthProviders,
        { userId: ann, oauthProviders: [params(301)] },
        { prepared: [{ ...named(301), audience: 'other app' }] },
      )
      .then([anIdentity(ann, 301, { providerId: id(1), audience: 'other app' })], { providerIds: [id(1)] }));

  it('refuses the eleventh', () => {
    const ten = Array.from({ length: 10 }, (_none, index) => anIdentity(ann, 400 + index));
    given(anOrganization(), aUser(ann), ...ten)
      .when(createOauthProviders, { userId: ann, oauthProviders: [params(301)] }, { prepared: [named(301)] })
      .thenRefused('RESOURCE_EXHAUSTED', /a user may have 10 OAuth providers/);
  });

  it('refuses a user who is not there', () =>
    given(anOrganization())
      .when(createOauthProviders, intent, { prepared })
      .thenRefused('NOT_FOUND', /no user/));

  it('refuses an empty list', () =>
    given(anOrganization(), aUser(ann))
      .when(createOauthProviders, { userId: ann, oauthProviders: [] }, { prepared: [] })
      .thenRefused('INVALID_ARGUMENT', /parameters\.oauthProviders/));

  it('takes the first version, which has tokens only', () => {
    const type = 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS';
    expect(lifted(type, intent)).toEqual(intent);
    const claims = { oidcClaims: { iss: 'i', sub: 's', aud: 'a' } };
    const more = { userId: ann, oauthProviders: [{ ...params(301), ...claims }] };
    expect(() => lifted(type, more)).toThrow(/oidcClaims: is not a field/);
  });
});
