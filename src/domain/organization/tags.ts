import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';
import { existingUser, type UserEvent } from './users.js';
import { put, remove } from './slices.js';

/** A label for users, for use in policies. Each user records their own tags. */
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
    put(organization, 'userTags', data.tagId, { ...data, createdAt: at, updatedAt: at });
  },
  UserTagUpdated(organization, { tagId, tagName }, at) {
    const tag = organization.userTags.get(tagId);
    if (tag) put(organization, 'userTags', tagId, { ...tag, tagName, updatedAt: at });
  },
  UserTagDeleted(organization, { tagId }) {
    remove(organization, 'userTags', tagId);
  },
};

/** The user tag of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingUserTag(organization: OrganizationView, tagId: string): UserTag {
  const tag = organization.userTags.get(tagId);
  if (tag) return tag;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no user tag \`${tagId}\` in organization \`${organization.organizationId}\`: see list_user_tags`,
  );
}

/** Refuses a name that another tag has; `own` is the tag that may keep it. @throws {CoordinatorError} INVALID_ARGUMENT */
export function checkUserTagNameFree(organization: OrganizationView, tagName: string, own?: string): void {
  for (const tag of organization.userTags.values()) {
    if (tag.tagName === tagName && tag.tagId !== own) {
      throw new CoordinatorError(
        'INVALID_ARGUMENT',
        `user tag label must be unique: \`${tagName}\` is taken, it is the name of user tag \`${tag.tagId}\``,
        { category: 'REQUEST_INVALID' },
      );
    }
  }
}

/**
 * The events that add a tag to users or remove it; none for a user who does not change.
 * @throws {CoordinatorError} NOT_FOUND for a user who does not exist
 */
export function userTagMoves(
  organization: OrganizationView,
  tagId: string,
  { add, remove }: { readonly add: readonly string[]; readonly remove: readonly string[] },
): UserEvent[] {
  const moves: UserEvent[] = [];
  for (const userId of add) {
    const { userTags } = existingUser(organization, userId);
    if (!userTags.includes(tagId)) {
      moves.push({ type: 'UserUpdated', data: { userId, userTags: [...userTags, tagId] } });
    }
  }
  for (const userId of remove) {
    const { userTags } = existingUser(organization, userId);
    if (userTags.includes(tagId)) {
      moves.push({ type: 'UserUpdated', data: { userId, userTags: userTags.filter((one) => one !== tagId) } });
    }
  }
  return moves;
}
