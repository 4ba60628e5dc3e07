import { decryptCredentialBundle, generateP256KeyPair } from '@turnkey/crypto';
import type { Turnkey } from '@turnkey/sdk-server';
import {
  apiKeyPairFromPrivate,
  type ApiKeyPair,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { exchange } from './exchange.js';

// The package's index also loads its browser actions, which need a peer package (viem) that nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

/** The published server client, as it comes. It stamps with the wall clock. */
export function sdkClient({ url, organizationId }: TestCoordinator, key: ApiKeyPair) {
  return new TurnkeyServerSDK({
    apiBaseUrl: url,
    apiPublicKey: key.publicKey,
    apiPrivateKey: key.privateKey,
    defaultOrganizationId: organizationId,
    activityPoller: { intervalMs: 10, numRetries: 3 },
  }).apiClient();
}

/** A key that credentials are sealed to, as the published clients write it, and what opens them. */
export function target() {
  const { privateKey, publicKeyUncompressed } = generateP256KeyPair();
  return {
    publicKey: publicKeyUncompressed,
    open: (bundle: string): ApiKeyPair => apiKeyPairFromPrivate(decryptCredentialBundle(bundle, privateKey)),
  };
}

/** Public keys of the installation, as anybody reads them. */
export async function discoveryKeys({ url }: TestCoordinator): Promise<Readonly<Record<string, string>>> {
  return (await exchange(`${url}/public/v1/discovery/keys`)).body as Readonly<Record<string, string>>;
}

/** A user of the parent who may log people in, and nothing else. */
export async function loginService(coordinator: TestCoordinator): Promise<TestUser> {
  const service = await coordinator.createUser('Login service');
  await coordinator.createPolicy({
    policyName: 'logs people in',
    condition: "activity.resource == 'AUTH' && activity.action == 'CREATE'",
    consensus: `approvers.any(user, user.id == '${service.userId}')`,
  });
  return service;
}

/** The one result of an activity. */
export function resultOf<Result = Readonly<Record<string, string>>>({ result }: { readonly result: object }): Result {
  return Object.values(result)[0] as Result;
}
