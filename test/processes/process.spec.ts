import { spawn } from 'node:child_process';
import { rm, stat, utimes } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import { expectedAfter, seal, type Tail } from '../../src/ledger/seal.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { stampBody } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { Installation, main, stop } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 120_000;

const root = new URL('../..', import.meta.url).pathname;

const always = () => true;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

test(
  '`npm start` that is told to end ends its coordinator',
  async () => {
    const env = { ...process.env, DATA_DIR: installation.dataDir, PORT: '0', LOG_LEVEL: 'error' };
    const npm = spawn('npm', ['start'], { cwd: root, env, stdio: 'ignore', detached: true });
    try {
      let url: string | undefined;
      await until('it is up', async () => {
        url = (await installation.root().catch(() => undefined))?.['apiUrl'];
        return url !== undefined;
      });
      npm.kill('SIGTERM');
      await until('nobody answers any more', () =>
        fetch(`${url}/health/live`).then(
          () => false,
          () => true,
        ),
      );
    } finally {
      // All that it has started, if that did not end with it; nothing otherwise.
      try {
        process.kill(-npm.pid!, 'SIGKILL');
      } catch (error) {
        expect(error).toMatchObject({ code: 'ESRCH' });
      }
    }
  },
  patience,
);

test(
  'the first start creates a root organization whose key only its owner can read, and a second start finds it',
  async () => {
    const first = await installation.start();
    const root = await installation.root();
    expect(Object.keys(root).sort()).toEqual([
      'apiPrivateKey',
      'apiPublicKey',
      'apiUrl',
      'authProxyConfigId',
      'authProxyUrl',
      'organizationId',
      'userId',
    ]);
    expect(root).toMatchObject({ apiUrl: first.url });
    expect(root['apiPublicKey']).toMatch(/^0[23][0-9a-f]{64}$/);
    expect((await stat(join(installation.dataDir, 'root.json'))).mode & 0o777).toBe(0o600);
    expect(first.stdout()).toContain('with a new root organization');
    expect(first.stdout()).toContain(root['organizationId']);
    expect(first.stdout()).not.toContain(root['apiPrivateKey']);
    expect((await exchange(`${first.url}/health/ready`)).status).toBe(200);

    const client = await installation.client(first.url);
    const body = client.submitBody(tagType, { userTagName: 'kept' });
    const { body: answer } = await client.post<{ activity: ActivityEnvelope }>(
      '/public/v1/submit/create_user_tag',
      body,
    );
    await stop(first);

    const second = await installation.start();
    expect(second.stdout()).not.toContain('new root organization');
    expect(await installation.root()).toEqual({ ...root, apiUrl: second.url, authProxyUrl: second.url });
    expect((await stat(join(installation.dataDir, 'root.json'))).mode & 0o777).toBe(0o600);
    const again = await installation.client(second.url);
    expect(await again.query('get_activity', { activityId: answer.activity.id })).toEqual({
      activity: answer.activity,
    });
    const { body: repeated } = await again.post('/public/v1/submit/create_user_tag', body);
    expect(repeated).toEqual(answer);

    // The read models are a cache: without them everything is there again.
    await stop(second);
    for (const suffix of ['', '-wal', '-shm'])
      await rm(join(installation.dataDir, `read-models.db${suffix}`), { force: true });
    const third = await installation.start();
    const rebuilt = await installation.client(third.url);
    expect(await rebuilt.query('get_activity', { activityId: answer.activity.id })).toEqual({
      activity: answer.activity,
    });
    await stop(third);
  },
  patience,
);

/** Adds so many events to an organization whose coordinator does not run. */
async function lengthen(organizationId: string, count: number): Promise<void> {
  const store = await SqliteEventStore.open(join(installation.dataDir, 'events.db'));
  const stream = organizationStream(organizationId);
  const [last] = await store.last(stream, 1);
  const { hash, at } = last!.metadata as EventMetadata;
  const before: Tail = { revision: last!.revision, hash };
  const facts = Array.from({ length: count }, (_, index) => ({
    type: 'OrganizationRenamed',
    data: { name: `Name ${index}` },
    metadata: { at, $correlationId: organizationId, $causationId: organizationId },
  }));
  await store.append(stream, seal(stream, before, facts).events, expectedAfter(before));
  await store.close();
}

test(
  'a question about a past state goes on, after a restart, from one that was kept in the data folder',
  async () => {
    await stop(await installation.start());
    const { organizationId } = await installation.root();
    await lengthen(organizationId!, 10_100);

    const askedOnce = async () => {
      const server = await installation.start();
      const client = await installation.client(server.url);
      const answer = await client.query('get_organization_state', { at: { revision: '10050' } });
      await stop(server, /rebuilding read models/);
      return answer;
    };
    const first = await askedOnce();
    const file = join(installation.dataDir, 'states', organizationId!, organizationId!, '10000.snapshot');
    const { ino, mode } = await stat(file);
    expect(mode & 0o777).toBe(0o600);
    const longAgo = new Date(0);
    await utimes(file, longAgo, longAgo);

    expect(await askedOnce()).toEqual(first);
    // It was used, and is the same: whoever folds from the first event writes another.
    const used = await stat(file);
    expect(used.ino).toBe(ino);
    expect(used.mtimeMs).toBeGreaterThan(longAgo.getTime());
  },
  patience,
);

test(
  'a second process on the same data is refused with one line, and the first goes on',
  async () => {
    const first = await installation.start();
    const second = installation.run(main);
    const { code } = await second.exit;
    expect(code).toBe(1);
    expect(second.stderr()).toMatch(/^countersign cannot start: [^\n]*events\.db[^\n]*\n$/m);
    expect(await (await installation.client(first.url)).query('whoami')).toMatchObject({ username: 'Root user' });
    await stop(first);
  },
  patience,
);

test(
  'SIGTERM, sent once or twice, lets a request in flight finish, then the process ends',
  async () => {
    const server = await installation.start();
    const client = await installation.client(server.url);
    const body = client.submitBody(tagType, { userTagName: 'in flight' });
    const { headerName, headerValue } = stampBody(body, client.key);
    // A client that would keep the connection for its next request must not keep the process.
    const agent = new Agent({ keepAlive: true });
    const answer = new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const outgoing = httpRequest(`${server.url}/public/v1/submit/create_user_tag`, {
        agent,
        method: 'POST',
        headers: { [headerName]: headerValue, 'content-length': Buffer.byteLength(body), expect: '100-continue' },
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode, text }));
      });
      // The server has the request's head when it asks for the rest.
      outgoing.on('continue', () => {
        outgoing.write(body.slice(0, 20));
        server.child.kill('SIGTERM');
        const isRefused = () =>
          fetch(`${server.url}/public/v1/query/whoami`, { method: 'POST' }).then(
            ({ status }) => status === 503,
            always,
          );
        until('nobody new is let in', isRefused).then(() => {
          // A supervisor tells the whole group, and `countersign start` passes on what it was told.
          server.child.kill('SIGTERM');
          outgoing.end(body.slice(20));
        }, reject);
      });
    });
    const { status, text } = await answer;
    expect({ status, text }).toMatchObject({ status: 200 });
    const answeredAt = performance.now();
    expect(await server.exit).toEqual({ code: 0, signal: null });
    // It would be kept for 72 seconds.
    expect(performance.now() - answeredAt).toBeLessThan(30_000);
    agent.destroy();
    await expect(fetch(`${server.url}/health/live`)).rejects.toThrow('fetch failed');

    const next = await installation.start();
    const { activity } = JSON.parse(text) as { activity: ActivityEnvelope };
    expect(await (await installation.client(next.url)).query('get_activity', { activityId: activity.id })).toEqual({
      activity,
    });
    await stop(next);
  },
  patience,
);

test(
  'killed under load, it loses nothing that it had confirmed',
  async () => {
    const server = await installation.start();
    const client = await installation.client(server.url);
    const answered: ActivityEnvelope[] = [];
    const submitted: string[] = [];
    const path = '/public/v1/submit/update_organization_name';
    let count = 0;
    const work = async () => {
      for (;;) {
        const parameters = { organizationName: `Name ${count++}` };
        const body = client.submitBody('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', parameters);
        submitted.push(body);
        try {
          answered.push((await client.post<{ activity: ActivityEnvelope }>(path, body)).body.activity);
        } catch {
          return;
        }
        if (answered.length === 150) server.child.kill('SIGKILL');
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
    expect((await server.exit).signal).toBe('SIGKILL');
    expect(answered.length).toBeGreaterThanOrEqual(150);

    const next = await installation.start();
    const again = await installation.client(next.url);
    const read = await Promise.all(answered.map(({ id }) => again.query('get_activity', { activityId: id })));
    expect(read).toEqual(answered.map((activity) => ({ activity })));
    // Whatever was not answered happened once or not at all; sent again it has happened once.
    const repeated = await Promise.all(submitted.map((body) => again.post<{ activity: ActivityEnvelope }>(path, body)));
    expect(new Set(repeated.map(({ body }) => body.activity.id)).size).toBe(submitted.length);
    await stop(next);
  },
  patience,
);
