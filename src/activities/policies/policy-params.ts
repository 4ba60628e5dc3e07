import { presentMembers } from '../../domain/organization/event.js';
import {
  checkPolicyNameFree,
  maxPolicies,
  policyNameTaken,
  type PolicyEvent,
} from '../../domain/organization/policies.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { CoordinatorError } from '../../domain/errors.js';
import { checkKnownLiterals } from '../../domain/policy/known-literals.js';
import { checkPolicyText } from '../../domain/policy/language.js';
import { maxTextLength } from '../../domain/policy/parse.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import type { Clause, Policy } from '../../domain/policy/types.js';
import { Label, OneOf, Text } from '../../schema/fields.js';
import type { DecideContext } from '../define-activity.js';

/** What a policy does when it applies. */
export const effects: readonly Policy['effect'][] = ['EFFECT_ALLOW', 'EFFECT_DENY'];

/** One new policy, as `create_policy` takes it alone and `create_policies` in a list. */
export class CreatePolicyIntentV3 {
  @Label({ about: 'The name of the policy; no other policy of the organization may have it.' })
  policyName!: string;

  @OneOf(effects, { about: 'What the policy does to an activity it applies to.' })
  effect!: Policy['effect'];

  @Text({ optional: true, max: maxTextLength, about: 'When the policy applies; absent: to every activity.' })
  condition?: string;

  @Text({ optional: true, max: maxTextLength, about: 'Who must approve; absent: the submitter alone is enough.' })
  consensus?: string;

  @Text({ optional: true, about: 'A note for people.' })
  notes?: string;

  @Text({ optional: true, max: maxTextLength, about: 'When the policy is active; absent: always.' })
  time?: string;
}

/**
 * The events that create these policies, all or none, and their ids in the order given.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED, INVALID_ARGUMENT for a name that is taken or a clause that is wrong
 */
export function policiesCreated(
  policies: readonly CreatePolicyIntentV3[],
  { organization, policyEnvironment, newId }: DecideContext,
): { readonly policyIds: string[]; readonly events: PolicyEvent[] } {
  const count = organization.policies.size;
  if (count + policies.length > maxPolicies) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `an organization may have ${maxPolicies} policies: it has ${count}, and ${policies.length} more were sent; delete some first`,
    );
  }
  const names = new Set<string>();
  const events = policies.map((policy, index): Extract<PolicyEvent, { type: 'PolicyCreated' }> => {
    const { policyName, effect, condition, consensus, time, notes = '' } = policy;
    checkPolicyNameFree(organization, policyName);
    if (names.has(policyName)) throw policyNameTaken(policyName, 'this request names it twice');
    names.add(policyName);
    const clauses = presentMembers({ condition, consensus, time });
    const where = policies.length > 1 ? ` (policies[${index}], \`${policyName}\`)` : '';
    checkClauses(clauses, policyEnvironment, organization, where);
    return { type: 'PolicyCreated', data: { policyId: newId(), policyName, effect, ...clauses, notes } };
  });
  return { policyIds: events.map(({ data }) => data.policyId), events };
}

/**
 * Parses and type-checks the clauses that are there, and looks up what they compare with; `where` is put behind the reason.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkClauses(
  clauses: { readonly [Name in Clause]?: string },
  environment: PolicyEnvironment,
  organization: OrganizationView,
  where = '',
): void {
  try {
    for (const clause of ['condition', 'consensus', 'time'] as const) {
      const text = clauses[clause];
      if (text !== undefined) checkPolicyText(text, clause, environment);
    }
    checkKnownLiterals(clauses, environment, organization);
  } catch (error) {
    if (!(error instanceof CoordinatorError) || where === '') throw error;
    const { code, message, category, details, cause } = error;
    throw new CoordinatorError(code, `${message}${where}`, { ...(category ? { category } : {}), details, cause });
  }
}
