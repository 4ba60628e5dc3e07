import { CoordinatorError } from '../domain/errors.js';
import { CURVES, type Curve } from '../domain/key-formats.js';
import type { PrivateKey, PrivateKeyTag } from '../domain/organization/private-keys.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Flag, ListOf, Nested, OneOf, Text, TextList, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { oldestFirst, type Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TagShape, TimestampShape } from '../wire/shapes.js';

export const privateKeysModel: ReadModel = {
  name: 'private-keys',
  version: 2,
  tables: ['private_keys', 'private_key_tags'],
  schema: `
    CREATE TABLE private_keys (
      organization_id TEXT NOT NULL, private_key_id TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, private_key_id)
    ) WITHOUT ROWID;
    CREATE INDEX private_keys_in_order ON private_keys (organization_id, created, private_key_id);
    CREATE TABLE private_key_tags (
      organization_id TEXT NOT NULL, tag_id TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, tag_id)
    ) WITHOUT ROWID;
    CREATE INDEX private_key_tags_in_order ON private_key_tags (organization_id, created, tag_id);`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    const putKey = (key: PrivateKey, created: bigint) =>
      rows.run(
        'INSERT OR REPLACE INTO private_keys VALUES (?, ?, ?, ?)',
        organizationId,
        key.privateKeyId,
        created,
        JSON.stringify(key),
      );
    const changeKey = (privateKeyId: string, changes: Partial<PrivateKey>) => {
      const row = keyRow(rows, organizationId, privateKeyId);
      if (row) putKey({ ...readKey(row['doc']), ...changes, updatedAt: at }, BigInt(row['created']!));
    };
    const putTag = (tag: PrivateKeyTag, created: bigint) =>
      rows.run(
        'INSERT OR REPLACE INTO private_key_tags VALUES (?, ?, ?, ?)',
        organizationId,
        tag.tagId,
        created,
        JSON.stringify(tag),
      );
    switch (event.type) {
      case 'PrivateKeyCreated':
        return putKey({ ...event.data, exported: false, createdAt: at, updatedAt: at }, position);
      case 'PrivateKeyUpdated':
        return changeKey(event.data.privateKeyId, { privateKeyTags: event.data.privateKeyTags });
      case 'PrivateKeyExported':
        return changeKey(event.data.privateKeyId, { exported: true });
      case 'PrivateKeyDeleted':
        return rows.run(
          'DELETE FROM private_keys WHERE organization_id = ? AND private_key_id = ?',
          organizationId,
          event.data.privateKeyId,
        );
      case 'PrivateKeyTagCreated':
        return putTag({ ...event.data, createdAt: at, updatedAt: at }, position);
      case 'PrivateKeyTagUpdated': {
        const { tagId, tagName } = event.data;
        const row = rows.get(
          'SELECT created, doc FROM private_key_tags WHERE organization_id = ? AND tag_id = ?',
          organizationId,
          tagId,
        );
        if (row) putTag({ ...readTag(row['doc']), tagName, updatedAt: at }, BigInt(row['created']!));
        return;
      }
      case 'PrivateKeyTagDeleted':
        return rows.run(
          'DELETE FROM private_key_tags WHERE organization_id = ? AND tag_id = ?',
          organizationId,
          event.data.tagId,
        );
    }
  }),
};

const readKey = (doc: unknown): PrivateKey => JSON.parse(String(doc)) as PrivateKey;
const readTag = (doc: unknown): PrivateKeyTag => JSON.parse(String(doc)) as PrivateKeyTag;

function keyRow(rows: Rows, organizationId: string, privateKeyId: string) {
  return rows.get(
    'SELECT created, doc FROM private_keys WHERE organization_id = ? AND private_key_id = ?',
    organizationId,
    privateKeyId,
  );
}

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

/** Client protocol 6.4. Where it is sealed is not disclosed. */
function privateKeyResource({ vaultId: _vault, createdAt, updatedAt, ...key }: PrivateKey): PrivateKeyShape {
  return { ...key, createdAt: timestamp(createdAt), updatedAt: timestamp(updatedAt) };
}

/** All private keys of an organization as responses show them, in order of creation. */
export function privateKeysOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<PrivateKeyShape, Iterable<PrivateKeyShape>> {
  return oldestFirst(rows, { table: 'private_keys', id: 'private_key_id' }, organizationId, options, ({ doc }) =>
    privateKeyResource(readKey(doc)),
  );
}

/** All private key tags of an organization as responses show them, in order of creation. */
export function privateKeyTagsOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<TagShape, Iterable<TagShape>> {
  return oldestFirst(rows, { table: 'private_key_tags', id: 'tag_id' }, organizationId, options, ({ doc }) =>
    tagResource(readTag(doc)),
  );
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
    const row = keyRow(rows, organizationId, privateKeyId);
    if (!row) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `no private key \`${privateKeyId}\` in organization \`${organizationId}\`: see list_private_keys`,
      );
    }
    return { privateKey: privateKeyResource(readKey(row['doc'])) };
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
