import type { Clause, Policy, PolicyUser } from '../../domain/policy/types.js';
import type { Facts } from './facts.js';

/** One change of the facts that a decision rests on. */
export type Change =
  /** The user approves, with the first credential they have. */
  | { readonly kind: 'vote'; readonly userId: string }
  /** The user asks for it instead. */
  | { readonly kind: 'asked-by'; readonly userId: string }
  | { readonly kind: 'tag-added' | 'tag-removed'; readonly userId: string; readonly tagId: string }
  | { readonly kind: 'policy-gone'; readonly policyId: string }
  /** The policy without that clause, which then restricts nothing. */
  | { readonly kind: 'clause-gone'; readonly policyId: string; readonly clause: Clause }
  | { readonly kind: 'root-quorum-member'; readonly userId: string };

/** The facts as they would be after the changes, in their order; undefined if one of them is not possible. */
export function changed(facts: Facts, changes: readonly Change[]): Facts | undefined {
  return changes.reduce<Facts | undefined>((known, change) => known && changedOnce(known, change), facts);
}

function changedOnce(facts: Facts, change: Change): Facts | undefined {
  const { request, approvals, context } = facts;
  switch (change.kind) {
    case 'vote': {
      const approval = approvalOf(facts, change.userId);
      if (!approval || approvals.some(({ userId }) => userId === change.userId)) return undefined;
      return { ...facts, approvals: [...approvals, approval] };
    }
    case 'asked-by': {
      const approval = approvalOf(facts, change.userId);
      if (!approval || request.submitterId === change.userId) return undefined;
      // Whether it would manage that user's own credentials is not asked: without it, nothing is allowed that is not.
      return {
        ...facts,
        request: { ...request, submitterId: change.userId, isWaiting: false, ownCredentials: false },
        approvals: [approval],
      };
    }
    case 'tag-added':
    case 'tag-removed':
      return withTag(facts, change.userId, change.tagId, change.kind === 'tag-added');
    case 'policy-gone':
      return withPolicies(facts, change.policyId, () => []);
    case 'clause-gone':
      return withPolicies(facts, change.policyId, (policy) => withoutClause(policy, change.clause));
    case 'root-quorum-member': {
      const { rootQuorum } = context;
      const { userId } = change;
      if (rootQuorum.userIds.includes(userId) || !userOf(facts, userId)) return undefined;
      return {
        ...facts,
        context: { ...context, rootQuorum: { ...rootQuorum, userIds: [...rootQuorum.userIds, userId] } },
      };
    }
  }
}

function withTag(facts: Facts, userId: string, tagId: string, isAdded: boolean): Facts | undefined {
  const user = userOf(facts, userId);
  if (!user || user.tags.includes(tagId) === isAdded) return undefined;
  const tags = isAdded ? [...user.tags, tagId] : user.tags.filter((tag) => tag !== tagId);
  const users = [...facts.context.users].map((one) => (one.userId === userId ? { ...one, tags } : one));
  const byId = new Map(users.map((one) => [one.userId, one]));
  return { ...facts, context: { ...facts.context, users, user: (id) => byId.get(id) } };
}

function withPolicies(
  facts: Facts,
  policyId: string,
  change: (policy: Policy) => readonly Policy[],
): Facts | undefined {
  const policies = [...facts.context.policies];
  if (!policies.some((policy) => policy.policyId === policyId)) return undefined;
  const after = policies.flatMap((policy) => (policy.policyId === policyId ? change(policy) : [policy]));
  return { ...facts, context: { ...facts.context, policies: after } };
}

function withoutClause(policy: Policy, clause: Clause): readonly Policy[] {
  const { [clause]: _gone, ...rest } = policy;
  return [rest];
}

function approvalOf(facts: Facts, userId: string) {
  const [credential] = userOf(facts, userId)?.credentials ?? [];
  return credential && { userId, credential };
}

function userOf({ context }: Facts, userId: string): PolicyUser | undefined {
  if (context.user) return context.user(userId);
  return [...context.users].find((user) => user.userId === userId);
}
