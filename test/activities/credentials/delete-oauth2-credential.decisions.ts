import { deleteOauth2Credential } from '../../../src/activities/credentials/delete-oauth2-credential.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';

const credential = { oauth2CredentialId: id(401), provider: 'OAUTH2_PROVIDER_X', clientId: 'app', vaultId: 'v1' };
const intent = { oauth2CredentialId: id(401) };

describe('delete_oauth2_credential', () => {
  it('forgets the application, and ends the vault of its secret', () => {
    const event = { type: 'Oauth2CredentialDeleted', data: { ...intent, vaultId: 'v1' } } as const;
    given(anOrganization(), { type: 'Oauth2CredentialCreated', data: credential })
      .when(deleteOauth2Credential, intent)
      .then([event], intent);
    expect(vaultsEndedBy(event)).toEqual(['v1']);
  });

  it('refuses one that is not there', () =>
    given(anOrganization())
      .when(deleteOauth2Credential, intent)
      .thenRefused('NOT_FOUND', /no OAuth 2\.0 credential/));
});
