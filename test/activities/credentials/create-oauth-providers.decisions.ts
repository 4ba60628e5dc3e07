import { createOauthProviders } from '../../../src/activities/credentials/create-oauth-providers.js';
import { anIdentity, anOrganization, aUser, identityOf } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';

const ann = id(101);
const named = (number: number) => ({ providerName: `provider ${number}`, ...identityOf(number) });
const params = (number: number) => ({ providerName: `provider ${number}`, oidcToken: 'a token' });
const intent = { userId: ann, oauthProviders: [params(301), params(302)] };
const prepared = { identities: [named(301), named(302)] };

describe('create_oauth_providers', () => {
  it('gives the user each identity', () =>
    given(anOrganization(), aUser(ann))
      .when(createOauthProviders, intent, { prepared, submitterId: ann })
      .then([anIdentity(ann, 301, { providerId: id(1) }), anIdentity(ann, 302, { providerId: id(2) })], {
        providerIds: [id(1), id(2)],
      }));

  it.each([
    ['of somebody else', id(102)],
    ['of the user', ann],
  ])('refuses an identity %s', (_what, owner) =>
    given(anOrganization(), aUser(ann), aUser(id(102)), anIdentity(owner, 302))
      .when(createOauthProviders, intent, { prepared, submitterId: ann })
      .thenRefused('ALREADY_EXISTS', /oauthProviders\[1\]: identity .* is already registered for user/),
  );

  it('refuses an identity that the request has twice', () =>
    given(anOrganization(), aUser(ann))
      .when(createOauthProviders, intent, { prepared: { identities: [named(301), named(301)] }, submitterId: ann })
      .thenRefused('ALREADY_EXISTS', /appears twice in this request/));

  it('takes the same person of another app for another identity', () =>
    given(anOrganization(), aUser(ann), anIdentity(ann, 301))
      .when(
        createOauthProviders,
        { userId: ann, oauthProviders: [params(301)] },
        { prepared: { identities: [{ ...named(301), audience: 'other app' }] }, submitterId: ann },
      )
      .then([anIdentity(ann, 301, { providerId: id(1), audience: 'other app' })], { providerIds: [id(1)] }));

  it('refuses the eleventh', () => {
    const ten = Array.from({ length: 10 }, (_none, index) => anIdentity(ann, 400 + index));
    given(anOrganization(), aUser(ann), ...ten)
      .when(
        createOauthProviders,
        { userId: ann, oauthProviders: [params(301)] },
        { prepared: { identities: [named(301)] }, submitterId: ann },
      )
      .thenRefused('RESOURCE_EXHAUSTED', /a user may have 10 OAuth providers/);
  });

  it('refuses a user who is not there', () =>
    given(anOrganization())
      .when(createOauthProviders, intent, { prepared, submitterId: ann })
      .thenRefused('NOT_FOUND', /no user/));

  it('refuses an empty list', () =>
    given(anOrganization(), aUser(ann))
      .when(
        createOauthProviders,
        { userId: ann, oauthProviders: [] },
        { prepared: { identities: [] }, submitterId: ann },
      )
      .thenRefused('INVALID_ARGUMENT', /parameters\.oauthProviders/));

  it('takes the first version, which has tokens only', () => {
    const type = 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS';
    expect(lifted(type, intent)).toEqual(intent);
    const claims = { oidcClaims: { iss: 'i', sub: 's', aud: 'a' } };
    const more = { userId: ann, oauthProviders: [{ ...params(301), ...claims }] };
    expect(() => lifted(type, more)).toThrow(/oidcClaims: is not a field/);
  });

  describe('by the parent', () => {
    const address = 'Ann@example.com';
    const proved = [
      aUser(ann, { userEmail: address }),
      { type: 'UserContactVerified', data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) } },
    ] as const;
    const one = { userId: ann, oauthProviders: [params(301)] };
    const by = (linkingEmails: (string | undefined)[]) => ({
      submitterId: id(900),
      prepared: { identities: [named(301)], linkingEmails },
    });

    it('gives the identity whose token vouches for the proved address, in whatever letter case', () =>
      given(anOrganization(), ...proved)
        .when(createOauthProviders, one, by(['ann@EXAMPLE.com']))
        .then([anIdentity(ann, 301, { providerId: id(1) })], { providerIds: [id(1)] }));

    it.each([
      ['no address', [undefined], proved],
      ['nothing', [], proved],
      ['another address', ['bob@example.com'], proved],
      ['an address that was not proved', [address], [aUser(ann, { userEmail: address })]],
      ['the address of a user without one', [address], [aUser(ann)]],
      [
        'a phone number that was proved beside an address that was not',
        [address],
        [
          aUser(ann, { userEmail: address, userPhoneNumber: '+13214567890' }),
          {
            type: 'UserContactVerified',
            data: { userId: ann, contact: 'phone-number', issuerOrganizationId: id(700) },
          },
        ],
      ],
    ] as const)('refuses one that vouches for %s', (_what, emails, facts) =>
      given(anOrganization(), ...facts)
        .when(createOauthProviders, one, by([...emails]))
        .thenRefused('PERMISSION_DENIED', /oauthProviders\[0\]: the parent organization may add to user/),
    );

    it('refuses all when one of them is not vouched for', () =>
      given(anOrganization(), ...proved)
        .when(createOauthProviders, intent, {
          submitterId: id(900),
          prepared: { ...prepared, linkingEmails: [address] },
        })
        .thenRefused('PERMISSION_DENIED', /oauthProviders\[1\]/));
  });
});
