import { userTagResource } from '../wire/resources.js';
import type { UserTag } from '../domain/organization/tags.js';
import { ListOf } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, PagedResponse } from './define-query.js';
import { OwnedDocuments } from './owned-documents.js';
import type { Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TagShape } from '../wire/shapes.js';

const userTags = new OwnedDocuments<UserTag>('user_tags', 'tag_id');

export const userTagsModel: ReadModel = {
  name: 'user-tags',
  version: 2,
  tables: userTags.tables,
  schema: userTags.schema,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'UserTagCreated':
        return userTags.put(rows, organizationId, event.data.tagId, position, {
          ...event.data,
          createdAt: at,
          updatedAt: at,
        });
      case 'UserTagUpdated': {
        const { tagId, tagName } = event.data;
        return userTags.change(rows, organizationId, tagId, { tagName, updatedAt: at });
      }
      case 'UserTagDeleted':
        return userTags.delete(rows, organizationId, event.data.tagId);
    }
  }),
};

/** All user tags of an organization in the order of their creation. */
export function userTagsOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<TagShape, Iterable<TagShape>> {
  return userTags.list(rows, organizationId, options, userTagResource);
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
