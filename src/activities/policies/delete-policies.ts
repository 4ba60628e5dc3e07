import { existingPolicy } from '../../domain/organization/policies.js';
import { UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeletePoliciesIntent {
  @UuidList({ min: 1, about: 'The policies to delete, all or none.' })
  policyIds!: string[];
}

class DeletePoliciesResult {
  @UuidList()
  policyIds!: string[];
}

/** Deletes several policies at once. */
export const deletePolicies = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_POLICIES',
  summary: 'Deletes several policies, all or none.',
  intent: DeletePoliciesIntent,
  result: DeletePoliciesResult,
  policy: { resource: 'POLICY', action: 'DELETE' },

  decide({ policyIds }, { organization }) {
    const events = policyIds.map((policyId) => {
      existingPolicy(organization, policyId);
      return { type: 'PolicyDeleted', data: { policyId } } as const;
    });
    return { events, result: { policyIds } };
  },
});
