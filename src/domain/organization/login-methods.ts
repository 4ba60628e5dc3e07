import { contactName } from './contacts.js';
import { CoordinatorError } from '../errors.js';
import { isExpired } from './credentials.js';
import { emptyOrganization, evolve, type OrganizationEvent, type OrganizationView } from './organization.js';
import type { RootQuorum } from './settings.js';
import type { User } from './users.js';

/** Events that may remove a member's way of logging in, or the membership in the root quorum. */
const taking: ReadonlySet<OrganizationEvent['type']> = new Set([
  'ApiKeyDeleted',
  'AuthenticatorDeleted',
  'OauthProviderDeleted',
  'UserUpdated',
  'UserContactReleased',
  'UserDeleted',
  'RootQuorumUpdated',
  'OrganizationFeatureRemoved',
]);

function mayTake(event: OrganizationEvent): boolean {
  // Most updates of users change names and tags; large organizations need not copy all users for those.
  if (event.type === 'UserUpdated')
    return event.data.userEmail !== undefined || event.data.userPhoneNumber !== undefined;
  return taking.has(event.type);
}

/** The relevant part of everything that one decision may record. */
const telling: ReadonlySet<OrganizationEvent['type']> = new Set([
  ...taking,
  'UserCreated',
  'UserContactVerified',
  'ApiKeyCreated',
  'AuthenticatorCreated',
  'OauthProviderCreated',
  'OrganizationFeatureSet',
]);

/**
 * Refuses events after which the root quorum would be out of reach, because nobody could undo them: too few of its
 * members could sign, now or once expiring keys have expired. A quorum that was out of reach before may stay so.
 * @throws {CoordinatorError} FAILED_PRECONDITION
 */
export function checkQuorumReachable(
  organization: OrganizationView,
  events: readonly OrganizationEvent[],
  now: number,
): void {
  if (!events.some(mayTake)) return;
  const after = afterwards(organization, events, now);
  const isNewQuorum = events.some(({ type }) => type === 'RootQuorumUpdated');
  for (const canSign of [hasLastingWayIn, canSignNow]) {
    const able = ableMembers(after, canSign, now);
    if (able >= after.rootQuorum.threshold) continue;
    const wasInReach = ableMembers(organization, canSign, now) >= organization.rootQuorum.threshold;
    if (wasInReach || isNewQuorum) throw outOfReach(after.rootQuorum, able);
  }
}

/** Whether a user of a sub-organization can log in there by a contact, judging by its features. */
function isContactOpen(
  features: OrganizationView['features'],
  { userEmail, userPhoneNumber }: Pick<User, 'userEmail' | 'userPhoneNumber'>,
): boolean {
  const isMailOpen = features.has('FEATURE_NAME_EMAIL_AUTH') || features.has('FEATURE_NAME_OTP_EMAIL_AUTH');
  return (Boolean(userEmail) && isMailOpen) || (Boolean(userPhoneNumber) && features.has('FEATURE_NAME_SMS_AUTH'));
}

type CanSign = (organization: OrganizationView, user: User, now: number) => boolean;

/** A credential or identity that does not expire, or, in a sub-organization, a proved or asserted contact. */
const hasLastingWayIn: CanSign = (organization, user) => {
  const { parentOrganizationId, features, foundingContacts } = organization;
  const { userId, userEmail, userPhoneNumber, emailVerified, phoneNumberVerified } = user;
  const counts = {
    ...(userEmail && (emailVerified || foundingContacts.has(contactName(userId, 'email'))) ? { userEmail } : {}),
    ...(userPhoneNumber && (phoneNumberVerified || foundingContacts.has(contactName(userId, 'phone-number')))
      ? { userPhoneNumber }
      : {}),
  };
  return (
    user.authenticators.length > 0 ||
    user.oauthProviders.length > 0 ||
    user.apiKeys.some(({ expirationSeconds }) => expirationSeconds === undefined) ||
    (parentOrganizationId !== undefined && isContactOpen(features, counts))
  );
};

/** The same, or a key that has not expired yet. */
const canSignNow: CanSign = (organization, user, now) =>
  hasLastingWayIn(organization, user, now) || user.apiKeys.some((key) => !isExpired(key, now));

function ableMembers(organization: OrganizationView, canSign: CanSign, now: number): number {
  return organization.rootQuorum.userIds.filter((userId) => {
    const user = organization.users.get(userId);
    return user && canSign(organization, user, now);
  }).length;
}

/** The relevant parts of the organization after those events. */
function afterwards(
  organization: OrganizationView,
  events: readonly OrganizationEvent[],
  now: number,
): OrganizationView {
  const { organizationId, parentOrganizationId, rootQuorum, users, features, foundingContacts } = organization;
  const copy = {
    ...emptyOrganization(),
    organizationId,
    parentOrganizationId,
    rootQuorum,
    users: new Map(users),
    features: new Map(features),
    foundingContacts: new Map(foundingContacts),
  };
  for (const event of events) if (telling.has(event.type)) evolve(copy, event, now);
  return copy;
}

function outOfReach({ threshold, userIds }: RootQuorum, able: number): CoordinatorError {
  return new CoordinatorError(
    'FAILED_PRECONDITION',
    `the root quorum requires ${threshold} of ${userIds.length} users, but only ${able} of them would have a credential without ` +
      'expiry, or another way in: create credentials without expirationSeconds for them first, or choose another quorum with ' +
      'update_root_quorum',
  );
}
