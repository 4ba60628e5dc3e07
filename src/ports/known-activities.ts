import type { ActivityRecord } from '../domain/activity/record.js';
import type { User } from '../domain/organization/users.js';

export const KNOWN_ACTIVITIES = Symbol('KnownActivities');

/** Finds what has been decided before and is no longer in folded state: the activities read model. */
export interface KnownActivities {
  /** Everything recorded up to this position (inclusive) is found. */
  checkpoint(): bigint;
  /** Id of the activity that a request with this fingerprint belongs to: its submission, or a vote on it. */
  findByFingerprint(organizationId: string, fingerprint: string): string | undefined;
  /** The activity once everything up to `position` is known; waits for that, within bounds. */
  read(organizationId: string, activityId: string, position: bigint): Promise<ActivityRecord<User | undefined>>;
}
