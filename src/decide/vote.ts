import type { ActivityEvent, Vote } from '../domain/activity/events.js';
import { activityStatus, step } from '../domain/activity/machine.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkRoomForVote, type OpenActivity } from '../domain/organization/open-activities.js';
import { authorize } from '../domain/policy/authorize.js';
import { denialOf } from './explain.js';
import { voteRefused } from './refusals.js';
import { activityVersion, newestIntent } from './registry.js';
import { limitsToCheck, metered, type Basis, type DecisionResult, type Prepared, type Voter } from './basis.js';
import { waiting, wordOf, memberInTheWay, waitingForQuorum, submissionOf } from './approvals.js';
import { policyContext, readFirstIfThere } from './question.js';
import { isPossible, decisionOf, execute, endOf, afterwardsOf, failed } from './effects.js';

/**
 * A vote on a waiting activity.
 * @throws {CoordinatorError} if the voter may not cast it, or a policy forbids the activity today
 */
export function decideVote(
  given: Basis,
  open: OpenActivity,
  vote: Vote,
  voter: Voter,
  prepared: Prepared,
): DecisionResult {
  const { activityId } = open;
  const { userId } = voter;
  const basis = metered(given);
  const found = basis.found ?? {};
  const { snapshot, approvals, question } = (found.waiting ??= waiting(basis, open));
  const context = policyContext(basis);
  const wish = vote.selection === 'VOTE_SELECTION_APPROVED' ? 'approve' : 'reject';
  const isRepeated = approvals.some((approval) => approval.userId === userId);
  if (!snapshot.can({ type: wish, userId })) {
    if (wish === 'approve' && !isRepeated) {
      // No approval counts while a policy forbids the activity, so the policy is the reason.
      const forbidden = authorize(question, [...approvals, voter], context);
      if (forbidden.outcome === 'deny-explicit') throw denialOf(forbidden, question, [...approvals, voter], context);
    }
    throw voteRefused(open, wish, approvals, userId);
  }
  const voted = step(snapshot, { type: wish, userId });
  if (wish === 'reject') {
    const status = activityStatus(voted);
    return {
      outcome: 'deny-explicit',
      events: [{ type: 'ActivityRejected', data: { activityId, status, vote, rules: rulesNumber } }],
    };
  }

  checkRoomForVote(basis.organization, open, vote.message, limitsToCheck(basis).limits);
  const { definition, ...version } = activityVersion(basis.registry, open.type);
  const intent = newestIntent({ ...version, definition }, open.intent);
  const asked = (found.authorization ??= authorize(question, [...approvals, voter], context));
  const word = wordOf(asked, [...approvals, voter], false);
  const member = memberInTheWay(basis, definition, intent, asked, word);
  const authorization = member === undefined ? asked : waitingForQuorum(asked);
  // If a policy forbids it today, the vote is refused and the activity stays open: policies may change again.
  if (authorization.outcome === 'deny-explicit')
    throw denialOf(authorization, question, [...approvals, voter], context);
  const isAllowed = authorization.outcome === 'allow';
  if (isAllowed) readFirstIfThere(definition, intent, basis);
  if (isAllowed && definition.recall && !prepared && isPossible(definition, intent, basis)) {
    return 'prepare-first';
  }
  const next = step(voted, { type: 'evaluated', outcome: isAllowed ? 'allow' : 'consensus-needed' });
  const decision = decisionOf(vote, authorization, basis);
  const approved: ActivityEvent = {
    type: 'ActivityApproved',
    data: { activityId, status: activityStatus(next), vote, decision },
  };
  if (!isAllowed) return { outcome: 'consensus-needed', events: [approved] };
  try {
    const effects = execute(basis, definition, intent, activityId, submissionOf(open), prepared, word);
    const events = [approved, ...effects.events, endOf(activityId, next, effects)];
    return { outcome: 'allow', events, ...('failure' in effects ? {} : afterwardsOf(definition, prepared)) };
  } catch (error) {
    // The voters have done their part: a failure now belongs to the activity, not to this request.
    if (!(error instanceof CoordinatorError)) throw error;
    return { outcome: 'allow', events: [approved, failed(activityId, next, error)] };
  }
}
