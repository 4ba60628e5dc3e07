import { authProxyEnabled } from '../../../src/domain/organization/auth-proxy.js';
import { publicKeyOf } from '../facts.js';
import { id } from '../given.js';

/** An enabled auth proxy: its user 301, key 302, policy 303, configuration 304 and vault 305. */
export const enabledProxy = authProxyEnabled({
  userId: id(301),
  apiKeyId: id(302),
  policyId: id(303),
  configId: id(304),
  vaultId: id(305),
  publicKey: publicKeyOf(302),
});
