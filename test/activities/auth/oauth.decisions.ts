import { oauth } from '../../../src/activities/auth/oauth.js';
import type { OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { anApiKey, anIdentity, anOrganization, aUser, identityOf, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

const ann = id(101);
const history: readonly OrganizationEvent[] = [anOrganization(), aUser(ann), anIdentity(ann, 301)];
const intent = { oidcToken: 'a token', targetPublicKey: publicKeyOf(40) };
const key = { publicKey: publicKeyOf(50), credentialBundle: 'a bundle' };
const prepared = { identity: identityOf(301), key };
const result = { userId: ann, apiKeyId: id(1), credentialBundle: 'a bundle' };
const madeKey = anApiKey(ann, 50, {
  apiKeyId: id(1),
  apiKeyName: 'Oauth - 2026-01-02T00:00:00.000Z',
  credentialType: 'CREDENTIAL_TYPE_OAUTH_KEY_P256',
  expirationSeconds: 900,
});

describe('oauth', () => {
  it('gives a key to the user whom the identity belongs to', () =>
    given(...history, aUser(id(102)), anIdentity(id(102), 302))
      .when(oauth, intent, { prepared })
      .then([madeKey], result));

  it('uses the given name and lifetime', () =>
    given(...history)
      .when(oauth, { ...intent, apiKeyName: 'phone', expirationSeconds: '60' }, { prepared })
      .then([{ ...madeKey, data: { ...madeKey.data, apiKeyName: 'phone', expirationSeconds: 60 } }], result));

  it('removes the keys of its class if asked to, and no others', () =>
    given(
      ...history,
      anApiKey(ann, 1, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_OAUTH_KEY_P256' }),
      anApiKey(ann, 2, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_LOGIN' }),
      anApiKey(ann, 3, { expirationSeconds: 900, credentialType: 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256' }),
      anApiKey(ann, 4),
    )
      .when(oauth, { ...intent, invalidateExisting: true }, { prepared })
      .then([{ type: 'ApiKeyDeleted', data: { userId: ann, apiKeyId: id(1) } }, madeKey], result));

  it.each([
    ['nobody has', identityOf(999)],
    ['is of another app', { ...identityOf(301), audience: 'another app' }],
    ['is of another issuer', { ...identityOf(301), issuer: 'https://issuer.example/' }],
  ])('refuses an identity that %s', (_what, identity) =>
    given(...history)
      .when(oauth, intent, { prepared: { identity, key } })
      .thenRefused(
        'INVALID_ARGUMENT',
        /^INVALID_OIDC_TOKEN: no user of organization .* has the identity of this token/,
      ),
  );

  it('refuses an identity that was taken away meanwhile', () =>
    given(...history, { type: 'OauthProviderDeleted', data: { userId: ann, providerId: id(301) } })
      .when(oauth, intent, { prepared })
      .thenRefused('INVALID_ARGUMENT', /^INVALID_OIDC_TOKEN/));

  it.each([
    ['a target key that is none', { targetPublicKey: '02ff' }, /parameters\.targetPublicKey/],
    ['no target key', { targetPublicKey: undefined }, /parameters\.targetPublicKey: is required/],
    ['no token', { oidcToken: '' }, /parameters\.oidcToken/],
    ['a life of no length', { expirationSeconds: '0' }, /parameters\.expirationSeconds/],
    ['a life that is a number', { expirationSeconds: 60 }, /parameters\.expirationSeconds/],
  ])('refuses %s', (_what, more, message) =>
    given(...history)
      .when(oauth, { ...intent, ...more }, { prepared })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
