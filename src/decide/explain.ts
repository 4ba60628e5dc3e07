import type { OpenActivity } from '../domain/organization/open-activities.js';
import { authorize, type Authorization } from '../domain/policy/authorize.js';
import { explain, votesMissing } from '../domain/policy/explain.js';
import type { AuthorizationContext } from '../domain/policy/question.js';
import type { Approval, AuthorizationRequest } from '../domain/policy/types.js';
import { waiting } from './approvals.js';
import { metered, type Basis } from './basis.js';
import { aboutStillThere, policyContext, readsResources } from './question.js';
import { clauseOf, PolicyDenial } from './refusals.js';
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
  const because = explain(question, approvals, context, authorization.evaluations);
  return new PolicyDenial(authorization, { policies: context.policies, because, ...reader });
}

/**
 * What a waiting activity is waiting for. Undefined for users who could never vote on something costly to read: someone
 * without rights must not cause that cost.
 */
export function waitsFor(given: Basis, open: OpenActivity, userId: string): WaitsFor | undefined {
  const basis = metered(given);
  if (!mayBeTold(basis, open, userId)) return undefined;
  const { question, approvals, member } = waiting(basis, open);
  const missing = votesMissing(question, approvals, policyContext(basis));
  const isMemberMissing = member !== undefined && !approvals.some((approval) => approval.userId === member);
  return waitsForOf(missing, isMemberMissing ? member : undefined, basis.organization);
}

/** The current outcome of each policy for a waiting activity, and what decided it. */
export function saysNow(given: Basis, open: OpenActivity, userId: string) {
  const basis = metered(given);
  if (!mayBeTold(basis, open, userId)) return undefined;
  const { question, approvals } = waiting(basis, open);
  const context = policyContext(basis);
  const { evaluations } = authorize(question, approvals, context);
  const because = explain(question, approvals, context, evaluations);
  return evaluations.map((evaluation, index) => {
    const clause = because[index];
    const { policyName } = basis.organization.policies.get(evaluation.policyId) ?? {};
    return {
      ...evaluation,
      ...(policyName === undefined ? {} : { policyName }),
      ...(clause ? { clause: clauseOf(clause) } : {}),
    };
  });
}

function mayBeTold(basis: Basis, open: OpenActivity, userId: string): boolean {
  return open.votes.some((vote) => vote.userId === userId) || couldHaveRights(basis, open, userId);
}

/**
 * What an activity would sign, as policies read it now; undefined for one that signs nothing.
 * @throws {ReadFirst}
 */
export function toSignOf(basis: Basis, { type, intent: recorded }: Pick<OpenActivity, 'type' | 'intent'>) {
  const { definition, ...version } = activityVersion(basis.registry, type);
  const { policy } = definition;
  const isSigning = policy !== 'root-quorum-only' && policy.action === 'SIGN' && readsResources(definition);
  if (!isSigning) return undefined;
  return aboutStillThere(definition, newestIntent({ ...version, definition }, recorded), basis);
}
