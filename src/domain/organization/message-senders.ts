import { isAuthProxyUser } from './auth-proxy.js';
import type { OrganizationView } from './organization.js';
import { contactKey } from '../contact-key.js';
import type { User } from './users.js';

/** Who requests a message, and where. `parent` is absent for an organization without one, and if it is not known. */
export interface MessageRequest {
  readonly organization: OrganizationView;
  readonly parent?: OrganizationView | undefined;
  readonly submitterId: string;
}

export type ContactKind = 'email' | 'phone-number';

/**
 * Whether a message comes from the parent: it is sent by an organization without a parent, or by one of the parent's
 * users. A sub-organization may belong to anyone, so its own users cannot choose texts (security rule R6).
 */
export function speaksForParent({ organization, parent, submitterId }: MessageRequest): boolean {
  return organization.parentOrganizationId === undefined || parent?.users.has(submitterId) === true;
}

/**
 * On whose behalf a message to a contact is requested: `trusted` for the parent's members and for the account that has
 * proved the contact; everyone else is `untrusted`, or `auth-proxy` if through the parent's auth proxy, which speaks for people
 * without a key.
 */
export type MessageSender = 'trusted' | 'auth-proxy' | 'untrusted';

/** @see MessageSender */
export function messageSender(request: MessageRequest, kind: ContactKind, contact: string): MessageSender {
  const { organization, parent, submitterId } = request;
  if (organization.parentOrganizationId !== undefined && organization.users.has(submitterId)) {
    return isContactOfUser(organization, kind, contact, 'verified') ? 'trusted' : 'untrusted';
  }
  const home = organization.parentOrganizationId === undefined ? organization : parent;
  return home && isAuthProxyUser(home, submitterId) ? 'auth-proxy' : 'trusted';
}

/** Whether a user of the organization has the contact, or has proved it. */
export function isContactOfUser(
  { users }: OrganizationView,
  kind: ContactKind,
  contact: string,
  only?: 'verified',
): boolean {
  const wanted = contactKey(contact);
  const has = (user: User): boolean => {
    const held = kind === 'email' ? user.userEmail : user.userPhoneNumber;
    if (held === undefined || contactKey(held) !== wanted) return false;
    return only === undefined || (kind === 'email' ? user.emailVerified : user.phoneNumberVerified) === true;
  };
  return [...users.values()].some(has);
}
