import { CoordinatorError, invalidField } from '../../domain/errors.js';
import {
  accessTypes,
  expiredInvitations,
  invitationLifeMs,
  openInvitations,
  type AccessType,
} from '../../domain/organization/invitations.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import { messageSender } from '../../domain/organization/message-senders.js';
import { existingUserTag } from '../../domain/organization/tags.js';
import { contactKey } from '../../domain/contact-key.js';
import { existingUser } from '../../domain/organization/users.js';
import { invitationEmail } from '../../delivery/templates.js';
import { Email, Label, ListOf, OneOf, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { senderOf } from '../auth/otp-params.js';
import { parentsWords } from '../parent-message-branding.js';
import type { OutgoingMessage } from '../../ports/delivery.js';

class InvitationParams {
  @Label({ about: 'Name of the future user.' })
  receiverUserName!: string;

  @Email({ about: 'E-mail address of the future user; the invitation is sent there.' })
  receiverUserEmail!: string;

  @UuidList({ about: 'Tags of the future user.' })
  receiverUserTags!: string[];

  @OneOf(accessTypes, {
    about: 'Credentials that the person may register: WEB a passkey, API an API key, ALL either or both.',
  })
  accessType!: AccessType;

  @Uuid({ about: 'The inviting user of this organization, named in the e-mail.' })
  senderUserId!: string;
}

class CreateInvitationsIntent {
  @ListOf(() => InvitationParams, { min: 1, about: 'The people to invite, all or none.' })
  invitations!: InvitationParams[];
}

class CreateInvitationsResult {
  @UuidList({ about: 'In the order of the request.' })
  invitationIds!: string[];
}

/** Invites people by mail; those who accept become users. The key of each link exists only in its mail. */
export const createInvitations = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_INVITATIONS',
  summary: 'Invites people by e-mail to become users.',
  intent: CreateInvitationsIntent,
  result: CreateInvitationsResult,
  policy: { resource: 'INVITATION', action: 'CREATE' },
  stamps: ['api-key'],

  check({ invitations }, organization) {
    const addresses = new Set<string>();
    for (const [index, { receiverUserEmail, receiverUserTags, senderUserId }] of invitations.entries()) {
      const field = `parameters.invitations[${index}].receiverUserEmail`;
      existingUser(organization, senderUserId);
      for (const tagId of receiverUserTags) existingUserTag(organization, tagId);
      const address = contactKey(receiverUserEmail);
      if (addresses.has(address)) throw invalidField(field, `\`${receiverUserEmail}\` appears twice in this request`);
      addresses.add(address);
      checkNobodyHas(organization, address, field);
    }
  },

  async prepare({ invitations }, { invitations: links, delivery, contactLimits }, context) {
    const { organization, parent, now, newId } = context;
    checkMayInvite(organization, parent);
    const expiresAt = now + invitationLifeMs;
    const words = parentsWords(context);
    for (const { receiverUserEmail: contact } of invitations) {
      const sender = messageSender(context, 'email', contact);
      await contactLimits.count({ contact, sender, organizationId: organization.organizationId });
    }
    return invitations.map(({ receiverUserName, receiverUserEmail: to, accessType, senderUserId }) => {
      const [invitationId, userId] = [newId(), newId()];
      const { organizationId, name: organizationName } = organization;
      // The page behind the link greets with this name, and a sub-organization could choose anything.
      const greeted = words ? '' : receiverUserName;
      const { publicKey, url } = links.newLink({
        organizationId,
        invitationId,
        receiverUserName: greeted,
        accessType,
      });
      const mail = invitationEmail({
        organizationName,
        senderName: existingUser(organization, senderUserId).userName,
        receiverName: receiverUserName,
        url,
        expiresAt,
        ...(words ? { parentName: words.appName, logoUrl: words.emailCustomization.logoUrl } : {}),
      });
      const message: OutgoingMessage = {
        channel: 'email',
        to,
        ...mail,
        ...(words ? senderOf(words) : {}),
        expiresAt,
      };
      delivery.check(message);
      return { invitationId, userId, publicKey, expiresAt, message };
    });
  },

  recall: (_intent, recorded) =>
    recorded.all('InvitationCreated').map(({ invitationId, userId, publicKey, expiresAt }) => {
      return { invitationId, userId, publicKey, expiresAt };
    }),

  decide({ invitations }, { organization, submitterId, now, limits }, prepared) {
    const expired = expiredInvitations(organization, now);
    const open = openInvitations(organization, now);
    if (open.length + invitations.length > limits.invitations) {
      throw new CoordinatorError(
        'RESOURCE_EXHAUSTED',
        `an organization may have ${limits.invitations} open invitations: it has ${open.length}, and this request adds ${invitations.length}; ` +
          'delete some first with delete_invitation',
      );
    }
    for (const [index, { receiverUserEmail }] of invitations.entries()) {
      const other = open.find((one) => contactKey(one.receiverUserEmail) === contactKey(receiverUserEmail));
      if (!other) continue;
      throw new CoordinatorError(
        'ALREADY_EXISTS',
        `parameters.invitations[${index}].receiverUserEmail: invitation \`${other.invitationId}\` to ` +
          `\`${receiverUserEmail}\` is still open: to send a new one, delete it first with delete_invitation`,
      );
    }
    const created = invitations.map((invitation, index): OrganizationEvent => {
      const { invitationId, userId, publicKey, expiresAt } = prepared[index]!;
      // The sender is whoever the request names, so the link must not outlive the submitter either.
      const isOthers = submitterId !== invitation.senderUserId && organization.users.has(submitterId);
      const submitter = isOthers ? { submitterId } : {};
      const data = { ...invitation, ...submitter, invitationId, userId, publicKey, expiresAt };
      return { type: 'InvitationCreated', data };
    });
    return {
      events: [
        ...expired.map(({ invitationId }): OrganizationEvent => {
          return { type: 'InvitationClosed', data: { invitationId, reason: 'expired' } };
        }),
        ...created,
      ],
      result: { invitationIds: prepared.map(({ invitationId }) => invitationId) },
    };
  },

  afterwards(prepared, { delivery }) {
    for (const { message } of prepared) delivery.enqueue(message);
  },
});

/**
 * The owner of a sub-organization could invite anyone, so its parent decides whether it may invite at all.
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
function checkMayInvite({ organizationId, parentOrganizationId }: OrganizationView, parent?: OrganizationView): void {
  if (parentOrganizationId === undefined || parent?.features.has('FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS')) return;
  throw new CoordinatorError(
    'PERMISSION_DENIED',
    `sub-organization \`${organizationId}\` may not send invitations: its parent \`${parentOrganizationId}\` has not enabled ` +
      'FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS (set_organization_feature)',
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

/** @throws {CoordinatorError} ALREADY_EXISTS: with two users for one address, neither could log in by it */
function checkNobodyHas({ users }: OrganizationView, address: string, field: string): void {
  for (const { userId, userEmail } of users.values()) {
    if (userEmail === undefined || contactKey(userEmail) !== address) continue;
    throw new CoordinatorError('ALREADY_EXISTS', `${field}: user \`${userId}\` already has \`${userEmail}\``);
  }
}
