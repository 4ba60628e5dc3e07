import { jest } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { apiKeyPairFromPrivate, stampBody, type ApiKeyPair, type StampingClient } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { patienceMs, until } from '../e2e/until.js';
import { DoubleCluster } from '../ledger/stores/double/cluster.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { clientOf, Instance, newKey } from './coordinators.js';

/** A remote store that hangs, is away or has lost events, under real processes. */

jest.setTimeout(4 * patienceMs);

/** What a busy machine may add to a time, in milliseconds. */
const slackMs = 2_500;
const nameType = 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME';
const namePath = '/public/v1/submit/update_organization_name';

/** More than any request tries. */
const hangingWrites = Array<'silence-before'>(2_000).fill('silence-before');
const tag = (userTagName: string) => ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] }] as const;
const subOrganization = (subOrganizationName: string, { publicKey, curve }: ApiKeyPair) => ({
  subOrganizationName,
  rootUsers: [
    {
      userName: 'Ann',
      apiKeys: [{ apiKeyName: 'key', publicKey, curveType: curve }],
      authenticators: [],
      oauthProviders: [],
    },
  ],
  rootQuorumThreshold: 1,
});

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function aDouble(): Promise<EventStoreDouble> {
  const double = await EventStoreDouble.start();
  double.maxAppendBytes = 4 * 1024 * 1024;
  cleanups.push(() => double.stop());
  return double;
}

async function anInstance(url: string): Promise<Instance> {
  const instance = await Instance.make(url);
  cleanups.push(() => instance.installation.remove());
  return instance;
}

async function rootOf(instance: Instance, on = instance): Promise<StampingClient> {
  return clientOf(on, apiKeyPairFromPrivate((await instance.installation.root())['apiPrivateKey']!));
}

function rename(client: StampingClient, organizationName: string): Promise<unknown> {
  return client.submit(nameType, { organizationName });
}

const ready = async ({ running }: Instance) => (await exchange(`${running.url}/health/ready`)).status;

/** Log lines about conditions. */
function conditions({ running }: Instance): { level: number; condition: string; durationMs?: number }[] {
  const lines = running
    .stderr()
    .split('\n')
    .filter((line) => line.includes('"condition"'));
  return lines.map((line) => JSON.parse(line) as { level: number; condition: string; durationMs?: number });
}

describe('a server that hangs with open connections', () => {
  it('turns readiness red within five seconds, keeps no request longer than ten, and is logged once', async () => {
    const double = await aDouble();
    const instance = await (await anInstance(double.connectionString)).start({ LOG_LEVEL: 'info' });
    const client = await rootOf(instance);
    await rename(client, 'before');
    await until('it is ready', async () => (await ready(instance)) === 200);

    double.hang();
    const hung = performance.now();
    const since = () => performance.now() - hung;
    const key = apiKeyPairFromPrivate((await instance.installation.root())['apiPrivateKey']!);
    const send = async (path: string, body: string) => {
      const begun = performance.now();
      const { headerName, headerValue } = stampBody(body, key);
      const headers = { 'content-type': 'application/json', [headerName]: headerValue };
      const { status, headers: answered } = await exchange(`${instance.running.url}${path}`, {
        method: 'POST',
        body,
        headers,
      });
      return { status, retryAfter: answered.get('retry-after'), took: performance.now() - begun };
    };
    const submit = () => send(namePath, client.submitBody(nameType, { organizationName: 'meanwhile' }));
    const whoami = () => send('/public/v1/query/whoami', JSON.stringify({ organizationId: instance.organizationId }));
    const requests = [submit(), whoami()];
    let slowest = 0;
    await until('readiness is red', async () => {
      const begun = performance.now();
      const status = await ready(instance);
      slowest = Math.max(slowest, performance.now() - begun);
      return status === 503;
    });
    expect(since()).toBeLessThan(5_000 + slackMs);
    expect((await exchange(`${instance.running.url}/metrics`)).status).toBe(200);
    expect(slowest).toBeLessThan(slackMs);
    for (let turn = 0; turn < 3; turn++) {
      requests.push(submit(), whoami());
      await pause(1_500);
    }
    const answers = await Promise.all(requests);
    expect(answers.map(({ status, retryAfter }) => [status, retryAfter])).toEqual(answers.map(() => [503, '1']));
    expect(Math.max(...answers.map(({ took }) => took))).toBeLessThan(10_000 + slackMs);
    // Later ones are not made to wait at all.
    expect((await submit()).took).toBeLessThan(slackMs);

    double.goOn();
    await until('it is ready again', async () => (await ready(instance)) === 200);
    await rename(client, 'after');
    const lines = conditions(instance);
    expect(lines).toMatchObject([
      { level: 40, condition: 'event-store-unreachable' },
      { level: 30, condition: 'event-store-unreachable', durationMs: expect.any(Number) as unknown },
    ]);
  });

  it.each([
    ['nothing', (double: EventStoreDouble) => double.hang()],
    ['everything but writes', (double: EventStoreDouble) => double.appendFaults.push(...hangingWrites)],
  ] as const)('and then answers %s keeps no kind of request longer than ten seconds', async (_what, hang) => {
    const double = await aDouble();
    const instance = await (await anInstance(double.connectionString)).start();
    const { running, organizationId, installation } = instance;
    const { authProxyConfigId, apiPrivateKey } = await installation.root();
    const key = apiKeyPairFromPrivate(apiPrivateKey!);
    const client = await rootOf(instance);
    const ann = newKey();
    const { subOrganizationId } = await client.perform<{ subOrganizationId: string }>(
      'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7',
      subOrganization('before', ann),
    );
    const { id: activityId, fingerprint } = await client.submit(nameType, { organizationName: 'before' });
    const ofAnn = clientOf(instance, ann);
    await ofAnn.submit(...tag('before'), { organizationId: subOrganizationId });

    const stamped = (path: string, body: string, by = key) => {
      const { headerName, headerValue } = stampBody(body, by);
      return send(`/public/v1/${path}`, body, { [headerName]: headerValue });
    };
    const proxy = (path: string, body: object) =>
      send(`/v1/${path}`, JSON.stringify(body), { 'x-auth-proxy-config-id': authProxyConfigId! });
    const send = async (path: string, body: string, more: Readonly<Record<string, string>>) => {
      const headers = { 'content-type': 'application/json', ...more };
      const begun = performance.now();
      const { status } = await exchange(`${running.url}${path}`, { method: 'POST', body, headers });
      return { path, status, took: performance.now() - begun };
    };
    const submit = (path: string, type: string, parameters: object) =>
      stamped(`submit/${path}`, client.submitBody(type, parameters));
    const query = (path: string, more: object = {}, by = key) =>
      stamped(`query/${path}`, JSON.stringify({ organizationId, ...more }), by);
    const wallet = { walletName: 'wallet', accounts: [] };
    const contact = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com' };
    const kinds = () => [
      submit('update_organization_name', nameType, { organizationName: 'meanwhile' }),
      submit('create_wallet', 'ACTIVITY_TYPE_CREATE_WALLET', wallet),
      submit('create_sub_organization', 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', subOrganization('new', newKey())),
      submit('approve_activity', 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint }),
      stamped('submit/create_user_tag', ofAnn.submitBody(...tag('new'), { organizationId: subOrganizationId }), ann),
      // The organization in which a key lives is looked up.
      stamped('submit/create_user_tag', ofAnn.submitBody(...tag('found')), ann),
      query('whoami'),
      query('whoami', {}, ann),
      query('list_user_tags'),
      query('get_activity', { activityId }),
      query('list_suborgs', { filterType: 'NAME', filterValue: 'before' }),
      proxy('wallet_kit_config', {}),
      proxy('otp_init', contact),
      proxy('account', { filterType: 'EMAIL', filterValue: 'ann@example.com' }),
    ];
    hang(double);
    const outcomes = kinds();
    await pause(3_000);
    outcomes.push(...kinds());
    const late = (await Promise.all(outcomes)).filter(({ took }) => took > 10_000 + slackMs / 2);
    expect(late).toEqual([]);
    expect((await Promise.all(outcomes)).filter(({ status }) => status >= 500 && status !== 503)).toEqual([]);
    expect((await outcomes[0]!).status).toBe(503);
  });

  it('leads three of them: every coordinator writes again within three seconds of the election', async () => {
    const cluster = await DoubleCluster.start();
    cleanups.push(() => cluster.stop());
    for (const node of cluster.nodes) node.maxAppendBytes = 4 * 1024 * 1024;
    const instances = await Promise.all([1, 2, 3].map(() => anInstance(cluster.connectionString)));
    const [first, ...others] = instances as [Instance, ...Instance[]];
    await first.start();
    await Promise.all(others.map((instance) => instance.start()));
    const clients = await Promise.all(instances.map((instance) => rootOf(first, instance)));
    for (const client of clients) await rename(client, 'before');

    cluster.hangLeader();
    let elected = Infinity;
    const written = clients.map(async (client, index) => {
      for (let turn = 0; ; turn++) {
        const done = await rename(client, `by ${index} ${turn}`).then(
          () => true,
          () => false,
        );
        if (done && performance.now() > elected) return performance.now() - elected;
        await pause(50);
      }
    });
    await pause(4_500);
    cluster.elect(1);
    elected = performance.now();
    for (const took of await Promise.all(written)) expect(took).toBeLessThan(3_000 + slackMs);
    const { stream } = { stream: `organization-${first.organizationId}` };
    const before = cluster.nodes[1]!.log.read(stream)!.length;
    cluster.nodes[0]!.goOn();
    for (const client of clients) await rename(client, 'old leader is back');
    expect(cluster.nodes[1]!.log.read(stream)!.length).toBeGreaterThan(before);
    for (const { running } of instances) expect(running.child.exitCode).toBeNull();
  });
});

describe('a server that is away at the start', () => {
  it('is waited for, which one line says', async () => {
    const double = await aDouble();
    await double.down();
    const instance = await anInstance(double.connectionString);
    const run = instance.double();
    await until('it says that it waits', () => run.stderr().includes('event-store-unreachable'));
    expect(run.stderr()).toMatch(/the event store does not respond: .*; the start waits for it/);
    await double.up();
    await until('it is up', () => run.stdout().includes('Countersign is up'));
    expect(run.stderr().split('event-store-unreachable')).toHaveLength(2);
  });
});

describe('a server that was restored from a backup', () => {
  async function restored(): Promise<{ instance: Instance; client: StampingClient; double: EventStoreDouble }> {
    const double = await aDouble();
    const instance = await (await anInstance(double.connectionString)).start();
    const client = await rootOf(instance);
    await rename(client, 'in the backup');
    const backup = double.log.copy();
    for (let turn = 0; turn < 5; turn++) await rename(client, `lost ${turn}`);
    await double.restore(backup);
    return { instance, client, double };
  }

  const fatal = ({ running }: Instance) =>
    running
      .stderr()
      .split('\n')
      .filter((line) => line.includes('"level":60'));

  it('ends the process within five seconds, with one line that says why', async () => {
    const { instance } = await restored();
    const begun = performance.now();
    expect(await instance.running.exit).toMatchObject({ code: 1 });
    expect(performance.now() - begun).toBeLessThan(5_000 + slackMs);
    expect(fatal(instance)).toEqual([expect.stringMatching(/does not have the event.*restore its newest backup/)]);
    // Its read models have seen more than there is.
    await expect(instance.start()).rejects.toThrow('the event store has lost events');
  });

  it('takes no append for what it has lost', async () => {
    const { instance, client, double } = await restored();
    const length = double.log.read(`organization-${instance.organizationId}`)!.length;
    expect(
      await rename(client, 'on top').then(
        () => 'recorded',
        () => 'refused',
      ),
    ).toBe('refused');
    expect(await instance.running.exit).toMatchObject({ code: 1 });
    expect(double.log.read(`organization-${instance.organizationId}`)).toHaveLength(length);
    expect(fatal(instance)).toHaveLength(1);
  });

  it('ends the process too where others have written on top of the backup', async () => {
    const { instance, double } = await restored();
    double.log.append(
      'billing-1',
      [
        {
          id: crypto.randomUUID(),
          type: 'Billed',
          contentType: 'application/json',
          data: new Uint8Array(50_000),
          metadata: new Uint8Array(),
        },
      ],
      'any',
    );
    expect(await instance.running.exit).toMatchObject({ code: 1 });
  });
});
