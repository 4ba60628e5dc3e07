import type { ActivityEvent, Vote } from '../domain/activity/events.js';
import { activityStatus, afterSubmit } from '../domain/activity/machine.js';
import { theirsAlone } from '../domain/organization/quorum-members.js';
import { checkRecordedBytes } from '../domain/organization/limits.js';
import { checkRoomToWait } from '../domain/organization/open-activities.js';
import { authorize, couldAllow } from '../domain/policy/authorize.js';
import type { AuthorizationRequest } from '../domain/policy/types.js';
import { denialOf } from './explain.js';
import {
  type DecisionContext,
  type Submission,
  type Voter,
  type Prepared,
  type DecisionResult,
  metered,
  limitsToCheck,
} from './decision-context.js';
import { submitQuestion, readsResources, aboutOf, notRead, readFirst } from './authorization-request.js';
import { wordOf, memberInTheWay, waitingForQuorum } from './approvals.js';
import { decisionOf, execute, endOf, afterwardsOf } from './effects.js';

/**
 * A submit.
 * @throws {CoordinatorError} PERMISSION_DENIED with each policy's outcome, or the refusal of the activity itself
 */
export function decideSubmit(
  input: DecisionContext,
  submission: Submission,
  vote: Vote,
  voter: Voter,
  prepared: Prepared,
): DecisionResult {
  const { activityId, type, intent, parameters, fingerprint, timestampMs, generateAppProofs } = submission;
  const decisionContext = metered(input);
  const { authority } = voter;
  const { definition, isGuest, context, questionOn } = submitQuestion(decisionContext, submission, vote, voter);
  // An invited person is not a member yet; and a parent's policies are not disclosed to members of its
  // sub-organization.
  const reader = { isForCaller: !isGuest, isForMembers: authority === undefined };
  const found = decisionContext.found ?? {};
  if (readsResources(definition) && !(found.couldBeAllowed ??= couldAllow(questionOn({}), [voter], context))) {
    const nothing = questionOn(notRead);
    throw denialOf(authorize(nothing, [voter], context), nothing, [voter], context, reader);
  }
  let question: AuthorizationRequest | undefined;
  const asking = () => (question ??= questionOn(aboutOf(definition, intent, decisionContext)));
  const requested = (found.authorization ??= authorize(asking(), [voter], context));
  const word = wordOf(requested, [voter], authority !== undefined);
  const member = authority ? undefined : memberInTheWay(decisionContext, definition, intent, requested, word);
  if (member !== undefined && !decisionContext.organization.rootQuorum.userIds.includes(voter.userId))
    throw theirsAlone(member);
  const authorization = member === undefined ? requested : waitingForQuorum(requested);
  const { outcome } = authorization;
  // Votes are cast in the organization of the activity, where users of the parent cannot vote.
  // And a result that only the response to the submission contains could reach nobody.
  const isOutOfReach = (authority ?? definition.reveal) !== undefined && outcome === 'consensus-needed';
  if (outcome === 'deny-explicit' || outcome === 'deny-implicit' || isOutOfReach)
    throw denialOf(authorization, asking(), [voter], context, reader);
  if (!authority)
    checkRecordedBytes(
      decisionContext.organization,
      vote.message,
      decisionContext.now,
      limitsToCheck(decisionContext).limits,
    );
  readFirst(definition, intent, decisionContext);
  if (definition.recall && !prepared)
    definition.check?.(intent, decisionContext.organization, limitsToCheck(decisionContext));
  if (outcome === 'allow' && definition.recall && !prepared) return { kind: 'prepare' };

  const snapshot = afterSubmit(outcome);
  const decision = decisionOf(vote, authorization, decisionContext, {
    ...(authority
      ? { authority: { organizationId: authority.organization.organizationId, revision: authority.revision } }
      : {}),
    ...(submission.found ? { resolution: submission.found } : {}),
  });
  const submitted: ActivityEvent = {
    type: 'ActivitySubmitted',
    data: {
      activityId,
      type,
      intent: parameters,
      fingerprint,
      timestampMs,
      status: activityStatus(snapshot),
      vote,
      decision,
      ...(generateAppProofs === undefined ? {} : { generateAppProofs }),
    },
  };
  if (outcome === 'allow') {
    const effects = execute(decisionContext, definition, intent, activityId, vote, prepared, word);
    const ending = endOf(activityId, snapshot, effects);
    const events = [submitted, ...effects.events, ending];
    return 'failure' in effects
      ? { kind: 'decided', outcome, events, refusal: effects.failure }
      : { kind: 'decided', outcome, events, ...afterwardsOf(definition, prepared) };
  }
  checkRoomToWait(decisionContext.organization, voter.userId, vote.message, limitsToCheck(decisionContext).limits);
  // Decided, and thrown away, as long as votes are needed: what cannot be done should not be voted on.
  if (!definition.recall) execute(decisionContext, definition, intent, activityId, vote, prepared);
  return { kind: 'decided', outcome, events: [submitted] };
}
