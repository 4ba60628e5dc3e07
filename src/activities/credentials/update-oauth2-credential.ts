import { existingOauth2Credential } from '../../domain/organization/oauth2-credentials.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkApplicationNew, Oauth2CredentialParams } from './oauth2-params.js';

class UpdateOauth2CredentialIntent extends Oauth2CredentialParams {
  @Uuid({ about: 'The application to change.' })
  oauth2CredentialId!: string;
}

class UpdateOauth2CredentialResult {
  @Uuid()
  oauth2CredentialId!: string;
}

/** Replaces an application at an OAuth 2.0 provider; its old secret is shredded. */
export const updateOauth2Credential = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL',
  summary: 'Replaces the provider, client id and secret of an OAuth 2.0 application.',
  intent: UpdateOauth2CredentialIntent,
  result: UpdateOauth2CredentialResult,
  policy: { resource: 'AUTH', action: 'UPDATE' },

  check(intent, organization) {
    const { oauth2CredentialId } = existingOauth2Credential(organization, intent.oauth2CredentialId);
    checkApplicationNew(organization, intent, oauth2CredentialId);
  },

  prepare({ provider, encryptedClientSecret }, { oauth2, oauthSecrets }, { organization }) {
    oauth2.checkProvider(provider);
    return oauthSecrets.keep(organization.organizationId, encryptedClientSecret);
  },

  recall: (_intent, recorded) => recorded.first('Oauth2CredentialUpdated').vaultId,

  decide({ oauth2CredentialId, provider, clientId }, { organization }, vaultId) {
    const { vaultId: replacedVaultId } = existingOauth2Credential(organization, oauth2CredentialId);
    const data = { oauth2CredentialId, provider, clientId, vaultId, replacedVaultId };
    return { events: [{ type: 'Oauth2CredentialUpdated', data }], result: { oauth2CredentialId } };
  },
});
