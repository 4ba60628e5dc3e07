import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { jest } from '@jest/globals';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { StampingClient, type ApiKeyPair } from '../../src/testing/index.js';
import { patienceMs, until } from '../e2e/until.js';
import { Coordinators } from '../processes/coordinators.js';
import { LoadBalancer, Nginx } from './load-balancer.js';

// Processes start slowly on a machine with other work to do.
jest.setTimeout(20 * patienceMs);

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const tagPath = '/public/v1/submit/create_user_tag';
type Answer = { readonly activity: ActivityEnvelope };

/** Here all callers have one address. */
const settings = { RATE_LIMIT_PER_ADDRESS: '10000', RATE_LIMIT_PER_ORGANIZATION: '10000' };

let cluster: Coordinators;
let balancer: LoadBalancer;
let rootKey: ApiKeyPair;
let organizationId: string;

beforeAll(async () => {
  cluster = await Coordinators.make(2);
  await cluster.one.start(settings);
  await cluster.two.start(settings);
  for (const { running } of cluster.all) {
    await until(`${running.url} is ready`, async () => (await fetch(`${running.url}/health/ready`)).ok);
  }
  rootKey = await cluster.rootKey();
  organizationId = cluster.one.organizationId;
  balancer = await LoadBalancer.start({ one: cluster.one.running.url, two: cluster.two.running.url });
  await until('both coordinators answer', async () => (await servedBy({}, 8)).size === 2);
});
afterAll(async () => {
  await balancer?.stop();
  await cluster?.remove();
});

/** Who answers so many requests with these headers; what they ask is refused. */
async function servedBy(headers: Readonly<Record<string, string>>, times: number): Promise<Set<string | null>> {
  const answers = await Promise.all(
    Array.from({ length: times }, () =>
      fetch(`${balancer.url}/public/v1/query/whoami`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ organizationId: randomUUID() }),
      }),
    ),
  );
  return new Set(answers.map((answer) => answer.headers.get('x-served-by')));
}

test('all requests of an organization reach one coordinator, and those of many organizations reach all', async () => {
  const named = await Promise.all(Array.from({ length: 24 }, () => servedBy({ 'x-organization-id': randomUUID() }, 6)));
  for (const one of named) expect(one.size).toBe(1);
  expect(new Set(named.flatMap((one) => [...one])).size).toBe(2);
  expect((await servedBy({}, 12)).size).toBe(2);
});

test('our client names the organization of the body, also where it is another than its own', async () => {
  const client = new StampingClient(balancer.url, organizationId, rootKey);
  const served = async (path: string, body: string, named?: string) =>
    (await client.post(path, body, named)).headers.get('x-served-by');
  const bodies = Array.from({ length: 8 }, (_, index) =>
    client.submitBody(tagType, { userTagName: `own ${index}`, userIds: [] }),
  );
  const own = new Set<string | null>();
  for (const body of bodies) own.add(await served(tagPath, body));
  expect(own.size).toBe(1);
  const others = await Promise.all(
    Array.from({ length: 16 }, () =>
      served('/public/v1/query/whoami', JSON.stringify({ organizationId }), randomUUID()),
    ),
  );
  // What the header names is no organization, and the answer is that of the body's.
  expect(new Set(others).size).toBe(2);
});

test('ten rolling restarts fail no request behind haproxy, nor behind nginx', async () => {
  const nginx = await Nginx.start(cluster.all.map(({ running }) => running.url));
  const { userId } = await cluster.one.installation.root();
  const failures: string[] = [];
  /** What the coordinators log of responses with 500 or more: explains a failure. */
  let refused: string[] = [];
  let nginxSays: readonly string[] = [];
  const served = new Map<string, number>();
  let isOver = false;
  const caller = async (through: 'haproxy' | 'nginx', kind: 'submit' | 'query', at: number): Promise<void> => {
    const client = new StampingClient({ haproxy: balancer, nginx }[through].url, organizationId, rootKey);
    for (let number = 0; !isOver; number++) {
      const isSubmit = kind === 'submit';
      const body = isSubmit
        ? client.submitBody('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: `${through} ${at} ${number}` })
        : JSON.stringify({ organizationId });
      // What names another organization reaches the other coordinator as well.
      const routed = number % 2 === 0 ? organizationId : randomUUID();
      await client.post(`/public/v1/${isSubmit ? 'submit/update_user_name' : 'query/whoami'}`, body, routed).then(
        () => served.set(through, (served.get(through) ?? 0) + 1),
        (error: unknown) => failures.push(`${kind} through ${through}: ${String(error)}`),
      );
      await pause(50);
    }
  };
  const callers = (['haproxy', 'nginx'] as const).flatMap((through) => [
    caller(through, 'submit', 1),
    caller(through, 'query', 2),
  ]);
  try {
    for (let restart = 0; restart < 10 && failures.length === 0; restart++) {
      const instance = cluster.number(restart);
      const { port } = new URL(instance.running.url);
      const ended = instance.running;
      expect(await instance.terminate()).toBe(0);
      refused = [...refused, ...ended.stderr().split('\n')].filter((line) => /"status":5(?!.*health)/.test(line));
      await instance.start({ ...settings, LOG_LEVEL: 'info', PORT: port });
      await until('it is ready', async () => (await fetch(`${instance.running.url}/health/ready`)).ok);
      await until('haproxy has both', async () => (await servedBy({}, 8)).size === 2);
    }
  } finally {
    isOver = true;
    await Promise.all(callers);
    nginxSays = await nginx.failures();
    await nginx.stop();
  }
  const why = failures.length === 0 ? [] : [...nginxSays, ...refused];
  expect([...failures, ...why]).toEqual([]);
  for (const through of ['haproxy', 'nginx']) expect(served.get(through)).toBeGreaterThan(100);
});

test('a coordinator that dies loses no answer: another gives it, and nothing is done twice', async () => {
  const client = new StampingClient(balancer.url, organizationId, rootKey);
  const first = client.submitBody(tagType, { userTagName: 'before', userIds: [] });
  const serving = (await client.post(tagPath, first)).headers.get('x-served-by');
  const dying = serving === 'one' ? cluster.one : cluster.two;
  const names = Array.from({ length: 80 }, (_, index) => `tag ${index}`);
  const servers = new Set<string | null>();
  let sent = 0;
  const writer = async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      sent += 1;
      if (sent === 30) void dying.kill();
      const body = client.submitBody(tagType, { userTagName: name, userIds: [] });
      const { body: answer, headers } = await client.post<Answer>(tagPath, body);
      expect(answer.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
      servers.add(headers.get('x-served-by'));
    }
  };
  await Promise.all([writer(), writer(), writer(), writer()]);
  expect(servers.size).toBe(2);
  const created = (await cluster.events()).filter(({ type }) => type === 'UserTagCreated');
  const made = created
    .map(({ data }) => (data as { tagName: string }).tagName)
    .filter((name) => name.startsWith('tag '));
  expect(made.toSorted()).toEqual(Array.from({ length: 80 }, (_, index) => `tag ${index}`).toSorted());
});
