import { CoordinatorError } from '../../domain/errors.js';
import { existingAuthProxy } from '../../domain/organization/auth-proxy.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { defineActivity } from '../define-activity.js';

class DisableAuthProxyIntent {}

class DisableAuthProxyResult {}

/** Disables the auth proxy at once: configuration, user, key and policy are deleted, and the sealed key is shredded. */
export const disableAuthProxy = defineActivity({
  type: 'ACTIVITY_TYPE_DISABLE_AUTH_PROXY',
  summary:
    'Disables the auth proxy at once: deletes its configuration, user, key and policy, and shreds the sealed key.',
  intent: DisableAuthProxyIntent,
  result: DisableAuthProxyResult,
  policy: { resource: 'AUTH_PROXY', action: 'DELETE' },

  check(_intent, organization) {
    const { userId } = existingAuthProxy(organization);
    // Policies may grant this activity, but they must not change the root quorum.
    if (organization.rootQuorum.userIds.includes(userId)) {
      throw new CoordinatorError(
        'FAILED_PRECONDITION',
        `user \`${userId}\` of the auth proxy is a member of the root quorum: remove it with update_root_quorum first`,
      );
    }
  },

  decide(_intent, { organization }) {
    const { configId, vaultId, userId, policyId } = existingAuthProxy(organization);
    // User and policy can be deleted on their own; the rest is then still deleted.
    const events: OrganizationEvent[] = [{ type: 'AuthProxyDisabled', data: { configId, vaultId } }];
    if (organization.policies.has(policyId)) events.push({ type: 'PolicyDeleted', data: { policyId } });
    if (organization.users.has(userId)) events.push({ type: 'UserDeleted', data: { userId } });
    return { events, result: {} };
  },
});
