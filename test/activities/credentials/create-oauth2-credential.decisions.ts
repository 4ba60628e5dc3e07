import { createOauth2Credential } from '../../../src/activities/credentials/create-oauth2-credential.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

const intent = { provider: 'OAUTH2_PROVIDER_X', clientId: 'app', encryptedClientSecret: 'ab' };
const known = { oauth2CredentialId: id(401), provider: 'OAUTH2_PROVIDER_X', clientId: 'app', vaultId: 'v1' };

describe('create_oauth2_credential', () => {
  it('records where the secret is stored', () =>
    given(anOrganization())
      .when(createOauth2Credential, intent, { prepared: 'v2' })
      .then(
        [
          {
            type: 'Oauth2CredentialCreated',
            data: { oauth2CredentialId: id(1), provider: 'OAUTH2_PROVIDER_X', clientId: 'app', vaultId: 'v2' },
          },
        ],
        { oauth2CredentialId: id(1) },
      ));

  it('refuses an application that is there already, not the same id at another provider', () => {
    const history = [anOrganization(), { type: 'Oauth2CredentialCreated', data: known }] as const;
    given(...history)
      .when(createOauth2Credential, intent, { prepared: 'v2' })
      .thenRefused('ALREADY_EXISTS', /already exists for client id `app` of OAUTH2_PROVIDER_X/);
    const provider = 'OAUTH2_PROVIDER_DISCORD';
    given(...history)
      .when(createOauth2Credential, { ...intent, provider }, { prepared: 'v2' })
      .then(
        [{ type: 'Oauth2CredentialCreated', data: { ...known, oauth2CredentialId: id(1), provider, vaultId: 'v2' } }],
        {
          oauth2CredentialId: id(1),
        },
      );
  });

  it.each([
    ['no provider', { provider: '' }, /parameters\.provider/],
    ['no client id', { clientId: '' }, /parameters\.clientId/],
    [
      'a client id that would break a line',
      { clientId: 'a\nb' },
      /parameters\.clientId: must not contain control characters/,
    ],
    ['a secret that is not hex', { encryptedClientSecret: 'secret' }, /parameters\.encryptedClientSecret/],
  ])('refuses %s', (_what, more, message) =>
    given(anOrganization())
      .when(createOauth2Credential, { ...intent, ...more }, { prepared: 'v2' })
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
