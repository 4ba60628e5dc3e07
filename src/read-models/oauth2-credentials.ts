import { CoordinatorError } from '../domain/errors.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { ListOf, Nested, Text, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { OwnedDocuments } from './owned-documents.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

interface Oauth2Credential {
  readonly oauth2CredentialId: string;
  readonly provider: string;
  readonly clientId: string;
  /** Milliseconds since the epoch, like the other. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

const credentials = new OwnedDocuments<Oauth2Credential>('oauth2_credentials', 'oauth2_credential_id');

/** Applications at OAuth 2.0 providers, without their secrets. */
export const oauth2CredentialsModel: ReadModel = {
  name: 'oauth2-credentials',
  version: 2,
  tables: credentials.tables,
  schema: credentials.schema,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'Oauth2CredentialCreated': {
        const { oauth2CredentialId, provider, clientId } = event.data;
        const doc = { oauth2CredentialId, provider, clientId, createdAt: at, updatedAt: at };
        return credentials.put(rows, organizationId, oauth2CredentialId, position, doc);
      }
      case 'Oauth2CredentialUpdated': {
        const { oauth2CredentialId, provider, clientId } = event.data;
        return credentials.change(rows, organizationId, oauth2CredentialId, { provider, clientId, updatedAt: at });
      }
      case 'Oauth2CredentialDeleted':
        return credentials.delete(rows, organizationId, event.data.oauth2CredentialId);
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

function credentialResource(organizationId: string, credential: Oauth2Credential): Oauth2CredentialShape {
  const { createdAt, updatedAt, ...facts } = credential;
  return {
    ...facts,
    organizationId,
    encryptedClientSecret: '',
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
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
      credentials.list(rows, organizationId, paginationOptions, (one) => credentialResource(organizationId, one)),
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
    oauth2Credential: credentialResource(organizationId, credentialOf(rows, organizationId, oauth2CredentialId)),
  }),
});

/** @throws {CoordinatorError} NOT_FOUND OAUTH2_CREDENTIAL_NOT_FOUND */
function credentialOf(rows: Rows, organizationId: string, oauth2CredentialId: string): Oauth2Credential {
  const credential = credentials.get(rows, organizationId, oauth2CredentialId);
  if (credential) return credential;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no OAuth 2.0 credential \`${oauth2CredentialId}\` in organization \`${organizationId}\``,
    { category: 'OAUTH2_CREDENTIAL_NOT_FOUND' },
  );
}
