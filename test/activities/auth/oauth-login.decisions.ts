import { oauthLogin } from '../../../src/activities/auth/oauth-login.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anIdentity, anOrganization, aUser, identityOf, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history: readonly OrganizationEvent[] = [anOrganization(), aUser(ann), anIdentity(ann, 301)];
const intent = { oidcToken: 'a token', publicKey: publicKeyOf(50) };
const prepared = { identity: identityOf(301), email: undefined, userId: ann, session: 'a session' };
const madeKey = anApiKey(ann, 50, {
  apiKeyId: id(1),
  apiKeyName: 'Login - 2026-01-02T00:00:00.000Z',
  credentialType: 'CREDENTIAL_TYPE_LOGIN',
  expirationSeconds: 900,
});

describe('oauth_login', () => {
  it("makes the client's key one of the user's", () =>
    given(...history)
      .when(oauthLogin, intent, { prepared })
      .then([madeKey], { session: 'a session' }));

  it('uses the given lifetime, and removes only keys of its class', () =>
    given(
      ...history,
      anApiKey(ann, 1, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' }),
      anApiKey(ann, 2, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_OAUTH_KEY_P256' }),
    )
      .when(oauthLogin, { ...intent, expirationSeconds: '86400', invalidateExisting: true }, { prepared })
      .then(
        [
          { type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(1) } },
          { ...madeKey, data: { ...madeKey.data, expirationSeconds: 86_400 } },
        ],
        { session: 'a session' },
      ));

  it('refuses an identity that nobody has', () =>
    given(anOrganization(), aUser(ann))
      .when(oauthLogin, intent, { prepared })
      .thenRefused('INVALID_ARGUMENT', /^INVALID_OIDC_TOKEN: no user of organization/));

  it('refuses when the identity has passed to another user since the session was signed', () =>
    given(
      ...history,
      { type: 'OauthProviderDeleted', data: { userId: ann, providerId: id(301) } },
      aUser(id(102)),
      anIdentity(id(102), 301),
    )
      .when(oauthLogin, intent, { prepared })
      .thenRefused('ABORTED', /log in again/));

  it('refuses a key of somebody else', () =>
    given(...history, aUser(id(102)), anApiKey(id(102), 50))
      .when(oauthLogin, intent, { prepared })
      .thenRefused('ALREADY_EXISTS', /log in with a new key/));

  it.each([
    ['a key that is none', { publicKey: publicKeyOf(50, 'API_KEY_CURVE_ED25519') }, /parameters\.publicKey/],
    ['a session profile', { sessionProfileId: id(5) }, /parameters\.sessionProfileId: names no session profile/],
  ])('refuses %s', (_what, more, message) =>
    given(...history)
      .when(oauthLogin, { ...intent, ...more }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  describe('with an identity of nobody that may be linked by its address', () => {
    const email = 'ann@example.com';
    const proved: readonly OrganizationEvent[] = [
      anOrganization(),
      aUser(ann, { userEmail: email }),
      { type: 'UserContactVerified', data: { userId: ann, contact: 'email', issuerOrganizationId: id(700) } },
    ];

    it('gives it to the user who has proved the address, and logs them in', () =>
      given(...proved)
        .when(oauthLogin, intent, { prepared: { ...prepared, email: 'Ann@Example.com' } })
        .then(
          [
            anIdentity(ann, 301, { providerId: id(1), providerName: 'issuer.example' }),
            { ...madeKey, data: { ...madeKey.data, apiKeyId: id(2) } },
          ],
          { session: 'a session' },
        ));

    it.each<[string, string | undefined, readonly OrganizationEvent[]]>([
      ['there is no address', undefined, proved],
      ['nobody has it', 'bob@example.com', proved],
      ['whoever has it has not proved it', email, [anOrganization(), aUser(ann, { userEmail: email })]],
    ])('refuses when %s', (_what, address, facts) =>
      given(...facts)
        .when(oauthLogin, intent, { prepared: { ...prepared, email: address } })
        .thenRefused('INVALID_ARGUMENT', /^INVALID_OIDC_TOKEN: no user of organization/),
    );

    it('refuses when two have proved it', () =>
      given(...proved, aUser(id(102), { userEmail: email }), {
        type: 'UserContactVerified',
        data: { userId: id(102), contact: 'email', issuerOrganizationId: id(700) },
      })
        .when(oauthLogin, intent, { prepared: { ...prepared, email } })
        .thenRefused('FAILED_PRECONDITION', /2 users of organization/));

    it('goes by the identity once somebody has it', () =>
      given(...proved, aUser(id(102)), anIdentity(id(102), 301))
        .when(oauthLogin, intent, { prepared: { ...prepared, email } })
        .thenRefused('ABORTED', /log in again/));
  });
});
