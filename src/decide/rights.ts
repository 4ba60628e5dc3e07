import { mayVote, votingRights } from '../domain/activity/machine.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { couldContribute } from '../domain/policy/authorize.js';
import { activityVersion, newestIntent } from './registry.js';
import { type DecisionContext, clausesOf, metered } from './decision-context.js';
import { machineOf, standingApprovals, waiting, changedMember, submissionOf } from './approvals.js';
import { readsResources, questionOf, policyContext } from './authorization-request.js';

/** What a user may do about a waiting activity, by the guards that would refuse the vote. */
export function rightsOf(given: DecisionContext, open: OpenActivity, userId: string): ReturnType<typeof votingRights> {
  const basis = metered(given);
  const withoutEligible = votingRights(machineOf(open, standingApprovals(basis, open), []), [userId]);
  // Users who have approved may take it back, whatever the activity is about: for them, nothing is read.
  if (withoutEligible.canReject || !couldHaveRights(basis, open, userId)) return withoutEligible;
  return votingRights(waiting(basis, open).snapshot, [userId]);
}

/** What somebody may still do about a waiting activity. */
export function rightsOfAnybody(given: DecisionContext, open: OpenActivity): ReturnType<typeof votingRights> {
  const { snapshot, approvals } = waiting(metered(given), open);
  return votingRights(snapshot, [...snapshot.context.eligible, ...approvals.map(({ userId }) => userId)]);
}

/**
 * Whether the bytes of a waiting activity, sent again by another user, count as that user's vote. Findings about the
 * activity are kept for the decision on the vote.
 */
export function isVoteOf(given: DecisionContext, open: OpenActivity, userId: string): boolean {
  const basis = metered(given);
  // On a meter of its own: the decision must take the same steps when it is made again.
  const beside = { ...basis, steps: basis.reading ?? basis.steps, clauses: clausesOf(basis) };
  if (!couldHaveRights(beside, open, userId)) return false;
  const { snapshot } = ((basis.found ?? {}).waiting ??= waiting(basis, open));
  return mayVote(snapshot, 'approve', userId);
}

/** Checked before the activity is read: for users who could never vote, nothing is read. */
export function couldHaveRights(basis: DecisionContext, open: OpenActivity, userId: string): boolean {
  const { definition, ...version } = activityVersion(basis.registry, open.type);
  if (!readsResources(definition)) return true;
  const intent = newestIntent({ ...version, definition }, open.intent);
  if (changedMember(basis, definition, intent) === userId) return true;
  const { registry, organization } = basis;
  const { userId: submitterId } = submissionOf(open);
  const question = questionOf(registry, open.type, definition, intent, submitterId, organization, {}, true);
  return couldContribute(question, standingApprovals(basis, open), policyContext(basis), userId);
}

/** Ids of the users who may approve a waiting activity and have not done so. */
export function approversOf(basis: DecisionContext, open: OpenActivity): ReadonlySet<string> {
  const { snapshot } = waiting(metered(basis), open);
  return new Set(snapshot.context.eligible.filter((userId) => mayVote(snapshot, 'approve', userId)));
}
