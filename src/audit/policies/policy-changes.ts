import type { Policy } from '../../domain/policy/types.js';

/** What a policy says. */
export interface PolicySaid {
  readonly policyName: string;
  readonly effect: Policy['effect'];
  readonly condition?: string;
  readonly consensus?: string;
  readonly time?: string;
  readonly notes: string;
}

/** A policy as an organization has it. */
export interface HeldPolicy extends PolicySaid {
  readonly policyId: string;
}

/** Who makes up the root quorum, and how many of them must approve. */
export interface Quorum {
  readonly threshold: number;
  readonly userIds: readonly string[];
}

/** What an organization has of what a folder of policies speaks about. */
export interface HeldSet {
  readonly policies: readonly HeldPolicy[];
  readonly tags: readonly { readonly tagId: string; readonly tagName: string }[];
  readonly quorum: Quorum;
}

/** What there is to be: all policies, tags, and the root quorum, if it is said. */
export interface WantedSet {
  readonly policies: readonly PolicySaid[];
  readonly tags: readonly string[];
  readonly quorum?: Quorum;
}

/** A policy that is to say something else. */
export interface ChangedPolicy {
  readonly was: HeldPolicy;
  readonly is: PolicySaid;
}

/** How an organization differs from what there is to be. */
export interface PolicyChanges {
  readonly tags: readonly string[];
  readonly added: readonly PolicySaid[];
  readonly changed: readonly ChangedPolicy[];
  readonly removed: readonly HeldPolicy[];
  readonly quorum?: { readonly was: Quorum; readonly is: Quorum };
}

/** The clauses of a policy. */
export const clauseNames = ['condition', 'consensus', 'time'] as const;

/**
 * Compares an organization with what there is to be. Policies and tags are told apart by their names; of tags, only missing
 * ones are a change.
 */
export function policyChanges(held: HeldSet, wanted: WantedSet): PolicyChanges {
  const names = new Set(wanted.policies.map(({ policyName }) => policyName));
  const byName = new Map(held.policies.map((policy) => [policy.policyName, policy]));
  const tagNames = new Set(held.tags.map(({ tagName }) => tagName));
  const changed = wanted.policies.flatMap((is): ChangedPolicy[] => {
    const was = byName.get(is.policyName);
    return was && !(saysTheSame(was, is) && was.notes === is.notes) ? [{ was, is }] : [];
  });
  return {
    tags: [...new Set(wanted.tags)].filter((name) => !tagNames.has(name)),
    added: wanted.policies.filter(({ policyName }) => !byName.has(policyName)),
    changed,
    removed: held.policies.filter(({ policyName }) => !names.has(policyName)),
    ...(wanted.quorum && !isSameQuorum(held.quorum, wanted.quorum)
      ? { quorum: { was: held.quorum, is: wanted.quorum } }
      : {}),
  };
}

/** Whether two policies have the same effect and the same clauses. */
export function saysTheSame(one: PolicySaid, other: PolicySaid): boolean {
  return (
    one.effect === other.effect && clauseNames.every((clause) => clauseOf(one, clause) === clauseOf(other, clause))
  );
}

/**
 * A clause as it is evaluated. An absent consensus or time is `true`. An absent condition is not: an ALLOW without one does
 * not keep users from their own credentials.
 */
export function clauseOf(policy: PolicySaid, clause: (typeof clauseNames)[number]): string {
  return policy[clause] || (clause === 'condition' ? '' : 'true');
}

/** Whether there is nothing to do. */
export function isNothing({ tags, added, changed, removed, quorum }: PolicyChanges): boolean {
  return quorum === undefined && [tags, added, changed, removed].every(({ length }) => length === 0);
}

function isSameQuorum(one: Quorum, other: Quorum): boolean {
  const [members, others] = [new Set(one.userIds), new Set(other.userIds)];
  return (
    one.threshold === other.threshold && members.size === others.size && [...others].every((id) => members.has(id))
  );
}
