import { oauthLogin } from '../../../src/activities/auth/oauth-login.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anIdentity, anOrganization, aUser, identityOf, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history: readonly OrganizationEvent[] = [anOrganization(), aUser(ann), anIdentity(ann, 301)];
const intent = { oidcToken: 'a token', publicKey: publicKeyOf(50) };
const prepared = { identity: identityOf(301), userId: ann, session: 'a session' };
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

  it('takes the life that it is told, and takes away the keys of its class only', () =>
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
});
