import type { DomainEvent, Evolvers } from './event.js';

/** A label for users, to be named in policies. Which users carry it is a fact of each user. */
export interface UserTag {
  readonly tagId: string;
  readonly tagName: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type TagEvent =
  | DomainEvent<'UserTagCreated', { tagId: string; tagName: string }>
  | DomainEvent<'UserTagUpdated', { tagId: string; tagName: string }>
  | DomainEvent<'UserTagDeleted', { tagId: string }>;

export const evolveTags: Evolvers<TagEvent> = {
  UserTagCreated(organization, data, at) {
    organization.userTags.set(data.tagId, { ...data, createdAt: at, updatedAt: at });
  },
  UserTagUpdated(organization, { tagId, tagName }, at) {
    const tag = organization.userTags.get(tagId);
    if (tag) organization.userTags.set(tagId, { ...tag, tagName, updatedAt: at });
  },
  UserTagDeleted(organization, { tagId }) {
    organization.userTags.delete(tagId);
  },
};
