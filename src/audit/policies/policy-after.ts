import { clauseNames, type HeldPolicy, type HeldSet, type PolicySaid, type Quorum } from './policy-changes.js';
import type { PolicyStep } from './policy-steps.js';

/** What an organization has after an activity; `ids` are those that it gave to what it made, in order. */
export function afterStep(held: HeldSet, { type, names, parameters }: PolicyStep, ids: readonly string[]): HeldSet {
  switch (type) {
    case 'ACTIVITY_TYPE_CREATE_USER_TAG':
      return { ...held, tags: [...held.tags, ...names.map((tagName, at) => ({ tagName, tagId: ids[at] ?? '' }))] };
    case 'ACTIVITY_TYPE_CREATE_POLICIES': {
      const made = (parameters['policies'] as readonly PolicySaid[]).map((policy, at): HeldPolicy => ({
        ...policy,
        notes: policy.notes ?? '',
        policyId: ids[at] ?? '',
      }));
      return { ...held, policies: [...held.policies, ...made] };
    }
    case 'ACTIVITY_TYPE_UPDATE_POLICY_V2':
      return {
        ...held,
        policies: held.policies.map((policy) =>
          policy.policyId === parameters['policyId'] ? updated(policy, parameters) : policy,
        ),
      };
    case 'ACTIVITY_TYPE_DELETE_POLICIES': {
      const gone = new Set(parameters['policyIds'] as readonly string[]);
      return { ...held, policies: held.policies.filter(({ policyId }) => !gone.has(policyId)) };
    }
    case 'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM':
      return { ...held, quorum: parameters as unknown as Quorum };
  }
}

function updated(policy: HeldPolicy, parameters: PolicyStep['parameters']): HeldPolicy {
  const { policyName, policyEffect, policyCondition, policyConsensus, policyNotes, time } = parameters;
  const input = Object.entries({
    policyName,
    effect: policyEffect,
    condition: policyCondition,
    consensus: policyConsensus,
    time,
    notes: policyNotes,
  }).filter(([, value]) => value !== undefined);
  return { ...policy, ...Object.fromEntries(input) };
}

/** The first thing in which an organization is not as it is expected to be, in words. */
export function firstDifference(expected: HeldSet, found: HeldSet): string | undefined {
  const ids = new Set([...expected.policies, ...found.policies].map(({ policyId }) => policyId));
  for (const policyId of ids) {
    const [one, other] = [expected, found].map(({ policies }) =>
      policies.find((policy) => policy.policyId === policyId),
    );
    if (!one) return `there is a policy \`${other!.policyName}\` (${policyId})`;
    if (!other) return `the policy \`${one.policyName}\` (${policyId}) is gone`;
    if (shown(one) !== shown(other)) return `the policy \`${other.policyName}\` (${policyId}) says something else`;
  }
  const tags = ({ tags: all }: HeldSet) => all.map(({ tagId, tagName }) => `${tagId} ${tagName}`).sort();
  const [was, is] = [new Set(tags(expected)), new Set(tags(found))];
  const tag = [...was].find((one) => !is.has(one)) ?? [...is].find((one) => !was.has(one));
  if (tag !== undefined) return `the tag \`${tag.slice(37)}\` (${tag.slice(0, 36)}) is another`;
  const [before, now] = [expected.quorum, found.quorum].map(({ threshold, userIds }) => [
    threshold,
    ...[...userIds].sort(),
  ]);
  return String(before) === String(now) ? undefined : 'the root quorum is another';
}

const shown = (policy: HeldPolicy): string =>
  JSON.stringify([
    policy.policyName,
    policy.effect,
    policy.notes,
    ...clauseNames.map((clause) => policy[clause] ?? ''),
  ]);
