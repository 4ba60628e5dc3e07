import { disableAuthProxy } from '../../../src/activities/auth-proxy/disable-auth-proxy.js';
import { vaultsEndedBy } from '../../../src/domain/organization/vaults.js';
import { anOrganization } from '../facts.js';
import { given, id } from '../given.js';
import { enabledProxy } from './facts.js';

const disabled = { type: 'AuthProxyDisabled', data: { configId: id(304), vaultId: id(305) } } as const;

describe('disable auth proxy', () => {
  it('removes the configuration, the policy and the user with the key, and ends the vault', () => {
    given(anOrganization(), ...enabledProxy)
      .when(disableAuthProxy, {})
      .then(
        [
          disabled,
          { type: 'PolicyDeleted', data: { policyId: id(303) } },
          { type: 'UserDeleted', data: { userId: id(301) } },
        ],
        {},
      );
    expect(vaultsEndedBy(disabled)).toEqual([id(305)]);
  });

  it('removes what is left when the user and the policy were deleted before', () =>
    given(
      anOrganization(),
      ...enabledProxy,
      { type: 'PolicyDeleted', data: { policyId: id(303) } },
      { type: 'UserDeleted', data: { userId: id(301) } },
    )
      .when(disableAuthProxy, {})
      .then([disabled], {}));

  it('refuses where there is none', () =>
    given(anOrganization())
      .when(disableAuthProxy, {})
      .thenRefused('FAILED_PRECONDITION', /has no auth proxy/));

  it('refuses while its user is in the root quorum', () =>
    given(anOrganization(), ...enabledProxy, { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [id(301)] } })
      .when(disableAuthProxy, {})
      .thenRefused('FAILED_PRECONDITION', /root quorum: remove it/));
});
