import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { Hex, Text } from '../../wire/fields.js';

/** An application at an OAuth 2.0 provider. */
export class Oauth2CredentialParams {
  @Text({
    min: 1,
    max: 64,
    about: 'OAUTH2_PROVIDER_X, OAUTH2_PROVIDER_DISCORD, or one defined in the setting OAUTH2_PROVIDERS.',
  })
  provider!: string;

  @Text({ min: 1, max: 255, about: 'The id of the application at the provider.' })
  clientId!: string;

  @Hex({ max: 8_192, about: 'Its secret, sealed to `oauthSecretEncryption` from /public/v1/discovery/keys.' })
  encryptedClientSecret!: string;
}

/**
 * Refuses an application that already exists, because logins find it by provider and client id. `except` is the one
 * being changed.
 * @throws {CoordinatorError} INVALID_ARGUMENT, ALREADY_EXISTS
 */
export function checkApplicationNew(
  { oauth2Credentials }: OrganizationView,
  { provider, clientId }: Oauth2CredentialParams,
  except?: string,
): void {
  // It becomes the audience of tokens, which must be readable in errors and logs.
  if (/[\p{Cc}\p{Cs}]/u.test(clientId))
    throw invalidField('parameters.clientId', 'must not contain control characters');
  for (const { oauth2CredentialId, ...known } of oauth2Credentials.values()) {
    if (oauth2CredentialId === except || known.provider !== provider || known.clientId !== clientId) continue;
    throw new CoordinatorError(
      'ALREADY_EXISTS',
      `OAuth 2.0 credential \`${oauth2CredentialId}\` already exists for client id \`${clientId}\` of ${provider}: ` +
        'change it with update_oauth2_credential',
    );
  }
}
