import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

interface Oauth2CredentialFacts {
  readonly oauth2CredentialId: string;
  readonly provider: string;
  readonly clientId: string;
  /** The vault with the client secret. */
  readonly vaultId: string;
}

/** An application that an organization has registered at an OAuth 2.0 provider. */
export interface Oauth2Credential extends Oauth2CredentialFacts {
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type Oauth2CredentialEvent =
  | DomainEvent<'Oauth2CredentialCreated', Oauth2CredentialFacts>
  /** `replacedVaultId` held the replaced secret. */
  | DomainEvent<'Oauth2CredentialUpdated', Oauth2CredentialFacts & { replacedVaultId: string }>
  | DomainEvent<'Oauth2CredentialDeleted', { oauth2CredentialId: string; vaultId: string }>;

export const evolveOauth2Credentials: Evolvers<Oauth2CredentialEvent> = {
  Oauth2CredentialCreated(organization, data, at) {
    put(organization, 'oauth2Credentials', data.oauth2CredentialId, { ...data, createdAt: at, updatedAt: at });
  },
  Oauth2CredentialUpdated(organization, { replacedVaultId: _replaced, ...data }, at) {
    const known = organization.oauth2Credentials.get(data.oauth2CredentialId);
    if (known) put(organization, 'oauth2Credentials', data.oauth2CredentialId, { ...known, ...data, updatedAt: at });
  },
  Oauth2CredentialDeleted(organization, { oauth2CredentialId }) {
    remove(organization, 'oauth2Credentials', oauth2CredentialId);
  },
};

/** The OAuth 2.0 credential of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingOauth2Credential(organization: OrganizationView, id: string): Oauth2Credential {
  const found = organization.oauth2Credentials.get(id);
  if (found) return found;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no OAuth 2.0 credential \`${id}\` in organization \`${organization.organizationId}\`: ` +
      'see list_oauth2_credentials',
    { category: 'OAUTH2_CREDENTIAL_NOT_FOUND' },
  );
}
