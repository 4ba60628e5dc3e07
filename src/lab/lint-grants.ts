import { reads } from '../domain/policy/literals.js';
import { deniesWhoever, truthForAll } from './lint-reach.js';
import { finding, type Finding, type Linting, type ReadPolicy } from './lint-subject.js';

/** Kinds of activities that make users. */
const makeUsers = ['CREATE_USERS', 'CREATE_API_ONLY_USERS', 'CREATE_INVITATIONS'];
const giveTags: ReadonlySet<string> = new Set([
  ...makeUsers,
  'UPDATE_USER',
  'CREATE_USER_TAG',
  'UPDATE_USER_TAG',
  'DELETE_USER_TAGS',
]);
const tagFields: ReadonlySet<string> = new Set(['User.tags']);

/** What others may do that makes a policy weaker than it seems. */
export function lintGrants(linting: Linting): readonly Finding[] {
  return [...tagGivers(linting)];
}

/** The ALLOWs that may allow activities of these kinds, as far as no DENY keeps them for the root quorum. */
function granting({ policies, steps }: Linting, kinds: ReadonlySet<string>) {
  const denials = policies.filter(deniesWhoever);
  return policies.flatMap((one) => {
    if (one.policy.effect !== 'EFFECT_ALLOW') return [];
    const given = one.admits.filter(
      (activity) =>
        kinds.has(activity.kind) && !denials.some(({ condition }) => truthForAll(condition, activity, steps) === true),
    );
    return given.length === 0 ? [] : [{ one, kinds: [...new Set(given.map(({ kind }) => kind))] }];
  });
}

const placeOf = ({ policy }: ReadPolicy) =>
  policy.condition === undefined ? undefined : { clause: 'condition' as const };

/** Tags that users can be given without the root quorum are no stronger than the policy that allows it. */
function* tagGivers(linting: Linting): Generator<Finding> {
  const relying = linting.policies.find(({ condition, consensus }) =>
    [condition, consensus].some((clause) => clause && reads(clause, tagFields)),
  );
  if (!relying) return;
  for (const { one, kinds } of granting(linting, giveTags)) {
    yield finding(one.policy, placeOf(one), {
      code: 'tags-are-privileges',
      severity: 'warning',
      text: `it may allow ${kinds[0]!}, so those whom it allows can give tags to anyone, and \`${relying.policy.policyName}\` relies on tags`,
      help: `deny ${kinds.join(', ')} to all but the root quorum (company policies, 10), or say what this policy is about`,
    });
  }
}
