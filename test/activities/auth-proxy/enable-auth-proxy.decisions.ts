import { enableAuthProxy } from '../../../src/activities/auth-proxy/enable-auth-proxy.js';
import { buildRegistry, isVote } from '../../../src/decide/registry.js';
import { activities } from '../../../src/activities/index.js';
import { authorize } from '../../../src/domain/policy/authorize.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, publicKeyOf } from '../facts.js';
import { given, id } from '../given.js';
import { enabledProxy } from './facts.js';

const prepared = { vaultId: id(500), publicKey: publicKeyOf(7) };
const condition =
  "(activity.resource == 'AUTH' && activity.action == 'CREATE') || " +
  "(activity.resource == 'OTP' && activity.action == 'CREATE') || " +
  "(activity.resource == 'OTP' && activity.action == 'VERIFY') || " +
  "(activity.resource == 'ORGANIZATION' && activity.action == 'CREATE')";

describe('enable_auth_proxy', () => {
  describe('enable auth proxy', () => {
    it('makes a user with the sealed key, the policy for what it does, and a configuration', () =>
      given(anOrganization())
        .when(enableAuthProxy, {}, { prepared })
        .then(
          [
            { type: 'UserCreated', data: { userId: id(1), userName: 'Auth proxy', userTags: [] } },
            {
              type: 'ApiKeyCreated',
              data: {
                userId: id(1),
                apiKeyId: id(2),
                apiKeyName: 'Auth proxy key',
                publicKey: publicKeyOf(7),
                curve: 'API_KEY_CURVE_P256',
                credentialType: 'CREDENTIAL_TYPE_API_KEY_P256',
              },
            },
            {
              type: 'PolicyCreated',
              data: {
                policyId: id(3),
                policyName: 'Auth proxy',
                effect: 'EFFECT_ALLOW',
                consensus: `approvers.any(user, user.id == '${id(1)}')`,
                condition,
                notes: 'What the auth proxy may do for people who log in; disable_auth_proxy deletes it.',
              },
            },
            {
              type: 'AuthProxyEnabled',
              data: {
                configId: id(4),
                userId: id(1),
                policyId: id(3),
                vaultId: id(500),
                publicKey: publicKeyOf(7),
                settings: {
                  allowedOrigins: ['*'],
                  allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'],
                  verificationTokenRequiredForGetAccountPii: true,
                },
              },
            },
          ],
          { userId: id(1), configId: id(4) },
        ));

    it('leaves one that is already enabled as it is, and returns its configuration', () =>
      given(anOrganization(), ...enabledProxy)
        .when(enableAuthProxy, {})
        .then([], { userId: id(301), configId: id(304) }));

    it('is for parent organizations only', () =>
      given(anOrganization({ parentOrganizationId: id(701) }))
        .when(enableAuthProxy, {}, { prepared })
        .thenRefused('FAILED_PRECONDITION', new RegExp(`enable the auth proxy of its parent \`${id(701)}\``)));

    it('refuses while the name of its policy, or the last policy, is taken', () => {
      const policy = (number: number, policyName: string) =>
        ({
          type: 'PolicyCreated',
          data: { policyId: id(number), policyName, effect: 'EFFECT_DENY', notes: '' },
        }) as const;
      given(anOrganization(), policy(1, 'Auth proxy'))
        .when(enableAuthProxy, {}, { prepared })
        .thenRefused('INVALID_ARGUMENT', /policy label must be unique/);
      given(anOrganization(), ...Array.from({ length: 100 }, (_, index) => policy(index, `p${index}`)))
        .when(enableAuthProxy, {}, { prepared })
        .thenRefused('RESOURCE_EXHAUSTED', /may have 100 policies/);
    });

    it('asks again when the proxy was disabled between the preparation and the decision', () =>
      given(anOrganization())
        .when(enableAuthProxy, {})
        .thenRefused('ABORTED', /disabled in the meantime/));

    it('seals the key, and only returns its public half', async () => {
      const ports = await preparePorts();
      const key = await ports.proxyKeys.create(id(700));
      expect(Object.keys(key).toSorted()).toEqual(['publicKey', 'vaultId']);
      expect(key.publicKey).toMatch(/^0[23][0-9a-f]{64}$/);
      expect(await ports.vault.names(key.vaultId)).toEqual(['api-key']);
      // Whoever provides it again finds the same key.
      expect(await ports.proxyKeys.provide({ organizationId: id(700), vaultId: key.vaultId })).toBe(key.publicKey);
    });
  });

  describe('the built-in policy', () => {
    const registry = buildRegistry(activities);
    const policy = enabledProxy.flatMap((event) =>
      event.type === 'PolicyCreated' ? [{ ...event.data, createdAt: 0, updatedAt: 0 }] : [],
    );
    const outcomeFor = (userId: string, resource: string, action: string) => {
      const credential = { id: id(302), userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: publicKeyOf(302) };
      return authorize(
        {
          activity: { type: 'ACTIVITY_TYPE_X', kind: 'X', params: {}, resource, action },
          resources: {},
          submitterId: userId,
          rootQuorumOnly: false,
          ownCredentials: false,
        },
        [{ userId, credential }],
        {
          policies: policy,
          rootQuorum: { threshold: 1, userIds: [id(999)] },
          users: [{ userId, userName: 'Auth proxy', tags: [], credentials: [credential] }],
          environment: registry.policyEnvironment,
          now: 0,
        },
      ).outcome;
    };
    const pairs = new Set(
      activities.flatMap((one) =>
        isVote(one) || one.policy === 'root-quorum-only' ? [] : [`${one.policy.resource} ${one.policy.action}`],
      ),
    );
    const its = ['AUTH CREATE', 'OTP CREATE', 'OTP VERIFY', 'ORGANIZATION CREATE'];

    test.each(its)('lets its user do %s, and nobody else', (pair) => {
      const [resource, action] = pair.split(' ') as [string, string];
      expect(outcomeFor(id(301), resource, action)).toBe('allow');
      expect(outcomeFor(id(302), resource, action)).toBe('deny-implicit');
    });

    test('lets its user do nothing else of all that there is', () => {
      const others = [...pairs].filter((pair) => !its.includes(pair));
      expect(others.length).toBeGreaterThan(20);
      const allowed = others.filter((pair) => {
        const [resource, action] = pair.split(' ') as [string, string];
        return outcomeFor(id(301), resource, action) !== 'deny-implicit';
      });
      expect(allowed).toEqual([]);
    });
  });
});
