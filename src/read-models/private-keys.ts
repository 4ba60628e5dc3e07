import { CoordinatorError } from '../domain/errors.js';
import { CURVES, type Curve } from '../domain/key-formats.js';
import type { PrivateKey, PrivateKeyTag } from '../domain/organization/private-keys.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Flag, ListOf, Nested, OneOf, Text, TextList, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { OwnedDocuments } from './owned-documents.js';
import type { Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TagShape, TimestampShape } from '../wire/shapes.js';

const privateKeys = new OwnedDocuments<PrivateKey>('private_keys', 'private_key_id');
const privateKeyTags = new OwnedDocuments<PrivateKeyTag>('private_key_tags', 'tag_id');

export const privateKeysModel: ReadModel = {
  name: 'private-keys',
  version: 2,
  tables: [...privateKeys.tables, ...privateKeyTags.tables],
  schema: privateKeys.schema + privateKeyTags.schema,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'PrivateKeyCreated': {
        const key = { ...event.data, exported: false, createdAt: at, updatedAt: at };
        return privateKeys.put(rows, organizationId, key.privateKeyId, position, key);
      }
      case 'PrivateKeyUpdated': {
        const { privateKeyId, privateKeyTags: tags } = event.data;
        return privateKeys.change(rows, organizationId, privateKeyId, { privateKeyTags: tags, updatedAt: at });
      }
      case 'PrivateKeyExported':
        return privateKeys.change(rows, organizationId, event.data.privateKeyId, { exported: true, updatedAt: at });
      case 'PrivateKeyDeleted':
        return privateKeys.delete(rows, organizationId, event.data.privateKeyId);
      case 'PrivateKeyTagCreated': {
        const tag = { ...event.data, createdAt: at, updatedAt: at };
        return privateKeyTags.put(rows, organizationId, tag.tagId, position, tag);
      }
      case 'PrivateKeyTagUpdated': {
        const { tagId, tagName } = event.data;
        return privateKeyTags.change(rows, organizationId, tagId, { tagName, updatedAt: at });
      }
      case 'PrivateKeyTagDeleted':
        return privateKeyTags.delete(rows, organizationId, event.data.tagId);
    }
  }),
};

class AddressShape {
  @Text({ about: 'ADDRESS_FORMAT_…' })
  format!: string;

  @Text()
  address!: string;
}

export class PrivateKeyShape {
  @Uuid()
  privateKeyId!: string;

  @Text({ about: 'A compressed point, or the 32 bytes of an Ed25519 key, in hex.' })
  publicKey!: string;

  @Text()
  privateKeyName!: string;

  @OneOf(CURVES)
  curve!: Curve;

  @ListOf(() => AddressShape)
  addresses!: readonly AddressShape[];

  @TextList({ about: 'Ids of private key tags.' })
  privateKeyTags!: readonly string[];

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;

  @Flag({ about: 'Whether it has been exported.' })
  exported!: boolean;

  @Flag({ about: 'Whether it was imported.' })
  imported!: boolean;
}

/** docs/protocol.md, users and resources. Where it is sealed is not disclosed. */
function privateKeyResource({ vaultId: _vault, createdAt, updatedAt, ...key }: PrivateKey): PrivateKeyShape {
  return { ...key, createdAt: timestamp(createdAt), updatedAt: timestamp(updatedAt) };
}

/** All private keys of an organization as responses show them, in order of creation. */
export function privateKeysOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<PrivateKeyShape, Iterable<PrivateKeyShape>> {
  return privateKeys.list(rows, organizationId, options, privateKeyResource);
}

/** All private key tags of an organization as responses show them, in order of creation. */
export function privateKeyTagsOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<TagShape, Iterable<TagShape>> {
  return privateKeyTags.list(rows, organizationId, options, tagResource);
}

function tagResource({ tagId, tagName, createdAt, updatedAt }: PrivateKeyTag): TagShape {
  const times = { createdAt: timestamp(createdAt), updatedAt: timestamp(updatedAt) };
  return { tagId, tagName, tagType: 'TAG_TYPE_PRIVATE_KEY', ...times };
}

class PrivateKeyRequest extends OrganizationRequest {
  @Uuid()
  privateKeyId!: string;
}

class GetPrivateKeyResponse {
  @Nested(() => PrivateKeyShape)
  privateKey!: PrivateKeyShape;
}

export const getPrivateKey = defineQuery({
  path: 'get_private_key',
  summary: 'One private key: its public key, addresses and tags.',
  request: PrivateKeyRequest,
  response: GetPrivateKeyResponse,
  answer({ organizationId, privateKeyId }, { rows }) {
    const key = privateKeys.get(rows, organizationId, privateKeyId);
    if (!key) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `no private key \`${privateKeyId}\` in organization \`${organizationId}\`: see list_private_keys`,
      );
    }
    return { privateKey: privateKeyResource(key) };
  },
});

class ListPrivateKeysResponse extends PagedResponse {
  @ListOf(() => PrivateKeyShape, { max: 1_000 })
  privateKeys!: readonly PrivateKeyShape[];
}

export const listPrivateKeys = defineQuery({
  path: 'list_private_keys',
  summary: 'All private keys of an organization, oldest first.',
  request: ListRequest,
  response: ListPrivateKeysResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    privateKeys: await page(privateKeysOf(rows, organizationId, paginationOptions)),
  }),
});

class ListPrivateKeyTagsResponse extends PagedResponse {
  @ListOf(() => TagShape)
  privateKeyTags!: readonly TagShape[];
}

export const listPrivateKeyTags = defineQuery({
  path: 'list_private_key_tags',
  summary: 'All private key tags of an organization, oldest first.',
  request: ListRequest,
  response: ListPrivateKeyTagsResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    privateKeyTags: await page(privateKeyTagsOf(rows, organizationId, paginationOptions)),
  }),
});
