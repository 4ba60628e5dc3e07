import { hash } from 'node:crypto';
import {
  clauseNames,
  clauseOf,
  saysTheSame,
  type ChangedPolicy,
  type HeldPolicy,
  type PolicyChanges,
  type PolicySaid,
  type Quorum,
} from './policy-changes.js';

/** An activity that brings an organization nearer to what there is to be. */
export interface PolicyStep {
  readonly type:
    | 'ACTIVITY_TYPE_CREATE_USER_TAG'
    | 'ACTIVITY_TYPE_CREATE_POLICIES'
    | 'ACTIVITY_TYPE_UPDATE_POLICY_V2'
    | 'ACTIVITY_TYPE_DELETE_POLICIES'
    | 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM';
  /** The tags or policies that it is about. */
  readonly names: readonly string[];
  /** What is submitted. Ids of what an earlier step makes are missing: only the first group can be submitted. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Most policies that one activity creates or deletes. */
const mostAtOnce = 100;

/** Whether a policy may let somebody change another user; members of the root quorum are exempt from that. */
export type ReachesUsers = (policy: PolicySaid) => boolean;

/** Why no order of the steps would be safe; undefined if there is one. */
export function unsafeQuorum(
  changes: PolicyChanges,
  policies: readonly HeldPolicy[],
  reachesUsers: ReachesUsers,
): string | undefined {
  const { quorum } = changes;
  if (!quorum || !leaves(quorum) || !isQuorumFirst(changes, reachesUsers)) return undefined;
  const reaching = policies.find(reachesUsers);
  if (!reaching) return undefined;
  return (
    `members join and leave the root quorum while policies change, and \`${reaching.policyName}\` may let somebody change ` +
    'the users who leave while it still holds: first let the new members join and apply that, then remove the others'
  );
}

/** Who joins the root quorum is to be protected before a new policy lets others change them. */
function isQuorumFirst({ added, changed, quorum }: PolicyChanges, reachesUsers: ReachesUsers): boolean {
  const coming = [...added, ...changed.filter(counts).map(({ is }) => is)];
  return quorum !== undefined && joins(quorum) && coming.some(reachesUsers);
}

/**
 * The activities that make the changes, in groups; within a group any order will do. Each of them may wait for votes, so
 * after each, whatever passes would pass under the policies from before, or under those that there are to be. Where changing
 * a policy in place would open a gap, a copy of what it will say stands in for it until the end.
 */
export function policySteps(changes: PolicyChanges, reachesUsers: ReachesUsers): readonly (readonly PolicyStep[])[] {
  const { tags, quorum } = changes;
  const [replaced, inPlace] = parted(changes.changed, isReplaced);
  const before = replaced.map(({ was }) => ({ was, is: { ...was, policyName: oldName(was) } }));
  const added = [...changes.added, ...replaced.map(({ is }) => is)];
  const removed = [...changes.removed, ...before.map(({ is }) => is)];
  const changed = inPlace;
  const standIns = needsStandIns({ added, changed, removed })
    ? changed.filter(counts).map(({ is }) => standIn(is, removed))
    : [];
  const standing = new Set(standIns.map(({ policyName }) => policyName));
  const isThere = (policy: PolicySaid): policy is HeldPolicy => 'policyId' in policy;
  // What was a DENY is one until no ALLOW from before is left.
  const [late, early] = parted(changed, ({ was }) => was.effect === 'EFFECT_DENY');
  const [first, rest] = parted(
    removed,
    ({ policyName, effect }) => late.some(counts) && effect === 'EFFECT_ALLOW' && !standing.has(policyName),
  );
  const quorumGroup = quorum ? [quorumChanged(quorum.is)] : [];
  const isFirst = isQuorumFirst(changes, reachesUsers);
  return [
    tags.map(tagCreated),
    ...(isFirst ? [quorumGroup] : []),
    before.map(policyUpdated),
    ...inChunks([...added, ...standIns.filter((one) => !isThere(one))], 'EFFECT_DENY').map(policiesCreated),
    early.map(policyUpdated),
    ...inChunks(first, 'EFFECT_ALLOW').map(policiesDeleted),
    late.map(policyUpdated),
    ...inChunks([...rest, ...standIns.filter((one) => !isThere(one))], 'EFFECT_ALLOW').map(policiesDeleted),
    ...(isFirst ? [] : [quorumGroup]),
  ].filter(({ length }) => length > 0);
}

/** Whether the change is one of what is decided: notes are for people. */
const counts = ({ was, is }: ChangedPolicy): boolean => !saysTheSame(was, is);

/** An update cannot take a condition away: the policy gets another name, and one is made in its place. */
const isReplaced = ({ was, is }: ChangedPolicy): boolean => !!was.condition && !is.condition;

const joins = ({ was, is }: { was: Quorum; is: Quorum }) => is.userIds.some((id) => !was.userIds.includes(id));
const leaves = ({ was, is }: { was: Quorum; is: Quorum }) => joins({ was: is, is: was });

/**
 * Whether a mixture of policies that changed already and those that did not yet could allow what neither set allows, or
 * leave out the last ALLOW that speaks about a credential.
 */
function needsStandIns({ added, changed, removed }: Pick<PolicyChanges, 'added' | 'changed' | 'removed'>): boolean {
  const [change, ...others] = changed.filter(counts);
  if (!change) return false;
  if (others.length > 0) return true;
  if (change.was.effect === 'EFFECT_ALLOW' && change.is.effect === 'EFFECT_ALLOW') return false;
  return [...added, ...removed].some(({ effect }) => effect === 'EFFECT_ALLOW');
}

const oldName = ({ policyName, policyId }: HeldPolicy): string =>
  `${shortened(policyName)} (before ${hash('sha256', policyId, 'hex').slice(0, 8)})`;

const shortened = (name: string): string => Array.from(name).slice(0, 200).join('');

/** The copy of what a policy will say, as it is there already or is to be made. */
function standIn(is: PolicySaid, removed: readonly HeldPolicy[]): PolicySaid {
  const said = JSON.stringify([is.effect, ...clauseNames.map((clause) => clauseOf(is, clause))]);
  const name = `${shortened(is.policyName)} (next ${hash('sha256', said, 'hex').slice(0, 8)}`;
  for (let number = 1; ; number++) {
    const policyName = number === 1 ? `${name})` : `${name}, ${number})`;
    const held = removed.find((policy) => policy.policyName === policyName);
    if (!held) return { ...is, policyName, notes: 'stands in for another policy while policies are applied' };
    // Somebody else may have made a policy of this name that says something else.
    if (saysTheSame(held, is)) return held;
  }
}

function tagCreated(userTagName: string): PolicyStep {
  return { type: 'ACTIVITY_TYPE_CREATE_USER_TAG', names: [userTagName], parameters: { userTagName, userIds: [] } };
}

function quorumChanged({ threshold, userIds }: Quorum): PolicyStep {
  return {
    type: 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM',
    names: [],
    parameters: { threshold, userIds: [...new Set(userIds)] },
  };
}

function policiesCreated(policies: readonly PolicySaid[]): readonly PolicyStep[] {
  const written = policies.map(({ policyName, effect, notes, ...rest }) => ({
    policyName,
    effect,
    ...Object.fromEntries(clauseNames.flatMap((clause) => (rest[clause] ? [[clause, rest[clause]]] : []))),
    ...(notes === '' ? {} : { notes }),
  }));
  return [{ type: 'ACTIVITY_TYPE_CREATE_POLICIES', names: namesOf(policies), parameters: { policies: written } }];
}

function policyUpdated({ was, is }: ChangedPolicy): PolicyStep {
  const clause = (name: (typeof clauseNames)[number], member: string) =>
    clauseOf(was, name) === clauseOf(is, name) ? {} : { [member]: clauseOf(is, name) };
  return {
    type: 'ACTIVITY_TYPE_UPDATE_POLICY_V2',
    names: [was.policyName],
    parameters: {
      policyId: was.policyId,
      ...(was.policyName === is.policyName ? {} : { policyName: is.policyName }),
      ...(was.effect === is.effect ? {} : { policyEffect: is.effect }),
      ...clause('condition', 'policyCondition'),
      ...clause('consensus', 'policyConsensus'),
      ...clause('time', 'time'),
      ...(was.notes === is.notes ? {} : { policyNotes: is.notes }),
    },
  };
}

function policiesDeleted(policies: readonly PolicySaid[]): readonly PolicyStep[] {
  const policyIds = policies.flatMap((policy) => ('policyId' in policy ? [policy.policyId] : []));
  return [{ type: 'ACTIVITY_TYPE_DELETE_POLICIES', names: namesOf(policies), parameters: { policyIds } }];
}

const namesOf = (policies: readonly PolicySaid[]) => policies.map(({ policyName }) => policyName);

/** In lists as long as an activity takes, those with the effect first. */
function inChunks(policies: readonly PolicySaid[], first: PolicySaid['effect']): readonly (readonly PolicySaid[])[] {
  const ordered = parted(policies, ({ effect }) => effect === first).flat();
  return Array.from({ length: Math.ceil(ordered.length / mostAtOnce) }, (_, at) =>
    ordered.slice(at * mostAtOnce, (at + 1) * mostAtOnce),
  );
}

function parted<Element>(all: readonly Element[], isFirst: (one: Element) => boolean): readonly [Element[], Element[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}
