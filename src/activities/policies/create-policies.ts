import { ListOf, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { CreatePolicyIntentV3, policiesCreated } from './policy-params.js';

class CreatePoliciesIntent {
  @ListOf(() => CreatePolicyIntentV3, { min: 1, about: 'The new policies. All are created, or none.' })
  policies!: CreatePolicyIntentV3[];
}

class CreatePoliciesResult {
  @UuidList()
  policyIds!: string[];
}

/** Creates several policies at once. */
export const createPolicies = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_POLICIES',
  summary: 'Creates several policies, all or none.',
  intent: CreatePoliciesIntent,
  result: CreatePoliciesResult,
  policy: { resource: 'POLICY', action: 'CREATE' },
  foreseen: ({ policies }) => policies.map((data) => ({ type: 'PolicyCreated', data })),

  decide({ policies }, context) {
    const { policyIds, events } = policiesCreated(policies, context);
    return { events, result: { policyIds } };
  },
});
