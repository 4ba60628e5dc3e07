import type { Policy } from '../policy/types.js';
import type { DomainEvent, Evolvers } from './event.js';

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
    organization.policies.set(data.policyId, { ...data, createdAt: at, updatedAt: at });
  },
  PolicyUpdated(organization, data, at) {
    const policy = organization.policies.get(data.policyId);
    if (policy) organization.policies.set(data.policyId, { ...policy, ...data, updatedAt: at });
  },
  PolicyDeleted(organization, { policyId }) {
    organization.policies.delete(policyId);
  },
};
