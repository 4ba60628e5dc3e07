import { onRampProviderNames } from '../domain/organization/on-ramp-credentials.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Flag, ListOf, Nested, OneOf, Text, Uuid } from '../wire/fields.js';
import { defineQuery, ListRequest, PagedResponse } from './define-query.js';
import { OwnedDocuments } from './owned-documents.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

interface OnRampCredential {
  readonly fiatOnrampCredentialId: string;
  readonly onrampProvider: string;
  readonly projectId?: string | undefined;
  readonly publishableApiKey: string;
  readonly sandboxMode: boolean;
  /** Milliseconds since the epoch, like the other. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

const credentials = new OwnedDocuments<OnRampCredential>('on_ramp_credentials', 'credential_id');

/** Accounts at fiat on-ramps, without their secret keys. */
export const onRampCredentialsModel: ReadModel = {
  name: 'on-ramp-credentials',
  version: 2,
  tables: credentials.tables,
  schema: credentials.schema,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'FiatOnRampCredentialCreated': {
        const { fiatOnRampCredentialId: id, onrampProvider, projectId, publishableApiKey, sandboxMode } = event.data;
        const facts = { fiatOnrampCredentialId: id, onrampProvider, projectId, publishableApiKey, sandboxMode };
        const doc = { ...facts, createdAt: at, updatedAt: at };
        return credentials.put(rows, organizationId, id, position, doc);
      }
      case 'FiatOnRampCredentialUpdated': {
        const { fiatOnRampCredentialId: id, onrampProvider, projectId, publishableApiKey } = event.data;
        const changes = { onrampProvider, projectId, publishableApiKey, updatedAt: at };
        return credentials.change(rows, organizationId, id, changes);
      }
      case 'FiatOnRampCredentialDeleted':
        return credentials.delete(rows, organizationId, event.data.fiatOnRampCredentialId);
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

function credentialResource(organizationId: string, credential: OnRampCredential): FiatOnRampCredentialShape {
  const { projectId, createdAt, updatedAt, ...facts } = credential;
  return {
    ...facts,
    ...(projectId === undefined ? {} : { projectId }),
    organizationId,
    encryptedSecretApiKey: '',
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
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
      credentials.list(rows, organizationId, paginationOptions, (one) => credentialResource(organizationId, one)),
    ),
  }),
});
