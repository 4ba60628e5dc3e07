import type { AnyActivity } from '../activities/define-activity.js';
import { isRejection, liveApprovals, type Vote } from '../domain/activity/events.js';
import { activityAt, type ActivitySnapshot } from '../domain/activity/machine.js';
import { credentialOfVote } from '../domain/organization/credentials-of-users.js';
import { mayChange, whoseWaysIn, type Word } from '../domain/organization/quorum-members.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { eligibleApprovers, type Authorization } from '../domain/policy/authorize.js';
import type { Approval } from '../domain/policy/types.js';
import { activityVersion, newestIntent } from './registry.js';
import type { DecisionContext, Waiting } from './decision-context.js';
import { aboutStillThere, questionOf, policyContext } from './authorization-request.js';

/** Approvals of a waiting activity that still count, oldest first. */
export function countedApprovals(context: DecisionContext, open: OpenActivity): readonly Vote[] {
  const standing = new Set(standingApprovals(context, open).map(({ userId }) => userId));
  return liveApprovals(open.votes, context.now).filter(({ userId }) => standing.has(userId));
}

/** The first vote is the submitter's. */
export function submissionOf(open: OpenActivity): Vote {
  return open.votes[0]!;
}

/** What there is to vote on, and who may. */
export function waiting(context: DecisionContext, open: OpenActivity): Waiting {
  const { definition, ...version } = activityVersion(context.registry, open.type);
  const intent = newestIntent({ ...version, definition }, open.intent);
  const about = aboutStillThere(definition, intent, context);
  const question = questionOf(
    context.registry,
    open.type,
    definition,
    intent,
    submissionOf(open).userId,
    context.organization,
    about,
    true,
  );
  const approvals = standingApprovals(context, open);
  const eligible = eligibleApprovers(question, approvals, policyContext(context));
  const member = changedMember(context, definition, intent);
  // The member's own approval is required, so the member may vote even if no policy makes them eligible.
  const snapshot = machineOf(open, approvals, member === undefined ? eligible : new Set([...eligible, member]));
  return { snapshot, approvals, question, member };
}

/** The machine of a waiting activity; rejections count however old they are. */
export function machineOf(
  { votes }: OpenActivity,
  approvals: readonly Approval[],
  eligible: Iterable<string>,
): ActivitySnapshot {
  const approved = approvals.map(({ userId }) => ({ userId, selection: 'VOTE_SELECTION_APPROVED' as const }));
  return activityAt('consensusNeeded', { eligible: [...eligible], votes: [...approved, ...votes.filter(isRejection)] });
}

/** Approvals that still count: recent enough, by a user who still exists, with a credential that was not removed. */
export function standingApprovals({ organization, now }: DecisionContext, open: OpenActivity): Approval[] {
  const standing = new Map<string, Approval>();
  for (const vote of liveApprovals(open.votes, now)) {
    const { userId } = vote;
    const credential = credentialOfVote(organization, vote);
    if (credential) standing.set(userId, { userId, credential });
  }
  return [...standing.values()];
}

/** Whose authority a decision rests on. */
export function wordOf({ outcome, by }: Authorization, approvals: readonly Approval[], isParents: boolean): Word {
  return {
    isRootQuorums: outcome === 'allow' && by === 'root-quorum' && !isParents,
    userIds: isParents ? [] : approvals.map(({ userId }) => userId),
  };
}

/** The member of the root quorum whose credentials or contacts the intent would change. */
export function changedMember(
  { organization }: DecisionContext,
  definition: AnyActivity,
  intent: object,
): string | undefined {
  const touched = definition.touches?.(intent);
  const userId = touched && whoseWaysIn(touched);
  return userId !== undefined && organization.rootQuorum.userIds.includes(userId) ? userId : undefined;
}

/** The member whose approval (or the quorum's) is missing for something that policies allow. */
export function memberInTheWay(
  context: DecisionContext,
  definition: AnyActivity,
  intent: object,
  { outcome }: Authorization,
  word: Word,
): string | undefined {
  const member = outcome === 'allow' ? changedMember(context, definition, intent) : undefined;
  return member === undefined || mayChange(context.organization, member, word) ? undefined : member;
}

export function waitingForQuorum(authorization: Authorization): Authorization {
  return { ...authorization, outcome: 'consensus-needed', by: 'none' };
}
