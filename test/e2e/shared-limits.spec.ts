import { setTimeout as pause } from 'node:timers/promises';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { exchange } from './exchange.js';

// Nobody is refused because others, whom they cannot influence, have used a limit up (security rule R9).

const running: TestCoordinator[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()));
});

async function start(settings: Readonly<Record<string, string>>): Promise<TestCoordinator> {
  const coordinator = await startCoordinator({ settings: { TRUST_PROXY: 'true', ...settings } });
  running.push(coordinator);
  return coordinator;
}

const proxied = async (
  { url, root }: TestCoordinator,
  endpoint: string,
  body: object,
  address: string,
): Promise<number> => {
  const headers = {
    'content-type': 'application/json',
    'x-auth-proxy-config-id': root.authProxyConfigId,
    'x-forwarded-for': address,
  };
  return (await exchange(`${url}/v1/${endpoint}`, { method: 'POST', headers, body: JSON.stringify(body) })).status;
};

describe('the auth proxy serves somebody', () => {
  test('whose configuration others have asked for all that it may have, from many networks of one line', async () => {
    const coordinator = await start({ PROXY_RATE_LIMIT_PER_CONFIGURATION: '200' });
    const flood = await Promise.all(
      Array.from({ length: 300 }, (_, number) =>
        proxied(coordinator, 'wallet_kit_client_params', {}, `2001:db8:0:${(number % 20).toString(16)}::1`),
      ),
    );
    expect(flood.filter((status) => status === 200).length).toBeGreaterThan(150);
    expect(flood.filter((status) => status === 429).length).toBeGreaterThan(50);
    const code = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com' };
    expect(await proxied(coordinator, 'otp_init', code, '198.51.100.1')).toBe(200);
    // That much is each network's; the next request is refused.
    expect(await proxied(coordinator, 'otp_init', code, '198.51.100.1')).toBe(429);
  }, 60_000);

  test('who signs up while two networks sign up as often as they can', async () => {
    const coordinator = await start({
      SUB_ORGANIZATION_LIMITS: '',
      ORGANIZATION_LIMITS: 'subOrganizationsPerMinute=50',
    });
    const signUp = (address: string) => {
      const { publicKey } = coordinator.newKey();
      const apiKeys = [{ apiKeyName: 'key', publicKey, curveType: 'API_KEY_CURVE_P256' }];
      return proxied(coordinator, 'signup', { userName: 'Ann', apiKeys }, address);
    };
    const flood: number[] = [];
    for (let number = 0; number < 80; number++) flood.push(await signUp(`203.0.${number % 2}.1`));
    expect(flood.filter((status) => status === 200)).toHaveLength(40);
    expect(await signUp('198.51.100.1')).toBe(200);
  }, 60_000);
});

test('forged stamps that name a passkey use up nothing of its owner’s limit', async () => {
  const coordinator = await start({ RATE_LIMIT_PER_CREDENTIAL: '5' });
  const { organizationId } = coordinator;
  const user = await coordinator.createUser('Owner');
  const passkey = new SoftwareAuthenticator();
  const { attestation, ...registered } = passkey.register();
  await user.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
    userId: user.userId,
    authenticators: [{ authenticatorName: 'passkey', ...registered, attestation }],
  });
  const stamped = (by: SoftwareAuthenticator) => {
    const body = JSON.stringify({ organizationId });
    const stamp = by.assert({ body, credentialId: attestation.credentialId });
    return async (address: string) => {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': address, 'x-stamp-webauthn': stamp };
      return (await exchange(`${coordinator.url}/public/v1/query/whoami`, { method: 'POST', headers, body })).status;
    };
  };
  const [owner, forger] = [stamped(passkey), stamped(new SoftwareAuthenticator())];
  const [forged, served] = [new Set<number>(), new Set<number>()];
  for (let round = 0; round < 5; round++) {
    const flood = Array.from({ length: 20 }, () => forger('203.0.113.66'));
    for (const status of await Promise.all(flood)) forged.add(status);
    served.add(await owner('198.51.100.1'));
  }
  expect({ forged, served }).toEqual({ forged: new Set([401, 429]), served: new Set([200]) });
  // Those that the owner has signed are counted together, wherever they come from; not in the second of the last ones.
  await pause(1_000);
  const own = await Promise.all(Array.from({ length: 40 }, (_, number) => owner(`198.51.100.${number}`)));
  expect(new Set(own)).toEqual(new Set([200, 429]));
});
