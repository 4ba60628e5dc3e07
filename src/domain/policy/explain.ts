import { MeterSpent, OutOfSteps, Steps } from '../steps.js';
import type { DecidingPart } from './deciding-part.js';
import type { Evaluation, PartQuestion } from './part-evaluation.js';
import { partsOf, Question, type AuthorizationContext, type Part } from './request-evaluation.js';
import { isRootPossible } from './root-quorum.js';
import type { Approval, AuthorizationRequest, PolicyOutcome } from './types.js';

/** Maximum steps for explaining a decision, out of what the request has left: 10 ms. */
const maxStepsToExplain = 100_000;
/** Maximum characters of policies' texts in one explanation. */
const maxExplained = 8_192;

/** Deciding policies first, because there is not room for every policy. */
const worthTelling: readonly PolicyOutcome[] = [
  'OUTCOME_DENY_EXPLICIT',
  'OUTCOME_REQUIRES_CONSENSUS',
  'OUTCOME_ERROR',
  'OUTCOME_DENY_IMPLICIT',
  'OUTCOME_TIME_INACTIVE',
];

/**
 * For each evaluation of a decision just made, the part of the policy's text that decided it. Undefined for an ALLOW
 * that applies, for a DENY on everything, and if explaining would cost too much: an explanation has a budget, and
 * changes no decision.
 */
export function explain(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
  evaluations: readonly Evaluation[],
): readonly (DecidingPart | undefined)[] {
  const steps = (context.steps ?? new Steps()).upTo(maxStepsToExplain);
  const question = new Question(request, approvals, { ...context, steps });
  const policies = new Map(Array.from(context.policies, (policy) => [policy.policyId, policy]));
  const parts = partsOf(request);
  const requested = new Map<Part, PartQuestion>();
  const told = new Map<Evaluation, DecidingPart>();
  let room = maxExplained;
  const inOrder = evaluations.toSorted((a, b) => worthTelling.indexOf(a.outcome) - worthTelling.indexOf(b.outcome));
  for (const evaluation of inOrder) {
    const policy = policies.get(evaluation.policyId);
    const part = parts.find(({ name }) => name !== undefined && name === evaluation.payload) ?? parts[0];
    if (!policy || !part) continue;
    const ofPart = requested.get(part) ?? question.about(part);
    requested.set(part, ofPart);
    const because = withinSteps(() => ofPart.decidingPart(policy, evaluation));
    // What ran out of steps may have come out wrong.
    if (steps.isSpent || steps.left <= 0) break;
    if (!because || because.text.length > room) continue;
    room -= because.text.length;
    told.set(evaluation, because);
  }
  return evaluations.map((evaluation) => told.get(evaluation));
}

/** Nothing if the steps of the decision or of its request are used up: the decision stands without a reason. */
function withinSteps<Answer>(ask: () => Answer): Answer | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof OutOfSteps || error instanceof MeterSpent) return undefined;
    throw error;
  }
}

/** What votes could still achieve. */
export interface VotesMissing {
  /** The policies that wait for votes, any one of which is enough; for each payload, if they differ. */
  readonly policies: readonly {
    readonly policyId: string;
    readonly payload?: string;
    /** The part of its consensus that is not met. */
    readonly because?: DecidingPart;
    /** The fewest approvals that would do; undefined if finding out takes too long. */
    readonly fewest?: number;
    /** Users whose approval could count. */
    readonly userIds: readonly string[];
  }[];
  /** Ids of policies that deny it: then only the root quorum can still allow it. */
  readonly deniedBy?: readonly string[];
  /** The root quorum, if its members may vote. */
  readonly rootQuorum?: { readonly fewest: number; readonly userIds: readonly string[] };
}

/** What a waiting request waits for, as far as its budget allows. */
export function votesMissing(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): VotesMissing {
  const approved = new Set(approvals.map(({ userId }) => userId));
  const { threshold, userIds } = context.rootQuorum;
  const members = userIds.filter((userId) => !approved.has(userId));
  const rootQuorum = isRootPossible(context.rootQuorum, request)
    ? { rootQuorum: { fewest: threshold - (userIds.length - members.length), userIds: members } }
    : {};
  if (request.rootQuorumOnly) return { policies: [], ...rootQuorum };
  const steps = (context.steps ?? new Steps()).upTo(maxStepsToExplain);
  const question = new Question(request, approvals, { ...context, steps });
  const found: VotesMissing['policies'][number][] = [];
  const deniedBy = new Set<string>();
  for (const part of partsOf(request)) {
    const ofPart = question.about(part);
    const evaluations = ofPart.answers.map(({ evaluation }) => evaluation);
    // A DENY may be in doubt only because the explanation is at its end.
    if (steps.isSpent) break;
    const denying = evaluations.filter(({ outcome }) => outcome === 'OUTCOME_DENY_EXPLICIT');
    for (const { policyId } of denying) deniedBy.add(policyId);
    if (deniedBy.size > 0) continue;
    if (evaluations.some(({ outcome }) => outcome === 'OUTCOME_ALLOW')) continue;
    for (const [index, policy] of question.asked.entries()) {
      const evaluation = evaluations[index]!;
      if (evaluation.outcome !== 'OUTCOME_REQUIRES_CONSENSUS') continue;
      if (steps.left <= 0) return { policies: found, ...rootQuorum };
      const because = ofPart.decidingPart(policy, evaluation);
      const missing = question.missingFor(policy);
      found.push({
        policyId: policy.policyId,
        ...(part.name === undefined ? {} : { payload: part.name }),
        ...(because ? { because } : {}),
        ...missing,
        userIds: missing.userIds.filter((userId) => !approved.has(userId)),
      });
    }
  }
  if (deniedBy.size > 0) return { policies: [], deniedBy: [...deniedBy], ...rootQuorum };
  return { policies: alikeOnce(found, partsOf(request).length), ...rootQuorum };
}

/** What is missing for every payload appears once. */
function alikeOnce(found: VotesMissing['policies'], parts: number): VotesMissing['policies'] {
  const ofPolicy = new Map<string, number>();
  for (const { policyId } of found) ofPolicy.set(policyId, (ofPolicy.get(policyId) ?? 0) + 1);
  const told = new Set<string>();
  return found.flatMap((one) => {
    const { payload: _payload, ...alike } = one;
    if (ofPolicy.get(one.policyId)! < parts) return [one];
    if (told.has(one.policyId)) return [];
    told.add(one.policyId);
    return [alike];
  });
}
