import type { Policy, PolicyUser } from '../../domain/policy/types.js';
import type { Change } from './changes.js';
import type { Facts } from './facts.js';
import type { PolicyTold, Proof } from './proof.js';

/** Most users whose vote, or whose request, is tried; and most tags, and policies whose clauses are. */
const mostUsers = 100;
const mostTags = 20;
/** Users whose tags are tried besides those of the submitter and of who has approved. */
const mostLikely = 8;
const mostPolicies = 50;

/** Single changes that may be part of a flip, the likeliest first. */
export interface Candidates {
  readonly changes: readonly Change[];
  /** There are more than are tried. */
  readonly isCut: boolean;
}

/** What could be otherwise: votes, tags, policies, who asks, who is in the root quorum. */
export function candidateChanges(facts: Facts, proof: Proof): Candidates {
  const { request, approvals, context } = facts;
  const requested = new Map(
    proof.parts.flatMap(({ policies }) => policies.filter(({ isAsked }) => isAsked)).map((one) => [one.policyId, one]),
  );
  const policies = [...context.policies].filter(({ policyId }) => requested.has(policyId));
  const texts = textsIn(policies);
  const people = [...context.users].filter(({ userId }) => !facts.isNobody?.(userId));
  const users = likelyFirst(people, context.rootQuorum.userIds, texts);
  const tags = texts.tags.slice(0, mostTags);
  const concerned = [request.submitterId, ...approvals.map(({ userId }) => userId)];
  const ids = users.slice(0, mostUsers).map(({ userId }) => userId);
  const changes: Change[] = [
    ...[...requested.values()].filter(isDenying).map(({ policyId }): Change => ({ kind: 'policy-gone', policyId })),
    ...ids.slice(0, mostLikely).map((userId): Change => ({ kind: 'vote', userId })),
    ...[...new Set([...concerned, ...ids.slice(0, mostLikely)])].flatMap((userId) => tagChanges(userId, tags)),
    ...ids.slice(mostLikely).map((userId): Change => ({ kind: 'vote', userId })),
    ...ids.map((userId): Change => ({ kind: 'asked-by', userId })),
    ...[...requested.values()].slice(0, mostPolicies).flatMap(clauseChanges),
    ...speaking(proof).map((policyId): Change => ({ kind: 'policy-gone', policyId })),
    { kind: 'root-quorum-member', userId: request.submitterId },
  ];
  const isCut =
    users.length > mostUsers || texts.tags.length > mostTags || requested.size > mostPolicies || proof.isCut;
  return { changes, isCut };
}

const isDenying = ({ outcome }: PolicyTold): boolean => outcome === 'OUTCOME_DENY_EXPLICIT';

const tagChanges = (userId: string, tags: readonly string[]): readonly Change[] =>
  tags.flatMap((tagId): Change[] => [
    { kind: 'tag-added', userId, tagId },
    { kind: 'tag-removed', userId, tagId },
  ]);

/** The clauses that keep an ALLOW from applying. */
function clauseChanges({ policyId, effect, clauses }: PolicyTold): readonly Change[] {
  if (effect !== 'EFFECT_ALLOW') return [];
  const failing = clauses.filter(
    ({ value, doubt, isMet }) => value !== 'true' || doubt !== undefined || isMet === false,
  );
  return failing.map(({ clause }): Change => ({ kind: 'clause-gone', policyId, clause }));
}

/** Policies that keep users from managing their own credentials. */
const speaking = (proof: Proof): readonly string[] => [
  ...new Set(proof.parts.flatMap(({ spokenToBy = [] }) => spokenToBy)),
];

/** The literal texts of policies, and those of them that may be tags. A literal has no quotes in it. */
function textsIn(policies: readonly Policy[]): { readonly all: ReadonlySet<string>; readonly tags: readonly string[] } {
  const all = new Set<string>();
  const tags = new Set<string>();
  for (const { condition = '', consensus = '' } of policies) {
    for (const text of [condition, consensus]) {
      const literals = Array.from(text.matchAll(/'([^']*)'/g), ([, literal]) => literal!);
      for (const literal of literals) all.add(literal);
      if (/\btags\b/.test(text)) for (const literal of literals) tags.add(literal);
    }
  }
  return { all, tags: [...tags] };
}

/** Members of the root quorum and users whom policies name, or whose tags they name, before all others. */
function likelyFirst(
  users: readonly PolicyUser[],
  members: readonly string[],
  { all }: { readonly all: ReadonlySet<string> },
): readonly PolicyUser[] {
  if (users.length <= mostUsers) return users;
  const isLikely = ({ userId, tags }: PolicyUser) =>
    members.includes(userId) || all.has(userId) || tags.some((tag) => all.has(tag));
  const likely = users.filter(isLikely);
  return [...likely, ...users.filter((user) => !isLikely(user))];
}
