import { connect } from 'node:net';
import { once } from 'node:events';
import { send, stampBody, startCoordinator, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';

// The published Rust client compares the media type of a response as text, and refuses `application/json; charset=utf-8`.
// RFC 8259, section 11: JSON has no charset parameter.

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: { ORGANIZATION_LIMITS: 'policies=300' } });
});

afterAll(() => coordinator.close());

async function typeOf(path: string, init: RequestInit = {}): Promise<readonly [number, string | null]> {
  const { status, headers, body } = await exchange(`${coordinator.url}${path}`, init);
  expect(body).toBeDefined();
  return [status, headers.get('content-type')];
}

const post = (body: string, headers: Readonly<Record<string, string>> = {}) => ({ method: 'POST', body, headers });
const ofProxy = () => ({ 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId });

test('responses of the Activity API are application/json, without parameters', async () => {
  const types: (string | null)[] = [];
  const { url, organizationId } = coordinator;
  const asked = async (path: string, body: object) => {
    const text = JSON.stringify({ organizationId, ...body });
    const { headerName, headerValue } = stampBody(text, coordinator.client.key);
    const response = await fetch(`${url}${path}`, post(text, { [headerName]: headerValue }));
    await response.arrayBuffer();
    types.push(response.headers.get('content-type'));
    return response.status;
  };
  const tag = (userTagName: string) => ({
    type: 'ACTIVITY_TYPE_CREATE_USER_TAG',
    timestampMs: String(coordinator.clock.now()),
    parameters: { userTagName, userIds: [] },
  });
  expect(await asked(submitPath('ACTIVITY_TYPE_CREATE_USER_TAG'), tag('ops'))).toBe(200);
  expect(await asked(submitPath('ACTIVITY_TYPE_CREATE_USER_TAG'), tag(''))).toBe(400);
  expect(await asked('/public/v1/query/whoami', {})).toBe(200);
  expect(await asked('/public/v1/query/get_activity', { activityId: organizationId })).toBe(404);
  expect(await asked('/public/v1/query/nothing', {})).toBe(404);
  expect(await asked('/public/v1/submit/nothing', {})).toBe(404);
  expect(types).toEqual(types.map(() => 'application/json'));
});

test('a large response is, too', async () => {
  const { client, url, organizationId } = coordinator;
  const policies = Array.from({ length: 60 }, (_, number) => ({
    policyName: `long ${number}`,
    effect: 'EFFECT_ALLOW' as const,
    condition: 'false',
    notes: 'x'.repeat(4_096),
  }));
  for (let number = 0; number < 4; number++) {
    const named = policies.map((policy) => ({ ...policy, policyName: `${policy.policyName} of ${number}` }));
    await client.submit('ACTIVITY_TYPE_CREATE_POLICIES', { policies: named });
  }
  const body = JSON.stringify({ organizationId });
  const { headerName, headerValue } = stampBody(body, client.key);
  const response = await send(`${url}/public/v1/query/list_activities`, body, { [headerName]: headerValue });
  expect(JSON.stringify(response.body).length).toBeGreaterThan(1_500_000);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
});

test.each<[string, () => RequestInit, number]>([
  ['/health/live', () => ({}), 200],
  ['/health/ready', () => ({}), 200],
  ['/openapi.json', () => ({}), 200],
  ['/docs/hashmap.json', () => ({}), 200],
  ['/docs/nothing', () => ({}), 404],
  ['/nothing', () => ({}), 404],
  ['/public/%ff', () => ({}), 404],
  ['/public/v1/discovery/keys', () => ({}), 200],
  ['/public/v1/discovery/webhooks/jwks', () => ({}), 200],
  ['/.well-known/openid-configuration', () => ({}), 200],
  ['/.well-known/jwks.json', () => ({}), 200],
  ['/public/v1/query/whoami', () => post('{}'), 401],
  ['/public/v1/query/whoami', () => post('{}', { 'x-stamp': 'none' }), 401],
  ['/public/v1/submit/create_policy', () => post('x'.repeat(2_200_000)), 400],
  ['/internal/v1/auth-proxy/stamp', () => post('{}'), 401],
  ['/v1/wallet_kit_config', () => post('', ofProxy()), 200],
  ['/v1/wallet_kit_config', () => post(''), 400],
  ['/v1/account', () => post('[]', ofProxy()), 400],
  ['/v1/nothing', () => post('', ofProxy()), 404],
])('%s is application/json (case %#)', async (path, init, status) => {
  expect(await typeOf(path, init())).toEqual([status, 'application/json']);
});

test('so is the refusal of a request that cannot be read as HTTP', async () => {
  const socket = connect(Number(new URL(coordinator.url).port), '127.0.0.1');
  socket.end('GET / HTTP/1.1\r\nno colon\r\n\r\n');
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  expect(chunk.toString()).toMatch(/^content-type: application\/json\r$/im);
});
