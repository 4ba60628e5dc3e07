import type { AnyActivity, DecideContext } from '../activities/define-activity.js';
import type { PreparePorts } from '../ports/prepare.js';
import type { ActivityEvent, Decision, Vote } from '../domain/activity/events.js';
import { statusAfter, type ActivitySnapshot } from '../domain/activity/machine.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkQuorumMembers, isOnlyAbout, type Word } from '../domain/organization/quorum-members.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { checkLimits } from '../domain/organization/limits.js';
import { checkQuorumReachable } from '../domain/organization/login-methods.js';
import type { Authorization } from '../domain/policy/authorize.js';
import { derivedId } from '../ledger/ids.js';
import { type DecisionContext, limitsToCheck, type Prepared } from './decision-context.js';
import { policySetOfDecision } from './policy-set.js';

export function isPossible(definition: AnyActivity, intent: object, context: DecisionContext): boolean {
  try {
    definition.check?.(intent, context.organization, limitsToCheck(context));
    return true;
  } catch (error) {
    if (error instanceof CoordinatorError) return false;
    throw error;
  }
}

/**
 * Whether a waiting activity that somebody else submitted would affect only this user's own account, credentials, tags
 * or membership in the root quorum.
 */
export function concernsOnly(
  userId: string,
  context: DecisionContext,
  definition: AnyActivity,
  intent: object,
  { activityId, votes: [submission] }: OpenActivity,
): boolean {
  if (submission!.userId === userId) return false;
  // Its effects are known only once it is prepared. What takes long to read is about nobody's account, and is not read here.
  if (definition.recall || definition.ahead) return definition.touches?.(intent).data.userId === userId;
  try {
    const { events } = execute(context, definition, intent, activityId, submission!, undefined);
    return events.length > 0 && events.every((event) => isOnlyAbout(userId, event, context.organization));
  } catch (error) {
    if (error instanceof CoordinatorError) return false;
    throw error;
  }
}

/** What a verb decides on. */
export function decideContext(
  context: DecisionContext,
  activityId: string,
  { userId: submitterId, credentialId, attestation }: Vote,
  word?: Word,
): DecideContext {
  const { registry, organization, now } = context;
  let count = 0;
  return {
    organization,
    activityId,
    submitterId,
    credentialId,
    attestation,
    now,
    newId: () => derivedId(activityId, String(count++)),
    policyEnvironment: registry.policyEnvironment,
    ...(word ? { isRootQuorums: word.isRootQuorums } : {}),
    ...limitsToCheck(context),
  };
}

export function execute(
  decisionContext: DecisionContext,
  definition: AnyActivity,
  intent: object,
  activityId: string,
  submission: Vote,
  prepared: Prepared,
  word?: Word,
) {
  const { organization, now } = decisionContext;
  const context = decideContext(decisionContext, activityId, submission, word);
  definition.check?.(intent, organization, context);
  if (prepared && 'refusal' in prepared) throw prepared.refusal;
  const outcome = definition.decide(intent, context, prepared?.value);
  checkLimits(organization, outcome.events, context.limits);
  // Not during a trial run: the missing approval may still come.
  if (word) checkQuorumMembers(organization, outcome.events, word, 'login' in outcome ? outcome.login : undefined);
  if (!('leavesUnreachable' in outcome && outcome.leavesUnreachable)) {
    checkQuorumReachable(organization, outcome.events, now);
  }
  return outcome;
}

export function afterwardsOf(definition: AnyActivity, prepared: Prepared) {
  if (!definition.afterwards || !prepared || 'refusal' in prepared) return {};
  return { afterwards: (ports: PreparePorts) => definition.afterwards?.(prepared.value, ports) };
}

export function decisionOf(
  { voteId }: Vote,
  { outcome, by, evaluations, among }: Authorization,
  { revision, limits }: DecisionContext,
  more: Pick<Decision, 'authority' | 'resolution'> = {},
): Decision {
  const policySet = policySetOfDecision(among, evaluations);
  return {
    voteId,
    outcome,
    decidedBy: by,
    evaluations: evaluations,
    revision,
    rules: rulesNumber,
    ...(policySet ? { policySet } : {}),
    ...(limits ? { limits } : {}),
    ...more,
  };
}

export function endOf(
  activityId: string,
  pending: ActivitySnapshot,
  effects: { readonly result: object } | { readonly failure: CoordinatorError },
): ActivityEvent {
  if ('failure' in effects) return failed(activityId, pending, effects.failure);
  const status = statusAfter(pending, 'completed');
  return { type: 'ActivityCompleted', data: { activityId, status, result: { ...effects.result } } };
}

export function failed(
  activityId: string,
  pending: ActivitySnapshot,
  { code, message }: CoordinatorError,
): ActivityEvent {
  const status = statusAfter(pending, 'failed');
  return { type: 'ActivityFailed', data: { activityId, status, failure: { code, message } } };
}
