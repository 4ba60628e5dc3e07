import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import type { Vote } from '../domain/activity/events.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { authorize, couldAllow, type Authorization } from '../domain/policy/authorize.js';
import { explain, votesMissing } from '../domain/policy/explain.js';
import { withTheRest } from '../domain/policy/policy-set.js';
import type { AuthorizationContext } from '../domain/policy/request-evaluation.js';
import type { Approval, AuthorizationRequest } from '../domain/policy/types.js';
import { changedMember, waiting } from './approvals.js';
import { metered, type DecisionContext, type Submission, type Voter } from './decision-context.js';
import {
  aboutOf,
  aboutStillThere,
  notRead,
  policyContext,
  readsResources,
  submitQuestion,
} from './authorization-request.js';
import { explainedOutcomes, PolicyDenial, type ExplainedOutcome } from './refusals.js';
import { activityVersion, newestIntent } from './registry.js';
import { couldHaveRights } from './rights.js';
import { waitsForOf, type WaitsFor } from './waits-for.js';

/** A denial with an explanation of what decided it, for those who may see that. */
export function denialOf(
  authorization: Authorization,
  question: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
  reader = { isForCaller: true, isForMembers: true },
): PolicyDenial {
  const evaluations = ofEveryPolicy(authorization);
  const because = explain(question, approvals, context, evaluations);
  return new PolicyDenial({ ...authorization, evaluations }, { policies: context.policies, because, ...reader });
}

/** The outcomes also of the policies that could not apply. */
function ofEveryPolicy({ evaluations, among }: Authorization): Authorization['evaluations'] {
  return among ? withTheRest(evaluations, among.policies) : evaluations;
}

/**
 * What a waiting activity is waiting for. Undefined for users who could never vote on something costly to read: someone
 * without rights must not cause that cost.
 */
export function waitsFor(input: DecisionContext, open: OpenActivity, userId: string): WaitsFor | undefined {
  const decisionContext = metered(input);
  if (!mayBeTold(decisionContext, open, userId)) return undefined;
  const { question, approvals, member } = waiting(decisionContext, open);
  const context = policyContext(decisionContext);
  // The auth proxy's user is nobody who could be asked, so it counts towards nothing either.
  const people = [...context.users].filter((user) => !isAuthProxyUser(decisionContext.organization, user.userId));
  const missing = votesMissing(question, approvals, { ...context, users: people });
  const isMemberMissing = member !== undefined && !approvals.some((approval) => approval.userId === member);
  return waitsForOf(missing, isMemberMissing ? member : undefined, decisionContext.organization);
}

/** The current outcome of each policy for a waiting activity, and what decided it. */
export function saysNow(
  input: DecisionContext,
  open: OpenActivity,
  userId: string,
): readonly ExplainedOutcome[] | undefined {
  const context = metered(input);
  if (!mayBeTold(context, open, userId)) return undefined;
  const { question, approvals } = waiting(context, open);
  return outcomesOf(question, approvals, policyContext(context));
}

/** What policies are asked in one decision, and on which facts. Its meter is that of the decision: for one use. */
export interface Asked {
  readonly request: AuthorizationRequest;
  readonly approvals: readonly Approval[];
  readonly context: AuthorizationContext;
  /** The member of the root quorum whose credentials or contacts it would change: only they or the quorum may. */
  readonly member?: string;
  /** Nobody could vote on it: what needs votes is denied. */
  readonly isAtOnce?: true;
}

/**
 * What `decideSubmit` asks on the same basis.
 * @throws {CoordinatorError} if what it is about cannot be read
 * @throws {ReadFirst}
 */
export function askedBySubmit(
  input: DecisionContext,
  submission: Pick<Submission, 'type' | 'intent'>,
  vote: Pick<Vote, 'publicKey'>,
  voter: Voter,
): Asked {
  const decisionContext = metered(input);
  const { definition, context, questionOn } = submitQuestion(decisionContext, submission, vote, voter);
  const isRead = !readsResources(definition) || couldAllow(questionOn({}), [voter], context);
  const about = isRead ? aboutOf(definition, submission.intent, decisionContext) : notRead;
  const member = voter.authority ? undefined : changedMember(decisionContext, definition, submission.intent);
  return {
    request: questionOn(about),
    approvals: [voter],
    context,
    ...(member === undefined ? {} : { member }),
    ...((voter.authority ?? definition.reveal) ? { isAtOnce: true } : {}),
  };
}

/**
 * What `decideVote` asks on the same basis; without a voter, of the approvals that there are.
 * @throws {ReadFirst}
 */
export function askedByVotes(input: DecisionContext, open: OpenActivity, voter?: Voter): Asked {
  const context = metered(input);
  const { question, approvals, member } = waiting(context, open);
  return {
    request: question,
    approvals: voter ? [...approvals, voter] : approvals,
    context: policyContext(context),
    ...(member === undefined ? {} : { member }),
  };
}

/** Each policy's outcome in a decision, and what decided it. */
export function outcomesAsked({ request, approvals, context }: Asked): readonly ExplainedOutcome[] {
  return outcomesOf(request, approvals, context);
}

function outcomesOf(question: AuthorizationRequest, approvals: readonly Approval[], context: AuthorizationContext) {
  const evaluations = ofEveryPolicy(authorize(question, approvals, context));
  return explainedOutcomes(evaluations, explain(question, approvals, context, evaluations), context.policies);
}

function mayBeTold(context: DecisionContext, open: OpenActivity, userId: string): boolean {
  return open.votes.some((vote) => vote.userId === userId) || couldHaveRights(context, open, userId);
}

/**
 * What an activity would sign, as policies read it now; undefined for one that signs nothing.
 * @throws {ReadFirst}
 */
export function toSignOf(context: DecisionContext, { type, intent: recorded }: Pick<OpenActivity, 'type' | 'intent'>) {
  const { definition, ...version } = activityVersion(context.registry, type);
  const { policy } = definition;
  const isSigning = policy !== 'root-quorum-only' && policy.action === 'SIGN' && readsResources(definition);
  if (!isSigning) return undefined;
  const intent = newestIntent({ ...version, definition }, recorded);
  return { ...aboutStillThere(definition, intent, context), texts: definition.texts?.(intent) ?? [] };
}
