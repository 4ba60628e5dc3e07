import { checkLimit } from '../../domain/organization/limits.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkApplicationNew, Oauth2CredentialParams } from './oauth2-params.js';

class CreateOauth2CredentialIntent extends Oauth2CredentialParams {}

class CreateOauth2CredentialResult {
  @Uuid()
  oauth2CredentialId!: string;
}

/** Registers an application at an OAuth 2.0 provider, with its secret in the vault. */
export const createOauth2Credential = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL',
  summary: 'Registers an OAuth 2.0 application.',
  intent: CreateOauth2CredentialIntent,
  result: CreateOauth2CredentialResult,
  policy: { resource: 'AUTH', action: 'CREATE' },

  check(intent, organization, { limits }) {
    checkLimit(limits, 'oauth2Credentials', organization.oauth2Credentials.size, 1);
    checkApplicationNew(organization, intent);
  },

  prepare({ provider, encryptedClientSecret }, { oauth2, oauthSecrets }, { organization }) {
    oauth2.checkProvider(provider);
    return oauthSecrets.keep(organization.organizationId, encryptedClientSecret);
  },

  recall: (_intent, recorded) => recorded.first('Oauth2CredentialCreated').vaultId,

  decide({ provider, clientId }, { newId }, vaultId) {
    const oauth2CredentialId = newId();
    return {
      events: [{ type: 'Oauth2CredentialCreated', data: { oauth2CredentialId, provider, clientId, vaultId } }],
      result: { oauth2CredentialId },
    };
  },
});
