import type { ActivityEvent, Vote } from '../domain/activity/events.js';
import { activityStatus, mayVote, step } from '../domain/activity/machine.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkRoomForVote, type OpenActivity } from '../domain/organization/open-activities.js';
import { authorize, isDenied, type Authorization } from '../domain/policy/authorize.js';
import { denialOf } from './explain.js';
import { voteRefused } from './refusals.js';
import { activityVersion, newestIntent } from './registry.js';
import {
  limitsToCheck,
  metered,
  type DecisionContext,
  type DecisionResult,
  type Prepared,
  type Voter,
} from './decision-context.js';
import { waiting, wordOf, memberInTheWay, waitingForQuorum, submissionOf } from './approvals.js';
import { policyContext, readFirstIfThere } from './authorization-request.js';
import { concernsOnly, isPossible, decisionOf, execute, endOf, afterwardsOf, failed } from './effects.js';

/**
 * A vote on a waiting activity.
 * @throws {CoordinatorError} if the voter may not cast it, or a policy forbids the activity and the voter is not in the root quorum
 */
export function decideVote(
  input: DecisionContext,
  open: OpenActivity,
  vote: Vote,
  voter: Voter,
  prepared: Prepared,
): DecisionResult {
  const { activityId } = open;
  const { userId } = voter;
  const decisionContext = metered(input);
  const found = decisionContext.found ?? {};
  const { snapshot, approvals: earlier, question } = (found.waiting ??= waiting(decisionContext, open));
  const approvals = [...earlier, voter];
  const context = policyContext(decisionContext);
  const type = vote.selection === 'VOTE_SELECTION_APPROVED' ? 'approve' : 'reject';
  const authorized = () => (found.authorization ??= authorize(question, approvals, context));
  const refuseIfDenied = (authorization: Authorization) => {
    if (!isDenied(authorization)) return;
    throw denialOf({ ...authorization, outcome: 'deny-explicit' }, question, approvals, context);
  };
  if (!mayVote(snapshot, type, userId)) {
    const isRepeated = snapshot.context.votes.some((one) => one.userId === userId && one.selection === vote.selection);
    // Only members of the root quorum may approve what a policy forbids, so the policy is the reason.
    if (type === 'approve' && !isRepeated) refuseIfDenied(authorized());
    throw voteRefused(open, type, isRepeated, userId);
  }
  const { definition, ...version } = activityVersion(decisionContext.registry, open.type);
  const intent = newestIntent({ ...version, definition }, open.intent);
  const isAboutVoter = type === 'reject' && concernsOnly(userId, decisionContext, definition, intent, open);
  const voted = step(snapshot, { type, userId, isAboutVoter });
  if (voted.value !== 'rejected') {
    checkRoomForVote(decisionContext.organization, open, vote.message, limitsToCheck(decisionContext).limits);
  }
  if (type === 'reject') {
    const status = activityStatus(voted);
    return {
      kind: 'decided',
      outcome: voted.value === 'rejected' ? 'deny-explicit' : 'consensus-needed',
      events: [{ type: 'ActivityRejected', data: { activityId, status, vote, rules: rulesNumber } }],
    };
  }

  const requested = authorized();
  const word = wordOf(requested, approvals, false);
  const member = memberInTheWay(decisionContext, definition, intent, requested, word);
  const authorization = member === undefined ? requested : waitingForQuorum(requested);
  // The vote is refused and the activity stays open: policies may change again.
  if (!decisionContext.organization.rootQuorum.userIds.includes(userId)) refuseIfDenied(authorization);
  const isAllowed = authorization.outcome === 'allow';
  if (isAllowed) readFirstIfThere(definition, intent, decisionContext);
  if (isAllowed && definition.recall && !prepared && isPossible(definition, intent, decisionContext)) {
    return { kind: 'prepare' };
  }
  const next = step(voted, { type: 'evaluated', outcome: isAllowed ? 'allow' : 'consensus-needed' });
  const decision = decisionOf(vote, authorization, decisionContext);
  const approved: ActivityEvent = {
    type: 'ActivityApproved',
    data: { activityId, status: activityStatus(next), vote, decision },
  };
  if (!isAllowed) return { kind: 'decided', outcome: 'consensus-needed', events: [approved] };
  try {
    const effects = execute(decisionContext, definition, intent, activityId, submissionOf(open), prepared, word);
    const events = [approved, ...effects.events, endOf(activityId, next, effects)];
    return {
      kind: 'decided',
      outcome: 'allow',
      events,
      ...('failure' in effects ? {} : afterwardsOf(definition, prepared)),
    };
  } catch (error) {
    // The voters have done their part: a failure now belongs to the activity, not to this request.
    if (!(error instanceof CoordinatorError)) throw error;
    return { kind: 'decided', outcome: 'allow', events: [approved, failed(activityId, next, error)] };
  }
}
