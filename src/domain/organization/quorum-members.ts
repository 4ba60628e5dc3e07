import { CoordinatorError } from '../errors.js';
import { additionsTo } from './additions.js';
import { contactName, type ContactKind } from './contacts.js';
import type { CredentialEvent } from './credentials.js';
import type { OrganizationEvent, OrganizationView } from './organization.js';
import { existingUser, type User, type UserEvent } from './users.js';

/**
 * Members of the root quorum are theirs alone (R2): only they themselves or the quorum change how they log in, whatever
 * policies allow. Everything that a decision is about to record is checked here, so that no verb can forget to.
 */

/** On whose authority a decision rests. */
export interface Word {
  /** The organization's own root quorum approved, not its parent's. */
  readonly isRootQuorums: boolean;
  /** Users of the organization who submitted or approved it. */
  readonly userIds: readonly string[];
}

/** Who proved to be which user without a credential: a login. The key that it yields is that user's own doing. */
export interface Login {
  readonly userId: string;
  readonly by: ContactKind | 'identity';
}

/** Events that name a user: a new one must state below whether it changes how the user logs in. */
type AboutUsers =
  UserEvent['type'] | CredentialEvent['type'] | Extract<OrganizationEvent, { data: { userId: string } }>['type'];

/** The part of an event about a user, recorded or planned, that says whether it changes how the user logs in. */
export interface UserTouched {
  readonly type: AboutUsers;
  readonly data: { readonly userId: string; readonly userEmail?: string; readonly userPhoneNumber?: string };
}

/** For each, whether it changes a credential, contact or identity of a user, or deletes the user. */
const changesWaysIn: { readonly [Type in AboutUsers]: (data: UserTouched['data']) => boolean } = {
  UserCreated: () => false,
  UserUpdated: ({ userEmail, userPhoneNumber }) => userEmail !== undefined || userPhoneNumber !== undefined,
  UserContactVerified: () => true,
  // The parent's decision about its own look-ups and codes (R4): the contact stays, and gives nobody anything.
  UserContactReleased: () => false,
  UserDeleted: () => true,
  ApiKeyCreated: () => true,
  ApiKeyDeleted: () => true,
  AuthenticatorCreated: () => true,
  AuthenticatorDeleted: () => true,
  OauthProviderCreated: () => true,
  OauthProviderDeleted: () => true,
  // Separate events create and end the proxy's user.
  AuthProxyEnabled: () => false,
  // Nobody yet.
  InvitationCreated: () => false,
  ImportStarted: () => false,
};

/**
 * The user whose ways of logging in an event changes, if it does. Verbs that know in advance what they record about
 * whom are also checked, so that nothing is prepared in vain, and the activity can wait for the member.
 */
export function whoseWaysIn({ type, data }: UserTouched): string | undefined {
  return changesWaysIn[type](data) ? data.userId : undefined;
}

/**
 * Refuses events that would change how a member of the root quorum logs in, on the authority of others; and a new
 * member who holds what others have added.
 * @throws {CoordinatorError} PERMISSION_DENIED, FAILED_PRECONDITION
 */
export function checkQuorumMembers(
  organization: OrganizationView,
  events: readonly OrganizationEvent[],
  word: Word,
  login?: Login,
): void {
  for (const event of events) {
    if (event.type === 'RootQuorumUpdated') checkNewMembers(organization, event.data.userIds);
    if (!changesAUser(event) || mayChange(organization, event.data.userId, word)) continue;
    const { userId } = event.data;
    if (login?.userId !== userId) throw theirsAlone(userId);
    const member = existingUser(organization, userId);
    if (!isProved(organization, member, login)) throw contactUnproved(member, login);
    if (!isOfLogin(event, member, login)) throw theirsAlone(userId);
  }
}

/** Whether an event changes nothing but a user's own account, credentials, tags or membership in the root quorum. */
export function isOnlyAbout(
  userId: string,
  event: OrganizationEvent,
  { imports, rootQuorum }: OrganizationView,
): boolean {
  if (event.type === 'ImportClosed') return imports.get(event.data.importId)?.userId === userId;
  if (event.type !== 'RootQuorumUpdated') return isAboutAUser(event) && event.data.userId === userId;
  const { threshold, userIds } = event.data;
  const isChanged = (one: string) => userIds.includes(one) !== rootQuorum.userIds.includes(one);
  return threshold === rootQuorum.threshold && [...userIds, ...rootQuorum.userIds].filter(isChanged).join() === userId;
}

/** Whether that authority suffices to change how the user logs in, as far as this rule is concerned. */
export function mayChange({ rootQuorum }: OrganizationView, userId: string, { isRootQuorums, userIds }: Word): boolean {
  return isRootQuorums || !rootQuorum.userIds.includes(userId) || userIds.includes(userId);
}

/** The refusal of a change that only the member, or the quorum, can make. */
export function theirsAlone(userId: string): CoordinatorError {
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `user \`${userId}\` is a member of the root quorum: only the user or the root quorum can change their credentials, contacts and identities, ` +
      'whatever policies allow; have the user or a member of the root quorum send the request',
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

type EventAboutUser = Extract<OrganizationEvent, { type: AboutUsers }>;

function isAboutAUser(event: OrganizationEvent): event is EventAboutUser {
  return Object.hasOwn(changesWaysIn, event.type);
}

function changesAUser(event: OrganizationEvent): event is EventAboutUser {
  return isAboutAUser(event) && whoseWaysIn(event) !== undefined;
}

/**
 * Whether a login proves the member: by an identity, by a contact that the member proved before, or by one that the
 * parent's own members asserted when they founded the organization.
 */
function isProved({ foundingContacts }: OrganizationView, member: User, { by }: Login): boolean {
  if (by === 'identity') return true;
  const isVerified = by === 'email' ? member.emailVerified : member.phoneNumberVerified;
  return isVerified === true || foundingContacts.has(contactName(member.userId, by));
}

/**
 * A login adds an expiring key, for which other expiring keys make room; proves the contact that it was made by; and
 * links the identity that the proved address vouches for.
 */
function isOfLogin(event: EventAboutUser, { apiKeys, emailVerified }: User, { by }: Login): boolean {
  switch (event.type) {
    case 'UserContactVerified':
      return event.data.contact === by;
    case 'ApiKeyCreated':
      return event.data.expirationSeconds !== undefined;
    case 'ApiKeyDeleted': {
      const { apiKeyId } = event.data;
      return apiKeys.some((key) => key.apiKeyId === apiKeyId && key.expirationSeconds !== undefined);
    }
    case 'OauthProviderCreated':
      return by === 'email' && emailVerified === true;
    default:
      return false;
  }
}

function contactUnproved({ userId }: User, { by }: Login): CoordinatorError {
  const [contact, verb] =
    by === 'email' ? ['e-mail address', 'update_user_email'] : ['phone number', 'update_user_phone_number'];
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `the ${contact} of user \`${userId}\`, who is a member of the root quorum, was never verified, so nobody can log in with it: ` +
      `have the user verify it with ${verb} and a verificationToken`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

/** @throws {CoordinatorError} FAILED_PRECONDITION that names what has to be deleted first */
function checkNewMembers(organization: OrganizationView, userIds: readonly string[]): void {
  for (const userId of userIds) {
    if (organization.rootQuorum.userIds.includes(userId)) continue;
    const [first] = additionsTo(organization, userId);
    if (!first) continue;
    const [name, { what, addedBy }] = first;
    const which = what === 'e-mail address' || what === 'phone number' ? what : `${what} \`${name}\``;
    throw new CoordinatorError(
      'FAILED_PRECONDITION',
      `user \`${userId}\` cannot become a member of the root quorum with the ${which}, which user \`${addedBy}\` added: ` +
        'have it removed, or set again by the user or the root quorum',
    );
  }
}
