import { rootBeginning } from '../../src/decide/found-organization.js';
import { derivedId } from '../../src/ledger/ids.js';
import { publicKeyOf } from '../activities/facts.js';
import { id } from '../activities/given.js';

test('an organization begins with one user, whose API key alone is the root quorum', () => {
  const [organizationId, userId, apiPublicKey] = [id(1), id(2), publicKeyOf(3)];
  const founding = { organizationId, organizationName: 'Treasury', userId, userName: 'Root', apiPublicKey };
  expect(rootBeginning({ ...founding, curve: 'API_KEY_CURVE_P256', at: 0 })).toEqual([
    { type: 'OrganizationCreated', data: { organizationId, name: 'Treasury' } },
    { type: 'UserCreated', data: { userId, userName: 'Root', userTags: [] } },
    {
      type: 'ApiKeyCreated',
      data: {
        userId,
        // Permanent: a founding that is repeated names the same key.
        apiKeyId: derivedId(organizationId, 'root-api-key'),
        apiKeyName: 'Root API key',
        publicKey: apiPublicKey,
        curve: 'API_KEY_CURVE_P256',
        credentialType: 'CREDENTIAL_TYPE_API_KEY_P256',
      },
    },
    { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [userId] } },
  ]);
});
