import { votingRights } from '../domain/activity/machine.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { couldContribute } from '../domain/policy/authorize.js';
import { activityVersion, newestIntent } from './registry.js';
import { type Basis, clausesOf, metered } from './basis.js';
import { standingApprovals, waiting, changedMember, submissionOf } from './approvals.js';
import { readsResources, questionOf, policyContext } from './question.js';

/** What a user may do about a waiting activity, by the guards that would refuse the vote. */
export function rightsOf(given: Basis, open: OpenActivity, userId: string): ReturnType<typeof votingRights> {
  const basis = metered(given);
  // Anyone who has approved may take it back, whatever the activity is about.
  if (standingApprovals(basis, open).some((approval) => approval.userId === userId)) {
    return { canApprove: false, canReject: true };
  }
  return couldHaveRights(basis, open, userId)
    ? votingRights(waiting(basis, open).snapshot, userId)
    : { canApprove: false, canReject: false };
}

/**
 * Whether the bytes of a waiting activity, sent again by another user, count as that user's vote. Findings about the
 * activity are kept for the decision on the vote.
 */
export function isVoteOf(given: Basis, open: OpenActivity, userId: string): boolean {
  const basis = metered(given);
  // On a meter of its own: the decision must take the same steps when it is made again.
  const beside = { ...basis, steps: basis.reading ?? basis.steps, clauses: clausesOf(basis) };
  if (!couldHaveRights(beside, open, userId)) return false;
  const { snapshot } = ((basis.found ?? {}).waiting ??= waiting(basis, open));
  return votingRights(snapshot, userId).canApprove;
}

/** Checked before the activity is read: for users who could never vote, nothing is read. */
export function couldHaveRights(basis: Basis, open: OpenActivity, userId: string): boolean {
  const { definition, ...version } = activityVersion(basis.registry, open.type);
  if (!readsResources(definition)) return true;
  const intent = newestIntent({ ...version, definition }, open.intent);
  if (changedMember(basis, definition, intent) === userId) return true;
  const { registry, organization } = basis;
  const question = questionOf(registry, open.type, definition, intent, submissionOf(open).userId, organization, {});
  return couldContribute(question, standingApprovals(basis, open), policyContext(basis), userId);
}

/** Ids of the users who may approve a waiting activity and have not done so. */
export function approversOf(basis: Basis, open: OpenActivity): ReadonlySet<string> {
  const { eligible, approved } = waiting(metered(basis), open).snapshot.context;
  return new Set(eligible.filter((userId) => !approved.includes(userId)));
}
