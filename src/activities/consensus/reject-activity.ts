import { Fingerprint } from '../../wire/fields.js';
import { defineVote } from '../define-activity.js';

class RejectActivityIntent {
  @Fingerprint({ about: 'Fingerprint of the activity to reject.' })
  fingerprint!: string;
}

/** A vote to reject a waiting activity; the response is that activity. */
export const rejectActivity = defineVote({
  type: 'ACTIVITY_TYPE_REJECT_ACTIVITY',
  summary: 'Rejects an activity that is waiting for votes, and returns it.',
  intent: RejectActivityIntent,
  selection: 'VOTE_SELECTION_REJECTED',
});
