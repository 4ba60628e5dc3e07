import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { ContactKind } from '../../domain/organization/contacts.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import { contactKey } from '../../domain/contact-key.js';
import { usersOfContact, type User } from '../../domain/organization/users.js';
import { checkQuorumReachable } from '../../domain/organization/login-methods.js';
import { Flag, isEmail, isPhone, Text, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class ReleaseContactIntent {
  @Text({
    min: 1,
    max: 254,
    about: 'The e-mail address, or phone number in E.164 format, that now belongs to somebody else.',
  })
  contact!: string;

  @Flag({
    optional: true,
    about:
      'True to release the contact even if the root quorum has no other way to log in, so that the sub-organization becomes unreachable.',
  })
  leaveUnreachable?: boolean;
}

class ReleaseContactResult {
  @UuidList({ about: 'The users who had it.' })
  userIds!: string[];
}

/**
 * Revokes a contact in a sub-organization because the parent's members know that it now belongs to someone else
 * (security rule R4, docs/adr/0016): nobody can log in by it and no look-up leads there until it is proved again.
 */
export const releaseContact = defineActivity({
  type: 'ACTIVITY_TYPE_RELEASE_CONTACT',
  summary:
    'Disables logins with a contact in the sub-organization in which it is submitted, until the contact is verified again.',
  intent: ReleaseContactIntent,
  result: ReleaseContactResult,
  policy: { resource: 'CONTACT', action: 'DELETE' },
  params: {
    // Normalized, or a policy about a contact could be evaded by its spelling.
    contact: { type: { kind: 'string' }, from: ({ contact }) => contactKey(contact) },
    leave_unreachable: { type: { kind: 'bool' }, from: ({ leaveUnreachable = false }) => leaveUnreachable },
  },
  submittedBy: 'parent',

  check({ contact }, organization) {
    usersToRelease(organization, contact);
  },

  decide({ contact, leaveUnreachable = false }, { organization, now }) {
    const { kind, users } = usersToRelease(organization, contact);
    const events = users.map(({ userId }): OrganizationEvent => {
      return { type: 'UserContactReleased', data: { userId, contact: kind } };
    });
    if (!leaveUnreachable) checkStaysReachable(organization, events, now);
    return { events, result: { userIds: users.map(({ userId }) => userId) }, leavesUnreachable: leaveUnreachable };
  },
});

/**
 * @throws {CoordinatorError} INVALID_ARGUMENT for an invalid contact, NOT_FOUND if nobody has it, or it was released
 */
function usersToRelease(
  organization: OrganizationView,
  contact: string,
): { readonly kind: ContactKind; readonly users: readonly User[] } {
  if (!isEmail(contact) && !isPhone(contact)) {
    const rule = 'an e-mail address, or a phone number in E.164 format, such as +13214567890';
    throw invalidField('parameters.contact', `must be ${rule}, got \`${contact.slice(0, 64)}\``);
  }
  const kind = isEmail(contact) ? 'email' : 'phone-number';
  const users = usersOfContact(organization, kind, contact);
  if (users.length > 0) return { kind, users };
  throw new CoordinatorError(
    'NOT_FOUND',
    `no user of organization \`${organization.organizationId}\` has \`${contact}\` as an active contact: ` +
      'use list_suborgs to find the organizations that have it',
  );
}

/** @throws {CoordinatorError} FAILED_PRECONDITION that says how to do it anyway */
function checkStaysReachable(organization: OrganizationView, events: readonly OrganizationEvent[], now: number): void {
  try {
    checkQuorumReachable(organization, events, now);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw new CoordinatorError(
      'FAILED_PRECONDITION',
      `the root quorum of organization \`${organization.organizationId}\` has no way to log in other than this contact: ` +
        'have its users add a passkey or a key first, or send leaveUnreachable: true, after which nobody can log in any more',
    );
  }
}
