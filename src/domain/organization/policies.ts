import { CoordinatorError } from '../errors.js';
import type { Policy } from '../policy/types.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

export type PolicyEvent =
  | DomainEvent<
      'PolicyCreated',
      {
        policyId: string;
        policyName: string;
        effect: Policy['effect'];
        condition?: string;
        consensus?: string;
        time?: string;
        notes: string;
      }
    >
  | DomainEvent<
      'PolicyUpdated',
      {
        policyId: string;
        policyName?: string;
        effect?: Policy['effect'];
        condition?: string;
        consensus?: string;
        time?: string;
        notes?: string;
      }
    >
  | DomainEvent<'PolicyDeleted', { policyId: string }>;

export const evolvePolicies: Evolvers<PolicyEvent> = {
  PolicyCreated(organization, data, at) {
    put(organization, 'policies', data.policyId, { ...data, createdAt: at, updatedAt: at });
  },
  PolicyUpdated(organization, data, at) {
    const policy = organization.policies.get(data.policyId);
    if (policy) put(organization, 'policies', data.policyId, { ...policy, ...data, updatedAt: at });
  },
  PolicyDeleted(organization, { policyId }) {
    remove(organization, 'policies', policyId);
  },
};

/** The policy of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingPolicy(organization: OrganizationView, policyId: string): Policy {
  const policy = organization.policies.get(policyId);
  if (policy) return policy;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no policy \`${policyId}\` in organization \`${organization.organizationId}\`: see list_policies`,
  );
}

/**
 * Refuses a name that another policy has; `own` is the policy that may keep it.
 * @throws {CoordinatorError} INVALID_ARGUMENT; policy reconcilers look for its first words (docs/protocol.md, messages that clients match)
 */
export function checkPolicyNameFree(organization: OrganizationView, policyName: string, own?: string): void {
  for (const policy of organization.policies.values()) {
    if (policy.policyName === policyName && policy.policyId !== own) {
      throw policyNameTaken(policyName, `it is the name of policy \`${policy.policyId}\``);
    }
  }
}

/** The refusal of a name that is taken. */
export function policyNameTaken(policyName: string, why: string): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', `policy label must be unique: \`${policyName}\` is taken, ${why}`, {
    category: 'REQUEST_INVALID',
  });
}
