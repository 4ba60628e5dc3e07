import { userTagResource } from '../wire/resources.js';
import type { UserTag } from '../domain/organization/tags.js';
import { ListOf } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, PagedResponse } from './define-query.js';
import { oldestFirst, type Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TagShape } from '../wire/shapes.js';

export const userTagsModel: ReadModel = {
  name: 'user-tags',
  version: 2,
  tables: ['user_tags'],
  schema: `
    CREATE TABLE user_tags (
      organization_id TEXT NOT NULL, tag_id TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, tag_id)
    ) WITHOUT ROWID;
    CREATE INDEX user_tags_in_order ON user_tags (organization_id, created, tag_id);`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    const put = (tag: UserTag, created: bigint) =>
      rows.run(
        'INSERT OR REPLACE INTO user_tags VALUES (?, ?, ?, ?)',
        organizationId,
        tag.tagId,
        created,
        JSON.stringify(tag),
      );
    switch (event.type) {
      case 'UserTagCreated':
        return put({ ...event.data, createdAt: at, updatedAt: at }, position);
      case 'UserTagUpdated': {
        const { tagId, tagName } = event.data;
        const row = rows.get(
          'SELECT created, doc FROM user_tags WHERE organization_id = ? AND tag_id = ?',
          organizationId,
          tagId,
        );
        if (row) put({ ...readTag(row['doc']), tagName, updatedAt: at }, BigInt(row['created']!));
        return;
      }
      case 'UserTagDeleted':
        return rows.run(
          'DELETE FROM user_tags WHERE organization_id = ? AND tag_id = ?',
          organizationId,
          event.data.tagId,
        );
    }
  }),
};

const readTag = (doc: unknown): UserTag => JSON.parse(String(doc)) as UserTag;

/** All user tags of an organization in the order of their creation. */
export function userTagsOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<TagShape, Iterable<TagShape>> {
  return oldestFirst(rows, { table: 'user_tags', id: 'tag_id' }, organizationId, options, ({ doc }) =>
    userTagResource(readTag(doc)),
  );
}

class ListUserTagsResponse extends PagedResponse {
  @ListOf(() => TagShape)
  userTags!: readonly TagShape[];
}

export const listUserTags = defineQuery({
  path: 'list_user_tags',
  summary: 'All user tags of an organization.',
  request: ListRequest,
  response: ListUserTagsResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    userTags: await page(userTagsOf(rows, organizationId, paginationOptions)),
  }),
});
