import type { ActivityEvent, Vote } from '../activity/events.js';
import { CoordinatorError } from '../errors.js';
import { evolveRecord, type ActivityRecord } from '../activity/record.js';
import { provedHere } from './claims.js';
import type { Evolvers } from './event.js';
import { noteRecorded, type Limits } from './limits.js';
import type { Organization, OrganizationView } from './organization.js';
import { changeUser, type User } from './users.js';
import { put, remove } from './slices.js';

/** An activity that is waiting for votes, each vote with its voter as the organization knew the user then. */
export type OpenActivity = ActivityRecord<User | undefined>;

export const evolveOpenActivities: Evolvers<ActivityEvent> = {
  ActivitySubmitted(organization, data, at) {
    // An activity that was allowed at once ends in the append that began it.
    if (data.status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED') keep(organization, { type: 'ActivitySubmitted', data }, at);
    countSignature(organization, data.vote);
    // What the parent does here is not the organization's to pay for.
    if (!data.decision.authority) noteRecorded(organization, data.vote.message, at);
    // Someone who stamps for the parent proves no key of this organization.
    if (!data.decision.authority) provedHere(organization);
  },
  ActivityApproved(organization, data, at) {
    keep(organization, { type: 'ActivityApproved', data }, at);
    noteRecorded(organization, data.vote.message, at);
    countSignature(organization, data.vote);
  },
  ActivityRejected(organization, data, at) {
    // The rejection of a change about oneself does not end the activity.
    if (data.status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED') {
      keep(organization, { type: 'ActivityRejected', data }, at);
    } else remove(organization, 'openActivities', data.activityId);
    countSignature(organization, data.vote);
  },
  ActivityCompleted(organization, { activityId }) {
    remove(organization, 'openActivities', activityId);
  },
  ActivityFailed(organization, { activityId }) {
    remove(organization, 'openActivities', activityId);
  },
  AppProofsIssued() {
    // It is for an activity that has ended.
  },
};

/**
 * Whether another activity may wait for votes: each is kept in memory until it ends.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export function checkRoomToWait(
  organization: Pick<OrganizationView, 'openActivities'>,
  userId: string,
  message: string,
  limits: Limits,
): void {
  for (const { whose, waiting, most, characters } of waitingWith(organization, userId, message, limits)) {
    if (waiting.length < most.activities && characters <= most.characters) continue;
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `this needs votes, but ${whose === 'submitter' ? 'of one user' : 'in one organization'} at most ${most.activities} activities ` +
        `may wait for them at a time, with ${most.characters} characters in total: ${waiting.length} are waiting, and would have ` +
        `${characters} characters including this one; have some approved or rejected first`,
    );
  }
}

/** What waits, of a submitter and in the organization, and the characters of the signed bodies with another one. */
function waitingWith(
  { openActivities }: Pick<OrganizationView, 'openActivities'>,
  submitterId: string | undefined,
  message: string,
  limits: Limits,
) {
  const most = {
    submitter: { activities: limits.waitingActivitiesOfSubmitter, characters: limits.waitingCharactersOfSubmitter },
    organization: { activities: limits.waitingActivities, characters: limits.waitingCharacters },
  };
  const all = [...openActivities.values()];
  // The first vote is the submitter's.
  const own = all.filter(({ votes }) => votes[0]?.userId === submitterId);
  return (['submitter', 'organization'] as const).map((whose) => {
    const waiting = whose === 'submitter' ? own : all;
    const characters = waiting.reduce((sum, { votes }) => sum + charactersOf(votes), message.length);
    return { whose, waiting, most: most[whose], characters };
  });
}

/** Characters of the signed bodies of all votes on an activity but the submitter's. */
const mostCharactersOfVotes = 262_144;
/** A vote whose body is not longer needs no room, or whoever fills it up would keep others from voting. */
const alwaysRoomFor = 1_024;

/**
 * Whether a vote may be kept with its activity: the same body sent again is a vote too, and it may have two million characters.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export function checkRoomForVote(
  organization: Pick<OrganizationView, 'openActivities'>,
  { activityId, votes }: OpenActivity,
  message: string,
  limits: Limits,
): void {
  if (message.length <= alwaysRoomFor) return;
  const before = charactersOf(votes.slice(1));
  const instead = `send approve_activity with the fingerprint of activity \`${activityId}\` instead, which is short`;
  if (before + message.length > mostCharactersOfVotes) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `the votes on an activity after the first may have ${mostCharactersOfVotes} characters in total: they have ${before}, and this ` +
        `body has ${message.length}; ${instead}`,
    );
  }
  for (const { whose, most, characters } of waitingWith(organization, votes[0]?.userId, message, limits)) {
    if (characters <= most.characters) continue;
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `the waiting activities of the ${whose} may have ${most.characters} characters in total, and would have ${characters} with this body; ${instead}`,
    );
  }
}

const charactersOf = (votes: OpenActivity['votes']): number =>
  votes.reduce((sum, { message }) => sum + message.length, 0);

function keep(organization: Organization, event: ActivityEvent, at: number): void {
  const { activityId } = event.data;
  const voter = ({ userId }: Vote) => organization.users.get(userId);
  const { organizationId, openActivities } = organization;
  const record = evolveRecord(openActivities.get(activityId), event, { organizationId, at, voter });
  put(organization, 'openActivities', activityId, record);
}

/** Keeps the highest signature counter of a passkey, so that a clone is noticed (WebAuthn 3, 7.2 step 22). */
function countSignature(organization: Organization, { userId, webauthn }: Vote): void {
  if (!webauthn || webauthn.signCount === 0) return;
  changeUser(organization, userId, (user) => ({
    ...user,
    authenticators: user.authenticators.map((one) =>
      one.credentialId === webauthn.credentialId
        ? { ...one, signCount: Math.max(one.signCount, webauthn.signCount) }
        : one,
    ),
  }));
}

/** The waiting activity that was submitted with that fingerprint. */
export function openByFingerprint(
  organization: { readonly openActivities: ReadonlyMap<string, OpenActivity> },
  fingerprint: string,
): OpenActivity | undefined {
  for (const open of organization.openActivities.values()) if (open.fingerprint === fingerprint) return open;
  return undefined;
}
