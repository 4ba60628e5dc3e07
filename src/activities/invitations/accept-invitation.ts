import { CoordinatorError, invalidField } from '../../domain/errors.js';
import { invitedUser, unacceptedInvitation } from '../../domain/organization/invitations.js';
import { checkRoomForUsers } from '../../domain/organization/users.js';
import { presentMembers } from '../../domain/organization/event.js';
import { ListOf, Uuid } from '../../wire/fields.js';
import {
  ApiKeyParamsV2,
  AuthenticatorParamsV2,
  newCredentials,
  recalledAuthenticators,
  verifyAuthenticators,
} from '../credentials/credential-params.js';
import { defineActivity } from '../define-activity.js';

class AcceptInvitationIntent {
  @Uuid({ about: 'Id of the invitation, from its link.' })
  invitationId!: string;

  @ListOf(() => AuthenticatorParamsV2, {
    optional: true,
    about: 'Passkeys of the new user; required for WEB, refused for API.',
  })
  authenticators?: AuthenticatorParamsV2[];

  @ListOf(() => ApiKeyParamsV2, {
    optional: true,
    about: 'API keys of the new user; required for API, refused for WEB.',
  })
  apiKeys?: ApiKeyParamsV2[];
}

class AcceptInvitationResult {
  @Uuid()
  invitationId!: string;

  @Uuid()
  userId!: string;
}

/** Makes the holder of an invitation link a user; the key in the link stamps the request, once. */
export const acceptInvitation = defineActivity({
  type: 'ACTIVITY_TYPE_ACCEPT_INVITATION',
  summary: 'Accepts an invitation and creates the user; stamped with the key of its link.',
  intent: AcceptInvitationIntent,
  result: AcceptInvitationResult,
  policy: { resource: 'INVITATION', action: 'UPDATE' },
  submittedBy: 'invitee',
  stamps: ['api-key'],

  check({ invitationId, authenticators = [], apiKeys = [] }, organization) {
    const { accessType, senderUserId, submitterId = senderUserId } = unacceptedInvitation(organization, invitationId);
    const gone = [senderUserId, submitterId].find((userId) => !organization.users.has(userId));
    if (gone !== undefined) {
      throw new CoordinatorError(
        'FAILED_PRECONDITION',
        `user \`${gone}\`, who sent invitation \`${invitationId}\`, has been deleted: ask for a new invitation`,
      );
    }
    if (accessType === 'ACCESS_TYPE_WEB' && apiKeys.length > 0) {
      throw invalidField('parameters.apiKeys', 'the invitation is for the web: send a passkey instead of an API key');
    }
    if (accessType === 'ACCESS_TYPE_API' && authenticators.length > 0) {
      throw invalidField(
        'parameters.authenticators',
        'the invitation is for the API: send an API key instead of a passkey',
      );
    }
    // A key that expires would leave a user whom nobody can log in as.
    const lasting = apiKeys.filter(({ expirationSeconds }) => expirationSeconds === undefined);
    if (authenticators.length + lasting.length > 0) return;
    throw accessType === 'ACCESS_TYPE_WEB'
      ? invalidField('parameters.authenticators', 'must have a passkey')
      : invalidField('parameters.apiKeys', 'must have an API key without expirationSeconds');
  },

  prepare: ({ authenticators = [] }, ports, { organization, limits }) =>
    verifyAuthenticators(authenticators, ports, organization, 'parameters.authenticators', limits),

  recall: (_intent, recorded) => recalledAuthenticators(recorded, recorded.first('UserCreated').userId),

  decide({ invitationId, authenticators = [], apiKeys = [] }, context, verified) {
    const { organization, submitterId, now, limits } = context;
    const invitation = unacceptedInvitation(organization, invitationId);
    if (invitation.userId !== submitterId || invitation.expiresAt <= now) {
      throw new CoordinatorError(
        'PERMISSION_DENIED',
        `the key that stamped this request is not the key of invitation \`${invitationId}\`, or the invitation has expired`,
      );
    }
    const { userId, userName, userEmail, userTags } = invitedUser(organization, invitation);
    checkRoomForUsers(organization, 1, limits);
    const owner = { userId, apiKeys: [], authenticators: [] };
    const credentials = newCredentials(context);
    const added = credentials.apiKeys(owner, apiKeys, 'parameters.apiKeys').events;
    for (const [index, event] of added.entries()) {
      // It was in a mail, and must be worthless once used.
      if (event.type === 'ApiKeyCreated' && event.data.publicKey === invitation.publicKey) {
        throw invalidField(`parameters.apiKeys[${index}].publicKey`, 'is the key of the link: generate your own');
      }
    }
    return {
      events: [
        { type: 'InvitationClosed', data: { invitationId, reason: 'accepted' } },
        { type: 'UserCreated', data: { userId, userName, ...presentMembers({ userEmail }), userTags } },
        ...added,
        ...credentials.authenticators(owner, authenticators, verified, 'parameters.authenticators').events,
      ],
      result: { invitationId, userId },
    };
  },
});
