import { oauth2Authenticate } from '../../../src/activities/auth/oauth2-authenticate.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';

const credential = { oauth2CredentialId: id(401), provider: 'OAUTH2_PROVIDER_X', clientId: 'app', vaultId: 'v1' };
const history = [anOrganization(), { type: 'Oauth2CredentialCreated', data: credential }] as const;
const intent = {
  oauth2CredentialId: id(401),
  authCode: 'code',
  redirectUri: 'https://app.example/back',
  codeVerifier: 'v'.repeat(43),
  nonce: 'ab'.repeat(32),
};

describe('oauth2_authenticate', () => {
  it('records the token without what proves it, tells it once, and nothing changes', async () => {
    const prepared = 'header.claims.signature';
    const recorded = { oidcToken: 'header.claims.' };
    given(...history)
      .when(oauth2Authenticate, intent, { prepared })
      .then([], recorded);
    const ports = await preparePorts();
    expect(await oauth2Authenticate.reveal!(recorded, ports, { prepared })).toEqual({ oidcToken: prepared });
    expect(await oauth2Authenticate.reveal!(recorded, ports, undefined)).toBeUndefined();
  });

  it.each([
    ['authCode', 'auth_code must be set'],
    ['redirectUri', 'redirect_uri must be set'],
    ['codeVerifier', 'code_verifier must be set'],
    ['nonce', 'nonce must be set'],
  ])('refuses an empty %s in the words that users know', (field, words) =>
    given(...history)
      .when(oauth2Authenticate, { ...intent, [field]: '' }, { prepared: 'a token' })
      .thenRefused('INVALID_ARGUMENT', new RegExp(`parameters\\.${field}: ${words}`)),
  );

  it('refuses an application that is not there', () => {
    given(anOrganization())
      .when(oauth2Authenticate, intent, { prepared: 'a token' })
      .thenRefused('NOT_FOUND', /no OAuth 2\.0 credential/);
    given(...history, { type: 'Oauth2CredentialDeleted', data: { oauth2CredentialId: id(401), vaultId: 'v1' } })
      .when(oauth2Authenticate, intent, { prepared: 'a token' })
      .thenRefused('NOT_FOUND', /no OAuth 2\.0 credential/);
  });

  it('takes a key for the access token, if it is one', () => {
    const to = (bearerTokenTargetPublicKey: string) => ({ ...intent, bearerTokenTargetPublicKey });
    given(...history)
      .when(oauth2Authenticate, to(publicKeyOf(1)), { prepared: 'h.c.s' })
      .then([], { oidcToken: 'h.c.' });
    given(...history)
      .when(oauth2Authenticate, to('02ff'), { prepared: 'a token' })
      .thenRefused('INVALID_ARGUMENT', /parameters\.bearerTokenTargetPublicKey/);
  });
});
