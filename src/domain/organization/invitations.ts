import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';
import { userCreated, type User } from './users.js';
import { put, remove } from './slices.js';

/** What a person may bring in: a passkey, an API key, or either. */
export const accessTypes = ['ACCESS_TYPE_WEB', 'ACCESS_TYPE_API', 'ACCESS_TYPE_ALL'] as const;

export type AccessType = (typeof accessTypes)[number];

interface InvitationFacts {
  readonly invitationId: string;
  /** The id that the person will have as a user. */
  readonly userId: string;
  readonly receiverUserName: string;
  readonly receiverUserEmail: string;
  /** Ids of user tags. */
  readonly receiverUserTags: readonly string[];
  readonly accessType: AccessType;
  /** The inviting person's name, as the mail gives it. */
  readonly senderUserId: string;
  /** The user of this organization who submitted it, if not the sender. */
  readonly submitterId?: string;
  /** P-256, compressed, hex. The private key is only in the mail; it stamps the acceptance. */
  readonly publicKey: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** An open invitation, or one accepted recently. Times are milliseconds since the epoch. */
export interface Invitation extends InvitationFacts {
  readonly createdAt: number;
  readonly acceptedAt?: number;
}

export type InvitationEvent =
  | DomainEvent<'InvitationCreated', InvitationFacts>
  | DomainEvent<'InvitationClosed', { invitationId: string; reason: 'accepted' | 'deleted' | 'expired' }>;

/** How long a link is valid. */
export const invitationLifeMs = 7 * 24 * 60 * 60 * 1000;
/** How long an accepted one is remembered: longer than the same request may be sent again. */
const rememberedMs = 2 * 60 * 60 * 1000;

export const evolveInvitations: Evolvers<InvitationEvent> = {
  InvitationCreated(organization, data, at) {
    put(organization, 'invitations', data.invitationId, { ...data, createdAt: at });
  },
  InvitationClosed(organization, { invitationId, reason }, at) {
    const { invitations } = organization;
    for (const [id, { acceptedAt }] of invitations) {
      if (acceptedAt !== undefined && acceptedAt + rememberedMs <= at) remove(organization, 'invitations', id);
    }
    const known = invitations.get(invitationId);
    if (known && reason === 'accepted') {
      put(organization, 'invitations', invitationId, { ...known, acceptedAt: at });
    } else remove(organization, 'invitations', invitationId);
  },
};

/** The invitations that can still be accepted. */
export function openInvitations({ invitations }: OrganizationView, now: number): readonly Invitation[] {
  return [...invitations.values()].filter(({ acceptedAt, expiresAt }) => acceptedAt === undefined && expiresAt > now);
}

/** Invitations that have expired, and that no event has ended yet. */
export function expiredInvitations({ invitations }: OrganizationView, now: number): readonly Invitation[] {
  return [...invitations.values()].filter(({ acceptedAt, expiresAt }) => acceptedAt === undefined && expiresAt <= now);
}

/** The invitation whose link has this key: one that can be accepted, or was. */
export function invitationOfKey(
  { invitations }: OrganizationView,
  publicKey: string,
  now: number,
): Invitation | undefined {
  for (const one of invitations.values()) {
    if (one.publicKey === publicKey) return one.acceptedAt !== undefined || one.expiresAt > now ? one : undefined;
  }
  return undefined;
}

/** The user that an invitation creates, or has created, without tags that have been deleted since. */
export function invitedUser({ users, userTags }: OrganizationView, invitation: Invitation): User {
  const { userId, receiverUserName: userName, receiverUserEmail: userEmail, receiverUserTags, createdAt } = invitation;
  const tags = receiverUserTags.filter((tagId) => userTags.has(tagId));
  return users.get(userId) ?? userCreated({ userId, userName, userEmail, userTags: tags }, createdAt);
}

/**
 * The invitation of that id, unless it was accepted.
 * @throws {CoordinatorError} NOT_FOUND, FAILED_PRECONDITION
 */
export function unacceptedInvitation(organization: OrganizationView, invitationId: string): Invitation {
  const found = organization.invitations.get(invitationId);
  if (!found) {
    throw new CoordinatorError(
      'NOT_FOUND',
      `no open invitation \`${invitationId}\` in organization \`${organization.organizationId}\`: ` +
        'see list_invitations',
    );
  }
  if (found.acceptedAt === undefined) return found;
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `invitation \`${invitationId}\` has been accepted: it created user \`${found.userId}\``,
  );
}
