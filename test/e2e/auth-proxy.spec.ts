import { anyText } from './exchange.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';

let coordinator: TestCoordinator;
let configId: string;

beforeAll(async () => {
  coordinator = await startCoordinator();
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {});
  ({ configId } = result['enableAuthProxyResult'] as { configId: string });
});
afterAll(() => coordinator.close());

async function call(path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': configId, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

test('wallet kit config takes no body at all', async () => {
  const { status, body, headers } = await call('wallet_kit_config');
  expect(body).toEqual({
    enabledProviders: ['email', 'sms', 'passkey', 'wallet'],
    sessionExpirationSeconds: '900',
    organizationId: coordinator.organizationId,
  });
  expect(status).toBe(200);
  expect(headers.get('access-control-allow-origin')).toBe('*');
});

test('signs up', async () => {
  const key = coordinator.newKey();
  const { status, body } = await call('signup_v2', {
    userName: 'Nora',
    organizationName: 'Nora',
    apiKeys: [{ apiKeyName: 'k', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }],
    authenticators: [],
    oauthProviders: [],
  });
  expect([status, body]).toEqual([200, { organizationId: anyText, userId: anyText }]);
});

test('sends a code, verifies', async () => {
  const init = await call('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: 'nora@example.com' });
  expect([init.status, init.body]).toEqual([200, { otpId: anyText }]);
});
