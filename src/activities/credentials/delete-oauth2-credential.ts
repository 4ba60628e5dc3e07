import { existingOauth2Credential } from '../../domain/organization/oauth2-credentials.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteOauth2CredentialIntent {
  @Uuid({ about: 'The application to delete.' })
  oauth2CredentialId!: string;
}

class DeleteOauth2CredentialResult {
  @Uuid()
  oauth2CredentialId!: string;
}

/** Deletes an application at an OAuth 2.0 provider; its secret is shredded. */
export const deleteOauth2Credential = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_OAUTH2_CREDENTIAL',
  summary: 'Deletes an OAuth 2.0 application and its secret.',
  intent: DeleteOauth2CredentialIntent,
  result: DeleteOauth2CredentialResult,
  policy: { resource: 'AUTH', action: 'DELETE' },

  decide({ oauth2CredentialId }, { organization }) {
    const { vaultId } = existingOauth2Credential(organization, oauth2CredentialId);
    return {
      events: [{ type: 'Oauth2CredentialDeleted', data: { oauth2CredentialId, vaultId } }],
      result: { oauth2CredentialId },
    };
  },
});
