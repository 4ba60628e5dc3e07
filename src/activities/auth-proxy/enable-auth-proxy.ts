import { CoordinatorError } from '../../domain/errors.js';
import { authProxyEnabled, authProxyPolicy } from '../../domain/organization/auth-proxy.js';
import { checkPolicyNameFree } from '../../domain/organization/policies.js';
import { checkRoomForUsers } from '../../domain/organization/users.js';
import { Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class EnableAuthProxyIntent {}

class EnableAuthProxyResult {
  @Uuid({ about: 'The user that the proxy signs as.' })
  userId!: string;

  @Uuid({ about: 'The id that clients of the proxy send as X-Auth-Proxy-Config-Id.' })
  configId!: string;
}

/**
 * Enables the auth proxy: a user with a sealed key, a policy for exactly what the proxy does, and a configuration. If
 * it is already enabled, nothing changes.
 */
export const enableAuthProxy = defineActivity({
  type: 'ACTIVITY_TYPE_ENABLE_AUTH_PROXY',
  summary:
    'Enables the auth proxy: creates its user with a sealed API key, a policy that allows only what it does, and a configuration.',
  intent: EnableAuthProxyIntent,
  result: EnableAuthProxyResult,
  policy: { resource: 'AUTH_PROXY', action: 'CREATE' },

  check(_intent, organization, { limits }) {
    const { organizationId, parentOrganizationId, authProxy, policies } = organization;
    if (parentOrganizationId !== undefined) {
      throw new CoordinatorError(
        'FAILED_PRECONDITION',
        `organization \`${organizationId}\` is a sub-organization: enable the auth proxy of its parent \`${parentOrganizationId}\``,
      );
    }
    if (authProxy) return;
    checkRoomForUsers(organization, 1, limits);
    checkPolicyNameFree(organization, authProxyPolicy('').policyName);
    if (policies.size >= limits.policies) {
      throw new CoordinatorError(
        'RESOURCE_EXHAUSTED',
        `an organization may have ${limits.policies} policies, and the auth proxy needs one: delete a policy first`,
      );
    }
  },

  prepare: async (_intent, { proxyKeys }, { organization: { organizationId, authProxy } }) =>
    authProxy ? undefined : proxyKeys.create(organizationId),

  recall(_intent, recorded) {
    const [enabled] = recorded.all('AuthProxyEnabled');
    return enabled && { vaultId: enabled.vaultId, publicKey: enabled.publicKey };
  },

  decide(_intent, { organization: { authProxy }, newId }, key) {
    if (authProxy) return { events: [], result: { userId: authProxy.userId, configId: authProxy.configId } };
    if (!key) throw new CoordinatorError('ABORTED', 'the auth proxy was disabled in the meantime: send a new request');
    const [userId, apiKeyId, policyId, configId] = [newId(), newId(), newId(), newId()];
    return {
      events: authProxyEnabled({ userId, apiKeyId, policyId, configId, ...key }),
      result: { userId, configId },
    };
  },
});
