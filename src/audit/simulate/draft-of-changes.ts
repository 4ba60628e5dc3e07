import type { Draft } from '../../read-models/draft-shapes.js';
import { clauseNames, clauseOf, saysTheSame, type PolicyChanges, type PolicySaid } from '../policies/policy-changes.js';

/** Changes as a draft for `what_if`; undefined if nothing that is decided on changes. */
export function draftOf({ added, changed, removed, quorum }: PolicyChanges): Draft | undefined {
  const counted = changed.filter(({ was, is }) => !saysTheSame(was, is));
  // A draft cannot take a condition away.
  const [replaced, inPlace] = [true, false].map((isReplaced) =>
    counted.filter(({ was, is }) => (!!was.condition && !is.condition) === isReplaced),
  ) as [typeof counted, typeof counted];
  if (added.length + counted.length + removed.length === 0 && !quorum) return undefined;
  const lists = {
    policies: [...added, ...replaced.map(({ is }) => is)].map(drafted),
    changedPolicies: inPlace.map(({ was, is }) => ({
      policy: was.policyId,
      effect: is.effect,
      ...Object.fromEntries(
        clauseNames.flatMap((name) => (clauseOf(was, name) === clauseOf(is, name) ? [] : [[name, clauseOf(is, name)]])),
      ),
    })),
    withoutPolicies: [...removed, ...replaced.map(({ was }) => was)].map(({ policyId }) => policyId),
  };
  return {
    ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)),
    ...(quorum ? { rootQuorum: { threshold: quorum.is.threshold, users: [...quorum.is.userIds] } } : {}),
  };
}

function drafted({ policyName, effect, ...rest }: PolicySaid) {
  const clauses = clauseNames.flatMap((name) => (rest[name] === undefined ? [] : [[name, rest[name]] as const]));
  return { policyName, effect, ...Object.fromEntries(clauses) };
}
