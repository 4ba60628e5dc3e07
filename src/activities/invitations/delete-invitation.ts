import { unacceptedInvitation } from '../../domain/organization/invitations.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteInvitationIntent {
  @Uuid({ about: 'The invitation to withdraw.' })
  invitationId!: string;
}

class DeleteInvitationResult {
  @Uuid()
  invitationId!: string;
}

/** Withdraws an invitation; its link no longer works. */
export const deleteInvitation = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_INVITATION',
  summary: 'Withdraws an invitation that nobody has accepted; its link stops working at once.',
  intent: DeleteInvitationIntent,
  result: DeleteInvitationResult,
  policy: { resource: 'INVITATION', action: 'DELETE' },

  decide({ invitationId }, { organization }) {
    unacceptedInvitation(organization, invitationId);
    return {
      events: [{ type: 'InvitationClosed', data: { invitationId, reason: 'deleted' } }],
      result: { invitationId },
    };
  },
});
