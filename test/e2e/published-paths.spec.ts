import { readFileSync } from 'node:fs';
import { publishedQueries, publishedSubmits } from '../../src/http/published-paths.js';
import { queries } from '../../src/read-models/index.js';
import { send, stampBody, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';
import { registry } from './routes.js';

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator();
});

afterAll(() => coordinator.close());

const published = [
  ...publishedQueries.map((name) => `query/${name}`),
  ...publishedSubmits.map((name) => `submit/${name}`),
];
const implemented = new Set([
  ...queries.map(({ path }) => `query/${path}`),
  ...[...registry.paths.keys()].map((path) => `submit/${path}`),
]);
const missing = published.filter((path) => !implemented.has(path));

function call(path: string) {
  const body = JSON.stringify({ organizationId: coordinator.organizationId });
  const { headerName, headerValue } = stampBody(body, coordinator.client.key);
  return send(`${coordinator.url}/public/v1/${path}`, body, { [headerName]: headerValue });
}

test('the list has every path that the published client calls', () => {
  const file = new URL('../../node_modules/@turnkey/http/dist/__generated__/', import.meta.url);
  const source = readFileSync(new URL('services/coordinator/public/v1/public_api.fetcher.js', file), 'utf8');
  const called = new Set(source.match(/(?<=\/public\/v1\/)(?:query|submit)\/[a-z0-9_]+/g));
  expect(called.size).toBe(192);
  expect(published).toEqual(expect.arrayContaining([...called]));
});

test('a published path that is missing here says so, and names the page that lists it', async () => {
  const page = readFileSync(new URL('../../docs/reference/not-implemented.md', import.meta.url), 'utf8');
  expect(missing.length).toBeGreaterThan(50);
  for (const path of missing) {
    expect(await refusal(call(path))).toMatchObject({
      status: 501,
      code: 12,
      message: textLike(`does not implement \`${path}\`: docs/reference/not-implemented.md`),
    });
    expect(page).toContain(`\`${path}\``);
  }
});

test('a path that nobody has is not found', async () => {
  for (const path of ['query/get_everything', 'submit/do_everything']) {
    expect(await refusal(call(path))).toMatchObject({ status: 404, code: 5 });
  }
});

test('active policies are those whose time clause holds now', async () => {
  const { client, clock, organizationId } = coordinator;
  const window = (from: number, to: number) =>
    `time.now >= Timestamp('${new Date(from).toISOString()}') && time.now < Timestamp('${new Date(to).toISOString()}')`;
  const now = clock.now();
  const hour = 3_600_000;
  const create = (policyName: string, time?: string) =>
    coordinator.createPolicy({ policyName, condition: 'false', ...(time === undefined ? {} : { time }) });
  const always = await create('always');
  const today = window(now - hour, now + hour);
  const current = await create('current', today);
  const later = window(now + hour, now + 2 * hour);
  const future = await create('future', later);
  const expected = (isLater: boolean) => [
    { organizationId, policyId: always, active: true },
    { organizationId, policyId: current, active: !isLater, timeExpr: today },
    { organizationId, policyId: future, active: isLater, timeExpr: later },
  ];
  const asked = () =>
    client.query<{ statuses: readonly { policyId: string }[]; evaluatedAtMs: string }>('get_active_policies', {});
  const ours = (statuses: readonly { policyId: string }[]) =>
    statuses.filter(({ policyId }) => [always, current, future].includes(policyId));

  const first = await asked();
  expect(ours(first.statuses)).toEqual(expected(false));
  expect(Number(first.evaluatedAtMs)).toBe(clock.now());
  const listed = await client.query<{ policies: readonly { policyId: string }[] }>('list_policies');
  expect(first.statuses.map(({ policyId }) => policyId)).toEqual(listed.policies.map(({ policyId }) => policyId));

  clock.advance(hour);
  expect(ours((await asked()).statuses)).toEqual(expected(true));
});

test('second factors and session profiles are empty lists', async () => {
  const { organizationId, client, root } = coordinator;
  const { userId } = root;
  expect(await client.query('get_mfa_status', { activityId: organizationId })).toEqual({ mfaStatuses: [] });
  expect(await client.query('get_mfa_policies', { userId })).toEqual({ mfaPolicies: [] });
  expect(await client.query('get_session_profiles')).toEqual({ sessionProfiles: [] });
});
