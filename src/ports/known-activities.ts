import type { ActivityRecord } from '../domain/activity/record.js';
import type { User } from '../domain/organization/users.js';

export const KNOWN_ACTIVITIES = Symbol('KnownActivities');

/** Finds activities that are no longer in the folded state: the activities read model. */
export interface KnownActivities {
  /** Everything recorded up to this position (inclusive) is found. */
  checkpoint(): bigint;
  /** Id of the activity of a request with this fingerprint: its submission, or a vote on it. */
  findByFingerprint(organizationId: string, fingerprint: string): string | undefined;
  /** Whether a denied request with this fingerprint was recorded. */
  wasDenied(organizationId: string, fingerprint: string): boolean;
  /** Revision of the organization's last denial known for certain; -1 for none. */
  lastDenial(organizationId: string): number;
  /** The activity once everything up to `position` is known; waits for that, within limits. */
  read(organizationId: string, activityId: string, position: bigint): Promise<ActivityRecord<User | undefined>>;
}
