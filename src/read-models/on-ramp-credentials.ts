import { onRampProviderNames } from '../domain/organization/on-ramp-credentials.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Flag, ListOf, Nested, OneOf, Text, Uuid } from '../wire/fields.js';
import type { Row } from './database.js';
import { defineQuery, ListRequest, PagedResponse } from './define-query.js';
import { oldestFirst } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

/** Accounts at fiat on-ramps, without their secret keys. */
export const onRampCredentialsModel: ReadModel = {
  name: 'on-ramp-credentials',
  version: 2,
  tables: ['on_ramp_credentials'],
  schema: `
    CREATE TABLE on_ramp_credentials (
      organization_id TEXT NOT NULL, credential_id TEXT NOT NULL, provider TEXT NOT NULL, project_id TEXT,
      publishable_api_key TEXT NOT NULL, sandbox_mode INTEGER NOT NULL,
      created INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
      PRIMARY KEY (organization_id, credential_id)
    ) WITHOUT ROWID;
    CREATE INDEX on_ramp_credentials_in_order ON on_ramp_credentials (organization_id, created, credential_id);`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'FiatOnRampCredentialCreated':
        return rows.run(
          'INSERT OR REPLACE INTO on_ramp_credentials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
          organizationId,
          event.data.fiatOnRampCredentialId,
          event.data.onrampProvider,
          event.data.projectId ?? null,
          event.data.publishableApiKey,
          event.data.sandboxMode ? 1 : 0,
          position,
          at,
          at,
        );
      case 'FiatOnRampCredentialUpdated':
        return rows.run(
          `UPDATE on_ramp_credentials SET provider = ?, project_id = ?, publishable_api_key = ?, updated_at = ?
           WHERE organization_id = ? AND credential_id = ?`,
          event.data.onrampProvider,
          event.data.projectId ?? null,
          event.data.publishableApiKey,
          at,
          organizationId,
          event.data.fiatOnRampCredentialId,
        );
      case 'FiatOnRampCredentialDeleted':
        return rows.run(
          'DELETE FROM on_ramp_credentials WHERE organization_id = ? AND credential_id = ?',
          organizationId,
          event.data.fiatOnRampCredentialId,
        );
    }
  }),
};

class FiatOnRampCredentialShape {
  // The clients use this spelling here, and another one in results.
  @Uuid()
  fiatOnrampCredentialId!: string;

  @Uuid()
  organizationId!: string;

  @OneOf(onRampProviderNames, { about: 'As submitted.' })
  onrampProvider!: string;

  @Text({ optional: true })
  projectId?: string;

  @Text()
  publishableApiKey!: string;

  @Text({ about: 'Always empty: the secret keys never leave the vault, not even sealed.' })
  encryptedSecretApiKey!: string;

  @Flag()
  sandboxMode!: boolean;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

function credentialResource(row: Row): FiatOnRampCredentialShape {
  const projectId = row['project_id'];
  return {
    fiatOnrampCredentialId: String(row['credential_id']),
    organizationId: String(row['organization_id']),
    onrampProvider: String(row['provider']),
    ...(projectId === null ? {} : { projectId: String(projectId) }),
    publishableApiKey: String(row['publishable_api_key']),
    encryptedSecretApiKey: '',
    sandboxMode: Number(row['sandbox_mode']) === 1,
    createdAt: timestamp(Number(row['created_at'])),
    updatedAt: timestamp(Number(row['updated_at'])),
  };
}

class ListFiatOnRampCredentialsResponse extends PagedResponse {
  @ListOf(() => FiatOnRampCredentialShape)
  fiatOnRampCredentials!: readonly FiatOnRampCredentialShape[];
}

export const listFiatOnRampCredentials = defineQuery({
  path: 'list_fiat_on_ramp_credentials',
  summary: 'Fiat on-ramp accounts, oldest first, without their secret keys.',
  request: ListRequest,
  response: ListFiatOnRampCredentialsResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    fiatOnRampCredentials: await page(
      oldestFirst(
        rows,
        { table: 'on_ramp_credentials', id: 'credential_id' },
        organizationId,
        paginationOptions,
        credentialResource,
      ),
    ),
  }),
});
