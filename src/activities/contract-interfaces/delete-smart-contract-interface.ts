import { existingContractInterface } from '../../domain/organization/contract-interfaces.js';
import { checkNoDenialReads, checkNoPolicyReads } from '../../domain/policy/known-literals.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteSmartContractInterfaceIntent {
  @Uuid({ about: 'The interface to delete.' })
  smartContractInterfaceId!: string;
}

class DeleteSmartContractInterfaceResult {
  @Uuid()
  smartContractInterfaceId!: string;
}

/** Deletes the interface of a contract; policies can no longer read the functions of its calls. */
export const deleteSmartContractInterface = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE',
  summary: 'Deletes the interface of a contract; policies can no longer refer to its functions.',
  intent: DeleteSmartContractInterfaceIntent,
  result: DeleteSmartContractInterfaceResult,
  policy: { resource: 'SMART_CONTRACT_INTERFACE', action: 'DELETE' },

  check: ({ smartContractInterfaceId }, organization) =>
    void existingContractInterface(organization, smartContractInterfaceId),

  decide({ smartContractInterfaceId }, { organization, policyEnvironment, isRootQuorums = true }) {
    const existing = existingContractInterface(organization, smartContractInterfaceId);
    const { type, smartContractAddress } = existing;
    if (type === 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM') {
      checkNoDenialReads(smartContractAddress, policyEnvironment, organization);
    }
    // Whoever may also create one could otherwise give calls other names under a policy.
    if (!isRootQuorums) checkNoPolicyReads(existing, policyEnvironment, organization);
    return {
      events: [{ type: 'SmartContractInterfaceDeleted', data: { smartContractInterfaceId } }],
      result: { smartContractInterfaceId },
    };
  },
});
