import { existingPolicy } from '../../domain/organization/policies.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeletePolicyIntent {
  @Uuid({ about: 'The policy to delete.' })
  policyId!: string;
}

class DeletePolicyResult {
  @Uuid()
  policyId!: string;
}

/** Deletes a policy. */
export const deletePolicy = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_POLICY',
  summary: 'Deletes a policy.',
  intent: DeletePolicyIntent,
  result: DeletePolicyResult,
  policy: { resource: 'POLICY', action: 'DELETE' },

  decide({ policyId }, { organization }) {
    existingPolicy(organization, policyId);
    return { events: [{ type: 'PolicyDeleted', data: { policyId } }], result: { policyId } };
  },
});
