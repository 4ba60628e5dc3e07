import { contactKey } from '../contact-key.js';
import { contactName, type ContactKind } from './contacts.js';
import { provedHere } from './claims.js';
import type { Authenticator, ApiKey, OauthProvider } from './credentials.js';
import { oauthIdentity } from './oauth-identity.js';
import { CoordinatorError } from '../errors.js';
import type { Limits } from './limits.js';
import type { Organization, OrganizationView } from './organization.js';
import type { DomainEvent, Evolvers } from './event.js';
import { put, remove } from './slices.js';

/**
 * A member of an organization. Times are milliseconds since the epoch. Never changed in place: each event creates a new
 * one.
 */
export interface User {
  readonly userId: string;
  readonly userName: string;
  readonly userEmail?: string;
  /** E.164. */
  readonly userPhoneNumber?: string;
  /** Set once a verification token has proved that the user receives what is sent there. */
  readonly emailVerified?: true;
  readonly phoneNumberVerified?: true;
  /** Set when the parent's members have released it: nobody can log in by it until it is proved again. */
  readonly emailReleased?: true;
  readonly phoneNumberReleased?: true;
  /** Ids of user tags. */
  readonly userTags: readonly string[];
  readonly apiKeys: readonly ApiKey[];
  readonly authenticators: readonly Authenticator[];
  readonly oauthProviders: readonly OauthProvider[];
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type UserEvent =
  | DomainEvent<
      'UserCreated',
      { userId: string; userName: string; userEmail?: string; userPhoneNumber?: string; userTags: readonly string[] }
    >
  | DomainEvent<
      'UserUpdated',
      {
        userId: string;
        userName?: string;
        /** An empty string removes the address. */
        userEmail?: string;
        /** An empty string removes the number. */
        userPhoneNumber?: string;
        userTags?: readonly string[];
      }
    >
  /**
   * The user's contact of that kind was proved, by a token of `issuerOrganizationId`: this organization or its parent.
   */
  | DomainEvent<
      'UserContactVerified',
      { userId: string; contact: 'email' | 'phone-number'; issuerOrganizationId: string }
    >
  /** The parent's members know that the user's contact of that kind now belongs to someone else (docs/adr/0016). */
  | DomainEvent<'UserContactReleased', { userId: string; contact: ContactKind }>
  | DomainEvent<'UserDeleted', { userId: string }>;

export const evolveUsers: Evolvers<UserEvent> = {
  UserCreated(organization, data, at) {
    put(organization, 'users', data.userId, userCreated(data, at));
  },
  UserUpdated(organization, data, at) {
    changeUser(organization, data.userId, (user) => userUpdated(user, data, at));
  },
  UserContactVerified(organization, data, at) {
    provedHere(organization);
    changeUser(organization, data.userId, (user) => contactVerified(user, data, at));
  },
  UserContactReleased(organization, data, at) {
    changeUser(organization, data.userId, (user) => contactReleased(user, data, at));
  },
  UserDeleted(organization, { userId }) {
    const user = organization.users.get(userId);
    if (!user) return;
    for (const { publicKey } of user.apiKeys) remove(organization, 'apiKeyOwners', publicKey);
    for (const { credentialId } of user.authenticators) remove(organization, 'authenticatorOwners', credentialId);
    for (const provider of user.oauthProviders) remove(organization, 'oauthOwners', oauthIdentity(provider));
    remove(organization, 'users', userId);
  },
};

/** The initial state of a user; shared with the read model so that the two cannot disagree. */
export function userCreated(data: Extract<UserEvent, { type: 'UserCreated' }>['data'], at: number): User {
  return { ...data, apiKeys: [], authenticators: [], oauthProviders: [], createdAt: at, updatedAt: at };
}

/** The effect of an update on a user: omitted members stay, an empty string clears. */
export function userUpdated(user: User, data: Extract<UserEvent, { type: 'UserUpdated' }>['data'], at: number): User {
  const { userEmail, userPhoneNumber, emailVerified, phoneNumberVerified, emailReleased, phoneNumberReleased } = user;
  const email = data.userEmail ?? userEmail;
  const phone = data.userPhoneNumber ?? userPhoneNumber;
  // The proof was of the old contact.
  const isEmailProved = emailVerified && email === userEmail;
  const isPhoneProved = phoneNumberVerified && phone === userPhoneNumber;
  return {
    userId: user.userId,
    userName: data.userName ?? user.userName,
    userTags: data.userTags ?? user.userTags,
    apiKeys: user.apiKeys,
    authenticators: user.authenticators,
    oauthProviders: user.oauthProviders,
    createdAt: user.createdAt,
    updatedAt: at,
    ...(email ? { userEmail: email } : {}),
    ...(phone ? { userPhoneNumber: phone } : {}),
    ...(isEmailProved ? { emailVerified } : {}),
    ...(isPhoneProved ? { phoneNumberVerified } : {}),
    ...(emailReleased && isSameContact(email, userEmail) ? { emailReleased } : {}),
    ...(phoneNumberReleased && isSameContact(phone, userPhoneNumber) ? { phoneNumberReleased } : {}),
  };
}

/** The effect of a proof of contact on a user. */
export function contactVerified(
  user: User,
  { contact }: Extract<UserEvent, { type: 'UserContactVerified' }>['data'],
  at: number,
): User {
  const { emailReleased, phoneNumberReleased, ...rest } = user;
  return contact === 'email'
    ? { ...rest, emailVerified: true, ...(phoneNumberReleased && { phoneNumberReleased }), updatedAt: at }
    : { ...rest, phoneNumberVerified: true, ...(emailReleased && { emailReleased }), updatedAt: at };
}

/** The effect of releasing a user's contact: it stays on record, but is useless. */
export function contactReleased(
  user: User,
  { contact }: Extract<UserEvent, { type: 'UserContactReleased' }>['data'],
  at: number,
): User {
  const { emailVerified, phoneNumberVerified, ...rest } = user;
  return contact === 'email'
    ? { ...rest, ...(phoneNumberVerified && { phoneNumberVerified }), emailReleased: true, updatedAt: at }
    : { ...rest, ...(emailVerified && { emailVerified }), phoneNumberReleased: true, updatedAt: at };
}

/** Replaces one user in the accumulator; a deleted user is ignored, because history may mention it later. */
export function changeUser(organization: Organization, userId: string, change: (user: User) => User): void {
  const user = organization.users.get(userId);
  if (user) put(organization, 'users', userId, change(user));
}

function isSameContact(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && contactKey(one) === contactKey(other);
}

/** Users with a contact that is not released. */
export function usersOfContact({ users }: OrganizationView, kind: ContactKind, contact: string): User[] {
  return [...users.values()].filter((user) => {
    const held = kind === 'email' ? user.userEmail : user.userPhoneNumber;
    const isReleased = kind === 'email' ? user.emailReleased : user.phoneNumberReleased;
    return isSameContact(held, contact) && isReleased !== true;
  });
}

/**
 * The user who is reached by a contact that is not proved by the request, if any. If several have it, those count who have
 * proved it, then those of whom the parent's members asserted it, then members of the root quorum: whoever may give a user
 * a contact must not shut out another by giving away theirs.
 * @throws {CoordinatorError} FAILED_PRECONDITION if it is still unknown which of several is meant
 */
export function userReachedBy(organization: OrganizationView, kind: ContactKind, contact: string): User | undefined {
  const having = usersOfContact(organization, kind, contact);
  const ways = ['verified', 'asserted', 'root-quorum'] as const;
  const narrowed = ways.map((way) => having.filter(countsAs(way, organization, kind)));
  return theOnly(narrowed.find((users) => users.length > 0) ?? having, organization, contact);
}

/**
 * The user with a contact, if any. `only` restricts it to contacts that were proved, or that the parent's own members
 * asserted when they founded the organization.
 * @throws {CoordinatorError} FAILED_PRECONDITION if several have it, because it is unknown which of them is meant
 */
export function userOfContact(
  organization: OrganizationView,
  kind: ContactKind,
  contact: string,
  only: 'verified' | 'asserted',
): User | undefined {
  const having = usersOfContact(organization, kind, contact);
  return theOnly(having.filter(countsAs(only, organization, kind)), organization, contact);
}

/** Whether it is known in that way that a contact is the user's who has it. */
function countsAs(
  only: 'verified' | 'asserted' | 'root-quorum',
  { foundingContacts, rootQuorum }: OrganizationView,
  kind: ContactKind,
): (user: User) => boolean {
  switch (only) {
    case 'verified':
      return (user) => (kind === 'email' ? user.emailVerified : user.phoneNumberVerified) === true;
    case 'asserted':
      return ({ userId }) => foundingContacts.has(contactName(userId, kind));
    case 'root-quorum':
      return ({ userId }) => rootQuorum.userIds.includes(userId);
  }
}

function theOnly(users: readonly User[], { organizationId }: OrganizationView, contact: string): User | undefined {
  if (users.length <= 1) return users[0];
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `${users.length} users of organization \`${organizationId}\` have the contact \`${contact}\`: ` +
      'a login by contact requires that exactly one user has it',
  );
}

/** @throws {CoordinatorError} RESOURCE_EXHAUSTED if the organization may not have so many more */
export function checkRoomForUsers({ users }: OrganizationView, more: number, limits: Limits): void {
  if (users.size + more <= limits.users) return;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `an organization may have ${limits.users} users: it has ${users.size}, and this request adds ${more}; ` +
      'delete some with delete_users first, or create a sub-organization for them',
  );
}

/** The user of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingUser(organization: OrganizationView, userId: string): User {
  const user = organization.users.get(userId);
  if (user) return user;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no user \`${userId}\` in organization \`${organization.organizationId}\`: see list_users`,
  );
}
