import { updateOauth2Credential } from '../../../src/activities/credentials/update-oauth2-credential.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

const known = (number: number, clientId: string) =>
  ({
    type: 'Oauth2CredentialCreated',
    data: { oauth2CredentialId: id(number), provider: 'OAUTH2_PROVIDER_X', clientId, vaultId: `v${number}` },
  }) as const;
const intent = {
  oauth2CredentialId: id(401),
  provider: 'OAUTH2_PROVIDER_X',
  clientId: 'app',
  encryptedClientSecret: 'ab',
};

describe('update_oauth2_credential', () => {
  it('replaces the secret, and ends the vault of the old one', () => {
    const event = {
      type: 'Oauth2CredentialUpdated',
      data: { ...known(401, 'app').data, vaultId: 'v9', replacedVaultId: 'v401' },
    } as const;
    given(anOrganization(), known(401, 'app'))
      .when(updateOauth2Credential, intent, { prepared: 'v9' })
      .then([event], { oauth2CredentialId: id(401) });
    expect(vaultsEndedBy(event)).toEqual(['v401']);
  });

  it('refuses an application that is not there', () =>
    given(anOrganization())
      .when(updateOauth2Credential, intent, { prepared: 'v9' })
      .thenRefused('NOT_FOUND', /no OAuth 2\.0 credential/));

  it('refuses to become another application that is there', () =>
    given(anOrganization(), known(401, 'app'), known(402, 'other'))
      .when(updateOauth2Credential, { ...intent, clientId: 'other' }, { prepared: 'v9' })
      .thenRefused('ALREADY_EXISTS', /already exists for client id `other`/));
});
