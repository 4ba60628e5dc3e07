import { CoordinatorError } from '../domain/errors.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { ListOf, Nested, Text, Uuid } from '../wire/fields.js';
import type { Row, Rows } from './database.js';
import { defineQuery, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { oldestFirst } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

/** Applications at OAuth 2.0 providers, without their secrets. */
export const oauth2CredentialsModel: ReadModel = {
  name: 'oauth2-credentials',
  version: 2,
  tables: ['oauth2_credentials'],
  schema: `
    CREATE TABLE oauth2_credentials (
      organization_id TEXT NOT NULL, oauth2_credential_id TEXT NOT NULL, provider TEXT NOT NULL, client_id TEXT NOT NULL,
      created INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
      PRIMARY KEY (organization_id, oauth2_credential_id)
    ) WITHOUT ROWID;
    CREATE INDEX oauth2_credentials_in_order ON oauth2_credentials (organization_id, created, oauth2_credential_id);`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'Oauth2CredentialCreated':
        return rows.run(
          'INSERT OR REPLACE INTO oauth2_credentials VALUES (?, ?, ?, ?, ?, ?, ?)',
          organizationId,
          event.data.oauth2CredentialId,
          event.data.provider,
          event.data.clientId,
          position,
          at,
          at,
        );
      case 'Oauth2CredentialUpdated':
        return rows.run(
          `UPDATE oauth2_credentials SET provider = ?, client_id = ?, updated_at = ?
           WHERE organization_id = ? AND oauth2_credential_id = ?`,
          event.data.provider,
          event.data.clientId,
          at,
          organizationId,
          event.data.oauth2CredentialId,
        );
      case 'Oauth2CredentialDeleted':
        return rows.run(
          'DELETE FROM oauth2_credentials WHERE organization_id = ? AND oauth2_credential_id = ?',
          organizationId,
          event.data.oauth2CredentialId,
        );
    }
  }),
};

class Oauth2CredentialShape {
  @Uuid()
  oauth2CredentialId!: string;

  @Uuid()
  organizationId!: string;

  @Text()
  provider!: string;

  @Text()
  clientId!: string;

  @Text({ about: 'Always empty: the secret never leaves the vault, not even sealed.' })
  encryptedClientSecret!: string;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

function credentialResource(row: Row): Oauth2CredentialShape {
  return {
    oauth2CredentialId: String(row['oauth2_credential_id']),
    organizationId: String(row['organization_id']),
    provider: String(row['provider']),
    clientId: String(row['client_id']),
    encryptedClientSecret: '',
    createdAt: timestamp(Number(row['created_at'])),
    updatedAt: timestamp(Number(row['updated_at'])),
  };
}

class ListOauth2CredentialsResponse extends PagedResponse {
  @ListOf(() => Oauth2CredentialShape)
  oauth2Credentials!: readonly Oauth2CredentialShape[];
}

export const listOauth2Credentials = defineQuery({
  path: 'list_oauth2_credentials',
  summary: 'OAuth 2.0 applications, oldest first.',
  request: ListRequest,
  response: ListOauth2CredentialsResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    oauth2Credentials: await page(
      oldestFirst(
        rows,
        { table: 'oauth2_credentials', id: 'oauth2_credential_id' },
        organizationId,
        paginationOptions,
        credentialResource,
      ),
    ),
  }),
});

class GetOauth2CredentialRequest extends OrganizationRequest {
  @Uuid({ about: 'The application.' })
  oauth2CredentialId!: string;
}

class GetOauth2CredentialResponse {
  @Nested(() => Oauth2CredentialShape)
  oauth2Credential!: Oauth2CredentialShape;
}

export const getOauth2Credential = defineQuery({
  path: 'get_oauth2_credential',
  summary: 'One OAuth 2.0 application.',
  request: GetOauth2CredentialRequest,
  response: GetOauth2CredentialResponse,
  answer: ({ organizationId, oauth2CredentialId }, { rows }) => ({
    oauth2Credential: credentialResource(credentialRow(rows, organizationId, oauth2CredentialId)),
  }),
});

/** @throws {CoordinatorError} NOT_FOUND OAUTH2_CREDENTIAL_NOT_FOUND */
function credentialRow(rows: Rows, organizationId: string, oauth2CredentialId: string): Row {
  const row = rows.get(
    'SELECT * FROM oauth2_credentials WHERE organization_id = ? AND oauth2_credential_id = ?',
    organizationId,
    oauth2CredentialId,
  );
  if (row) return row;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no OAuth 2.0 credential \`${oauth2CredentialId}\` in organization \`${organizationId}\``,
    { category: 'OAUTH2_CREDENTIAL_NOT_FOUND' },
  );
}
