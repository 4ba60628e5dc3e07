import { request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { LineSampler } from '../../src/http/line-sampler.js';
import { startCoordinator, stampBody, type StartOptions, type TestCoordinator } from '../../src/testing/index.js';
import { exchange, refusal } from './exchange.js';
import { levels, LogLines } from './log-lines.js';
import { until } from './until.js';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

let coordinator: TestCoordinator;
let log: LogLines;

async function start(options: StartOptions = {}): Promise<void> {
  log = new LogLines();
  coordinator = await startCoordinator({ logLevel: 'info', log, ...options });
}

/** The lines about requests, once there are so many. */
async function requests(count: number) {
  await until(`${count} lines`, () => log.requests().length >= count);
  return log.requests();
}

function whoami(headers: Readonly<Record<string, string>> = {}, path = '/public/v1/query/whoami') {
  const body = JSON.stringify({ organizationId: coordinator.organizationId });
  const { headerName, headerValue } = stampBody(body, coordinator.client.key);
  return exchange(`${coordinator.url}${path}`, {
    method: 'POST',
    body,
    headers: { [headerName]: headerValue, ...headers },
  });
}

function forged(headers: Readonly<Record<string, string>> = {}) {
  const { headerName, headerValue } = stampBody('{}', coordinator.newKey());
  const body = JSON.stringify({ organizationId: coordinator.organizationId });
  return exchange(`${coordinator.url}/public/v1/query/whoami`, {
    method: 'POST',
    body,
    headers: { [headerName]: headerValue, ...headers },
  });
}

afterEach(() => coordinator.close());

describe('a line for each request', () => {
  test('of a submit names the organization, the credential, the activity and its type, and nothing of the body', async () => {
    await start();
    const { id } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
      userTagName: 'hush hush',
      userIds: [],
    });
    const [line] = await requests(1);
    expect(line).toEqual({
      level: levels.info,
      time: expect.any(Number) as number,
      msg: 'request',
      requestId: expect.stringMatching(uuid) as string,
      method: 'POST',
      route: '/public/v1/submit/create_user_tag',
      status: 200,
      durationMs: expect.any(Number) as number,
      organizationId: coordinator.organizationId,
      credentialId: expect.stringMatching(uuid) as string,
      activityId: id,
      activityType: 'ACTIVITY_TYPE_CREATE_USER_TAG',
    });
    expect(log.text).not.toContain('hush');
  });

  test('of a query names the query, and not what else is in the URL', async () => {
    await start();
    expect((await whoami({}, '/public/v1/query/whoami?code=hush')).status).toBe(200);
    const [line] = await requests(1);
    expect(line).toMatchObject({
      route: '/public/v1/query/whoami',
      organizationId: coordinator.organizationId,
      credentialId: expect.stringMatching(uuid) as string,
    });
    expect((await exchange(`${coordinator.url}/nowhere/hush`)).status).toBe(404);
    expect((await requests(2))[1]).toMatchObject({ route: 'unknown', status: 404, error: 'NOT_FOUND' });
    expect(log.text).not.toContain('hush');
  });

  test('of a denial names who was denied where, and why', async () => {
    await start();
    const { client } = await coordinator.createUser('Mallory');
    const { status } = await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] }));
    expect(status).toBe(403);
    expect((await requests(2))[1]).toMatchObject({
      level: levels.info,
      status: 403,
      activityType: 'ACTIVITY_TYPE_CREATE_USER_TAG',
      organizationId: coordinator.organizationId,
      credentialId: expect.stringMatching(uuid) as string,
      error: 'PERMISSION_DENIED',
    });
  });

  test('of a successful probe is for debugging only', async () => {
    await start();
    for (const path of ['/health/live', '/health/ready', '/metrics']) {
      expect((await exchange(`${coordinator.url}${path}`)).status).toBe(200);
    }
    await whoami();
    expect((await requests(1)).map(({ route }) => route)).toEqual(['/public/v1/query/whoami']);
  });

  test('is not written where nobody asked for a log', async () => {
    await start({ logLevel: 'silent' });
    await whoami();
    await forged();
    await pause(50);
    expect(log.text).toBe('');
  });
});

describe('the id of a request', () => {
  test('is the one that came with it, in the response and in the line', async () => {
    await start();
    const { headers } = await whoami({ 'x-request-id': 'edge:7f3a/1', traceparent: trace });
    expect(headers.get('x-request-id')).toBe('edge:7f3a/1');
    expect(headers.get('access-control-expose-headers')).toContain('X-Request-Id');
    expect(await requests(1)).toMatchObject([{ requestId: 'edge:7f3a/1', traceparent: trace }]);
  });

  test.each([['with spaces'], ['"quoted"'], ['x'.repeat(129)], ['']])('is a new one in place of `%s`', async (sent) => {
    await start();
    const { headers } = await whoami({ 'x-request-id': sent, traceparent: 'hush' });
    expect(headers.get('x-request-id')).toMatch(uuid);
    const [line] = await requests(1);
    expect(line!['requestId']).toBe(headers.get('x-request-id'));
    expect(line).not.toHaveProperty('traceparent');
  });

  test('is there when the path cannot be read, and when something goes wrong here', async () => {
    await start();
    const status = await new Promise((resolve, reject) => {
      httpRequest(`${coordinator.url}/%zz`, { path: '/%zz' }, (response) => {
        response.resume();
        resolve([response.statusCode, uuid.test(String(response.headers['x-request-id']))]);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toEqual([404, true]);
    coordinator.fail('rows');
    const { status: failed, headers } = await whoami({ 'x-request-id': 'edge-2' }, '/public/v1/query/list_users');
    expect([failed, headers.get('x-request-id')]).toEqual([500, 'edge-2']);
    expect(log.all().filter(({ level }) => level === levels.error)).toMatchObject([{ requestId: 'edge-2' }]);
    coordinator.fail('rows', false);
  });

  test('goes with the requests that the auth proxy makes for it', async () => {
    await start();
    const headers = {
      'x-auth-proxy-config-id': String(coordinator.root.authProxyConfigId),
      'x-request-id': 'phone-1',
      traceparent: trace,
    };
    await exchange(`${coordinator.url}/v1/wallet_kit_config`, { method: 'POST', headers });
    const lines = await requests(2);
    expect(lines.map(({ route }) => route)).toContain('/v1/:name');
    for (const line of lines) expect(line).toMatchObject({ requestId: 'phone-1', traceparent: trace });
  });
});

describe('refused authentication and rate limits', () => {
  test('are warned of with the network, and sampled beyond 60 a minute for each', async () => {
    await start({ settings: { TRUST_PROXY: 'true' } });
    const from = (address: string) => forged({ 'x-forwarded-for': address });
    for (let number = 0; number < 75; number++) expect((await from('203.0.113.7')).status).toBe(401);
    await from('203.0.113.8');
    const lines = await requests(61);
    expect(lines.slice(0, 2)).toMatchObject([
      { level: levels.warn, network: '203.0.113.7', status: 401, category: 'SIGNATURE_INVALID' },
      { level: levels.warn, network: '203.0.113.7' },
    ]);
    expect(lines.map(({ network }) => network).filter((network) => network === '203.0.113.7')).toHaveLength(60);
    expect(lines.at(-1)).toMatchObject({ network: '203.0.113.8' });
    await coordinator.close();
    const about = log.all().filter(({ msg }) => msg.startsWith('left out'));
    expect(about).toMatchObject([{ level: levels.warn, network: '203.0.113.7', leftOut: 15 }]);
  });

  test('of a rate limit say which', async () => {
    await start({ settings: { RATE_LIMIT_PER_ADDRESS: '1' } });
    await Promise.all([whoami(), whoami(), whoami()]);
    const refused = (await requests(3)).filter(({ status }) => status === 429);
    expect(refused).toHaveLength(2);
    expect(refused[0]).toMatchObject({
      level: levels.warn,
      network: '127.0.0.1',
      error: 'RESOURCE_EXHAUSTED',
      category: 'RATE_LIMIT_EXCEEDED',
    });
  });

  test('are counted for a bounded number of networks, and anew each minute', () => {
    const reports: [string, number][] = [];
    let now = 0;
    const sampler = new LineSampler(
      (network, lines) => reports.push([network, lines]),
      () => now,
    );
    let admitted = 0;
    for (let network = 0; network < 2_000; network++) if (sampler.admits(`network ${network}`)) admitted += 1;
    expect(admitted).toBe(1_024 + 60);
    now = 59_999;
    expect([sampler.admits('network 7'), sampler.admits('network 1500')]).toEqual([true, false]);
    now = 60_000;
    expect(sampler.admits('network 1500')).toBe(true);
    expect(reports).toEqual([['others', 2_000 - 1_024 - 60 + 1]]);
    sampler.close();
    expect(reports).toHaveLength(1);
  });
});
