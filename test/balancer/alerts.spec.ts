import { randomUUID } from 'node:crypto';
import { rm, stat, statfs, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import Database from 'libsql';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { startCoordinator, stampBody, type TestCoordinator } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { Installation, main, stop } from '../e2e/installation.js';
import { patienceMs, until } from '../e2e/until.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { DiskFaults } from '../processes/faults/faults.js';
import { alerts, expectDashboard, expectFiring, fired, scrape, type Scrape } from './scrapes.js';

jest.setTimeout(10 * patienceMs);

const tag = () => ({ userTagName: randomUUID(), userIds: [] });

describe('callers and approvers', () => {
  let coordinator: TestCoordinator;

  const start = async (settings: Readonly<Record<string, string>> = {}) => {
    coordinator = await startCoordinator({ settings });
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag());
    await coordinator.settled();
    return scrape(coordinator.url);
  };
  const whoami = (key = coordinator.client.key) => {
    const body = JSON.stringify({ organizationId: coordinator.organizationId });
    const { headerName, headerValue } = stampBody(body, key);
    const headers = { [headerName]: headerValue };
    return exchange(`${coordinator.url}/public/v1/query/whoami`, { method: 'POST', body, headers });
  };

  afterEach(() => coordinator.close());

  test('forged stamps', async () => {
    const before = await start();
    const key = coordinator.newKey();
    for (let number = 0; number < 120; number++) await whoami(key);
    await expectFiring(['CountersignAuthenticationFailures'], [[before, 4]], [[await scrape(coordinator.url), 4]]);
  });

  test('callers over their limit', async () => {
    const before = await start({ RATE_LIMIT_PER_CREDENTIAL: '1' });
    let refused = 0;
    while (refused < 120) if ((await whoami()).status === 429) refused += 1;
    await expectFiring(['CountersignRateLimited'], [[before, 4]], [[await scrape(coordinator.url), 4]]);
  });

  test('activities that nobody votes on', async () => {
    const before = await start();
    const { client } = await coordinator.createUser('Ann');
    await coordinator.createPolicy({ policyName: 'two', condition: 'true', consensus: 'approvers.count() >= 2' });
    await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag());
    coordinator.clock.advance(8 * 24 * 60 * 60 * 1_000);
    await coordinator.settled();
    await expectFiring(['CountersignActivitiesWait'], [[before, 4]], [[await scrape(coordinator.url), 8]]);
  });
});

test('faults of a process: a disk that fills, mail that is refused, an end, and starts again and again', async () => {
  const installation = await Installation.make();
  try {
    const mail = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'Example <no-reply@example.com>' };
    const first = await installation.start(mail);
    const before = await scrape(first.url);
    const client = await installation.client(first.url);
    const contact = { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com', appName: 'Example' };
    const body = client.submitBody('ACTIVITY_TYPE_INIT_OTP_V3', { ...contact, otpLength: 6 });
    await client.post('/public/v1/submit/init_otp', body);
    let refused = await scrape(first.url);
    await until('a message is sent again', async () => {
      refused = await scrape(first.url);
      return [...refused].some(([series, value]) => series.includes('outcome="retrying"') && value > 0);
    });
    await expectFiring(['CountersignMessagesFail'], [[before, 4]], [[refused, 4]]);
    await expectDashboard(before, refused);
    first.child.kill('SIGKILL');
    await first.exit;
    await expectFiring(['CountersignDown'], [[before, 4]], [[await scrape(first.url), 8]]);

    const { bavail, bsize } = await statfs(installation.dataDir);
    const second = await installation.start({ MIN_FREE_DISK: `${Math.floor((bavail * bsize) / 1024 / 2)}KiB` });
    const nearlyFull = await scrape(second.url);
    await expectFiring(['CountersignDegraded'], [[before, 4]], [[nearlyFull, 8]]);
    second.child.kill('SIGKILL');
    await second.exit;
    const third = await installation.start({ MIN_FREE_DISK: '8000TiB' });
    const full = await scrape(third.url);
    await expectFiring(['CountersignNotReady'], [[before, 4]], [[full, 8]]);
    third.child.kill('SIGKILL');
    await third.exit;
    const fourth = await installation.start();
    const last = await scrape(fourth.url);
    await expectFiring(
      ['CountersignRestarts'],
      [[before, 4]],
      [
        [nearlyFull, 2],
        [full, 2],
        [last, 2],
      ],
    );
  } finally {
    await installation.remove();
  }
});

describe('faults of the store, the clock and the history of a process', () => {
  let installation: Installation;
  beforeEach(async () => (installation = await Installation.make()));
  afterEach(() => installation.remove());

  /** Scrapes until a metric has a value. */
  async function scrapeWith(url: string, series: RegExp, isSo: (value: number) => boolean): Promise<Scrape> {
    let samples: Scrape = new Map();
    await until(`${series.source} is so`, async () => {
      samples = await scrape(url);
      return [...samples].some(([name, value]) => series.test(name) && isSo(value));
    });
    return samples;
  }
  const condition = (url: string, name: string) =>
    scrapeWith(url, new RegExp(`^countersign_condition\\{name="${name}"`), (value) => value === 1);
  const submit = async (url: string) =>
    (await installation.client(url)).submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag()).then(
      () => 200,
      (error: unknown) => (error as { readonly status?: number }).status,
    );

  test('a remote store that hangs', async () => {
    const double = await EventStoreDouble.start();
    double.maxAppendBytes = 4 * 1024 * 1024;
    const settings = { EVENT_STORE: double.connectionString, KEK: '11'.repeat(32) };
    try {
      // A start on a busy machine may hear too late from the fake; whoever runs it starts it again.
      const starts = () => installation.start(settings);
      const server = await starts().catch(starts).catch(starts);
      expect(await submit(server.url)).toBe(200);
      const before = await scrapeWith(server.url, /^countersign_ready/, (value) => value === 1);
      double.hang();
      const refusedSubmits = async () => {
        const statuses = await Promise.all(Array.from({ length: 5 }, () => submit(server.url)));
        expect(statuses).toEqual(Array(5).fill(503));
      };
      await refusedSubmits();
      const one = await scrapeWith(server.url, /^countersign_append_failures_total/, (value) => value > 0);
      // An increase is seen only in a series that was there before.
      await refusedSubmits();
      const two = await condition(server.url, 'event-store-unreachable');
      const during = [
        [one, 4],
        [two, 8],
      ] as const;
      await expectFiring(['CountersignNotReady', 'CountersignAppendsFail', 'CountersignErrors'], [[before, 4]], during);
      await expectDashboard(before, two);
    } finally {
      await double.stop();
    }
  });

  test('a disk that fails: the process has gone', async () => {
    const faults = new DiskFaults(installation.dataDir);
    try {
      const server = await installation.start(faults.env);
      const before = await scrape(server.url);
      faults.begin('sync', 'EIO');
      expect(await submit(server.url)).not.toBe(200);
      expect(await server.exit).toEqual({ code: 1, signal: null });
      await expectFiring(['CountersignDown'], [[before, 4]], [[await scrape(server.url), 8]]);
    } finally {
      faults.remove();
    }
  });

  test('lost events: no start', async () => {
    await stop(await installation.start());
    const server = await installation.start();
    const client = await installation.client(server.url);
    for (let count = 0; count < 20; count++) await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag());
    await client.query('list_user_tags');
    const before = await scrape(server.url);
    server.child.kill('SIGKILL');
    await server.exit;
    const log = join(installation.dataDir, 'events.db-wal');
    await truncate(log, Math.floor((await stat(log)).size / 2));
    const refused = installation.run(main, { PORT: new URL(server.url).port });
    expect((await refused.exit).code).toBe(1);
    expect(refused.stderr()).toContain('has lost events');
    await expectFiring(['CountersignDown'], [[before, 4]], [[await scrape(server.url), 8]]);
  });

  test('a lock that another program keeps', async () => {
    const server = await installation.start();
    const before = await scrape(server.url);
    const other = new Database(join(installation.dataDir, 'events.db'));
    try {
      other.exec('BEGIN IMMEDIATE');
      expect(await submit(server.url)).toBe(503);
      const during = await condition(server.url, 'event-store-locked');
      await expectFiring(['CountersignDegraded'], [[before, 4]], [[during, 8]]);
    } finally {
      other.close();
    }
  });

  test('a clock that has jumped: decisions are refused', async () => {
    const file = join(installation.dataDir, '..', `${installation.dataDir.split('/').at(-1)}-clock`);
    await writeFile(file, '0');
    try {
      const source =
        `import{readFileSync}from'node:fs';const now=Date.now;` +
        `Date.now=()=>now()+Number(readFileSync(${JSON.stringify(file)},'utf8'))`;
      const flags = ['--import', `data:text/javascript,${encodeURIComponent(source)}`];
      const server = await installation.start({}, flags);
      const before = await scrape(server.url);
      await writeFile(file, String(2 * 60 * 60 * 1_000));
      const during = await condition(server.url, 'clock-stepped-ahead');
      expect(await submit(server.url)).toBe(503);
      await expectFiring(['CountersignClockJumped', 'CountersignNotReady'], [[before, 4]], [[during, 8]]);
    } finally {
      await rm(file);
    }
  });

  test('an organization whose history cannot be read', async () => {
    const first = await installation.start();
    const client = await installation.client(first.url);
    const { publicKey, curve } = client.key;
    const { subOrganizationId } = await client.perform<{ subOrganizationId: string }>(
      'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7',
      {
        subOrganizationName: 'damaged',
        rootUsers: [
          {
            userName: 'Ann',
            apiKeys: [{ apiKeyName: 'key', publicKey, curveType: curve }],
            authenticators: [],
            oauthProviders: [],
          },
        ],
        rootQuorumThreshold: 1,
      },
    );
    await stop(first);
    const events = new Database(join(installation.dataDir, 'events.db'));
    const sql = `UPDATE events SET data = replace(data, 'damaged', 'dAmaged') WHERE stream = ?`;
    expect(events.prepare(sql).run([organizationStream(subOrganizationId)]).changes).toBeGreaterThan(0);
    events.close();
    const second = await installation.start();
    const before = await scrape(second.url);
    const reader = await installation.client(second.url);
    await expect(reader.query('get_organization', { organizationId: subOrganizationId })).rejects.toThrow();
    const during = await condition(second.url, 'unreadable-events');
    await expectFiring(['CountersignDegraded'], [[before, 4]], [[during, 8]]);
  });
});

test('every alert was seen to fire', () => {
  expect([...fired].sort()).toEqual([...alerts].sort());
});
