import { mayVote, votingRights } from '../domain/activity/machine.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { couldContribute } from '../domain/policy/authorize.js';
import { activityVersion, newestIntent } from './registry.js';
import { type DecisionContext, clausesOf, metered } from './decision-context.js';
import { machineOf, standingApprovals, waiting, changedMember, submissionOf } from './approvals.js';
import { readsResources, questionOf, policyContext } from './authorization-request.js';

/** What a user may do about a waiting activity, by the guards that would refuse the vote. */
export function rightsOf(input: DecisionContext, open: OpenActivity, userId: string): ReturnType<typeof votingRights> {
  const context = metered(input);
  const withoutEligible = votingRights(machineOf(open, standingApprovals(context, open), []), [userId]);
  // Users who have approved may take it back, whatever the activity is about: for them, nothing is read.
  if (withoutEligible.canReject || !couldHaveRights(context, open, userId)) return withoutEligible;
  return votingRights(waiting(context, open).snapshot, [userId]);
}

/** What somebody may still do about a waiting activity. */
export function rightsOfAnybody(input: DecisionContext, open: OpenActivity): ReturnType<typeof votingRights> {
  const { snapshot, approvals } = waiting(metered(input), open);
  return votingRights(snapshot, [...snapshot.context.eligible, ...approvals.map(({ userId }) => userId)]);
}

/**
 * Whether the bytes of a waiting activity, sent again by another user, count as that user's vote. Findings about the
 * activity are kept for the decision on the vote.
 */
export function isVoteOf(input: DecisionContext, open: OpenActivity, userId: string): boolean {
  const context = metered(input);
  // On a meter of its own: the decision must take the same steps when it is made again.
  const beside = { ...context, steps: context.reading ?? context.steps, clauses: clausesOf(context) };
  if (!couldHaveRights(beside, open, userId)) return false;
  const { snapshot } = ((context.found ?? {}).waiting ??= waiting(context, open));
  return mayVote(snapshot, 'approve', userId);
}

/** Checked before the activity is read: for users who could never vote, nothing is read. */
export function couldHaveRights(context: DecisionContext, open: OpenActivity, userId: string): boolean {
  const { definition, ...version } = activityVersion(context.registry, open.type);
  if (!readsResources(definition)) return true;
  const intent = newestIntent({ ...version, definition }, open.intent);
  if (changedMember(context, definition, intent) === userId) return true;
  const { registry, organization } = context;
  const { userId: submitterId } = submissionOf(open);
  const question = questionOf(registry, open.type, definition, intent, submitterId, organization, {}, true);
  return couldContribute(question, standingApprovals(context, open), policyContext(context), userId);
}

/** Ids of the users who may approve a waiting activity and have not done so. */
export function approversOf(context: DecisionContext, open: OpenActivity): ReadonlySet<string> {
  const { snapshot } = waiting(metered(context), open);
  return new Set(snapshot.context.eligible.filter((userId) => mayVote(snapshot, 'approve', userId)));
}
