import { Fingerprint } from '../../wire/fields.js';
import { defineVote } from '../define-activity.js';

class ApproveActivityIntent {
  @Fingerprint({ about: 'Fingerprint of the activity to approve.' })
  fingerprint!: string;
}

/** A vote to approve a waiting activity; the response is that activity. */
export const approveActivity = defineVote({
  type: 'ACTIVITY_TYPE_APPROVE_ACTIVITY',
  summary: 'Approves an activity that is waiting for votes, and returns it.',
  intent: ApproveActivityIntent,
  selection: 'VOTE_SELECTION_APPROVED',
});
