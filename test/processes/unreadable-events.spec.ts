import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { linkTexts } from '../../src/ledger/chain.js';
import { StampingClient, type ApiKeyPair } from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { countersign, Installation, type Run } from '../e2e/installation.js';
import { linesIn } from '../e2e/log-lines.js';
import { until } from '../e2e/until.js';
import { newKey } from './coordinators.js';

const patience = 300_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

interface Tenant {
  readonly organizationId: string;
  readonly key: ApiKeyPair;
}

interface Stored {
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

/** Damages the history of an organization; returns the revision of the first event that cannot be read. */
type Damage = (file: Database.Database, stream: string) => number;

const damages: Readonly<Record<string, Damage>> = {
  'data that is not JSON': (file, stream) => change(file, stream, 'data', 'substr(data, 1, 20)'),
  'metadata that is not JSON': (file, stream) => change(file, stream, 'metadata', "replace(metadata, '{', '[')"),
  'a broken hash': (file, stream) => change(file, stream, 'data', "replace(data, 'first', 'fIrst')"),
  'a broken hash, and data that no projection takes': (file, stream) =>
    change(file, stream, 'data', `replace(data, '"tagId"', '"tagIx"')`),
  'a type that this build does not know': (file, stream) => {
    const [last] = file
      .prepare('SELECT * FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1')
      .all([stream]) as [Stored];
    const before = JSON.parse(last.metadata) as { readonly hash: string; readonly unchained?: object };
    const { hash, unchained: _unchained, ...chained } = before;
    const event = { stream, revision: last.revision + 1, id: crypto.randomUUID(), type: 'SomethingOfALaterRelease' };
    const metadata = JSON.stringify(chained);
    const link = linkTexts(hash, event, '{}', metadata);
    file
      .prepare('INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)')
      .run([stream, event.revision, event.id, event.type, '{}', `${metadata.slice(0, -1)},"hash":"${link}"}`]);
    return event.revision;
  },
};

function change(file: Database.Database, stream: string, column: 'data' | 'metadata', value: string): number {
  const first = "SELECT revision FROM events WHERE stream = ? AND type = 'UserTagCreated' ORDER BY revision";
  const { revision } = file.prepare(first).get([stream]) as Stored;
  const update = file.prepare(`UPDATE events SET ${column} = ${value} WHERE stream = ? AND revision = ?`);
  expect(update.run([stream, revision]).changes).toBe(1);
  return revision;
}

const eventsFile = () => join(installation.dataDir, 'events.db');

/** All events, to put them back. */
function takeCopy(): readonly Stored[] {
  const file = new Database(eventsFile());
  const rows = file.prepare('SELECT stream, revision, data, metadata FROM events').all([]) as Stored[];
  file.close();
  return rows;
}

function repair(rows: readonly Stored[]): void {
  const file = new Database(eventsFile());
  file.exec("BEGIN; DELETE FROM events WHERE type = 'SomethingOfALaterRelease'");
  const update = file.prepare('UPDATE events SET data = ?, metadata = ? WHERE stream = ? AND revision = ?');
  for (const { stream, revision, data, metadata } of rows) update.run([data, metadata, stream, revision]);
  file.exec('COMMIT');
  file.close();
}

async function removeRows(): Promise<void> {
  for (const end of ['', '-wal', '-shm']) await rm(join(installation.dataDir, `read-models.db${end}`), { force: true });
}

async function found(root: StampingClient, name: string): Promise<Tenant> {
  const key = newKey();
  const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }];
  const { subOrganizationId } = await root.perform<{ subOrganizationId: string }>(
    'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7',
    {
      subOrganizationName: name,
      rootUsers: [{ userName: 'Somebody', apiKeys, authenticators: [], oauthProviders: [] }],
      rootQuorumThreshold: 1,
    },
  );
  return { organizationId: subOrganizationId, key };
}

const createTag = (client: StampingClient, userTagName: string) =>
  client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });

/** What becomes of a submit and of queries, each of which is answered from other sources. */
function outcomesOf(client: StampingClient, tagName: string): Promise<readonly string[]> {
  const requests = [
    () => createTag(client, tagName),
    () => client.query('whoami'),
    () => client.query('list_user_tags'),
    () => client.query('list_activities'),
    () => client.query('list_policies'),
  ];
  return Promise.all(
    requests.map((request) =>
      request().then(
        () => 'done',
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      ),
    ),
  );
}

const allDone = ['done', 'done', 'done', 'done', 'done'];

async function command(...args: readonly string[]): Promise<{ code: number | null; out: string }> {
  const run: Run = installation.run(countersign, {}, args);
  const { code } = await run.exit;
  return { code, out: run.stdout() + run.stderr() };
}

async function stopped({ child, exit }: Run): Promise<void> {
  child.kill('SIGTERM');
  expect(await exit).toEqual({ code: 0, signal: null });
}

/** Once the read models have caught up. */
async function readiness(url: string): Promise<object> {
  await until('it is ready', async () => (await exchange(`${url}/health/ready`)).status === 200);
  const { status: code, body } = await exchange(`${url}/health/ready`);
  return { code, ...(body as object) };
}

const degraded = { code: 200, status: 'degraded', conditions: [{ name: 'unreadable-events', severity: 'degraded' }] };
const condition = 'countersign_condition{name="unreadable-events",severity="degraded"} 1';

test(
  'an event that cannot be read refuses only its organization, until it is repaired',
  async () => {
    const names = Object.keys(damages);
    const first = await installation.start();
    const root = await installation.client(first.url);
    const tenants = new Map<string, Tenant>();
    for (const name of [...names, 'sound']) {
      const tenant = await found(root, name);
      tenants.set(name, tenant);
      const client = new StampingClient(first.url, tenant.organizationId, tenant.key);
      await createTag(client, 'first');
      await createTag(client, 'second');
    }
    await stopped(first);

    const sound = takeCopy();
    const file = new Database(eventsFile());
    const revisions = new Map<string, number>();
    for (const name of names) {
      revisions.set(name, damages[name]!(file, organizationStream(tenants.get(name)!.organizationId)));
    }
    file.close();

    for (const rows of ['kept', 'rebuilt']) {
      if (rows === 'rebuilt') await removeRows();
      const server = await installation.start();
      for (const name of names) {
        const { organizationId, key } = tenants.get(name)!;
        const outcomes = await outcomesOf(new StampingClient(server.url, organizationId, key), rows);
        const place = `revision ${revisions.get(name)} of stream \`organization-${organizationId}\` \\(position \\d+\\)`;
        const refusal = `^503 organization \`${organizationId}\` is not available: the event at ${place} cannot be read; .*verify.*backup`;
        expect({ name, outcomes }).toEqual({
          name,
          outcomes: outcomes.map(() => expect.stringMatching(new RegExp(refusal)) as string),
        });
      }
      const { organizationId, key } = tenants.get('sound')!;
      expect(await outcomesOf(new StampingClient(server.url, organizationId, key), rows)).toEqual(allDone);
      expect(await outcomesOf(await installation.client(server.url), rows)).toEqual(allDone);

      const ready = await readiness(server.url);
      expect(ready).toMatchObject({ ...degraded, readModels: { failed: [] } });
      for (const tenant of tenants.values()) expect(JSON.stringify(ready)).not.toContain(tenant.organizationId);
      expect((await exchange(`${server.url}/metrics`)).text).toContain(condition);
      await stopped(server);
      const errors = linesIn(server.stderr()).filter(({ level }) => level >= 50);
      expect(errors.map((line) => line['organizationId']).sort()).toEqual(
        names.map((name) => tenants.get(name)!.organizationId).sort(),
      );
      // A parser's message would quote what is stored.
      expect(server.stderr()).not.toContain('Unexpected');
    }

    const verified = await command('verify');
    expect(verified.code).toBe(1);
    for (const name of names) {
      expect(verified.out).toContain(`organization-${tenants.get(name)!.organizationId} @ ${revisions.get(name)}: `);
    }
    expect(verified.out).not.toContain(tenants.get('sound')!.organizationId);

    repair(sound);
    const last = await installation.start();
    for (const { organizationId, key } of tenants.values()) {
      const client = new StampingClient(last.url, organizationId, key);
      expect(await outcomesOf(client, 'repaired')).toEqual(allDone);
      const { userTags } = await client.query<{ userTags: readonly { tagName: string }[] }>('list_user_tags');
      expect(userTags.map(({ tagName }) => tagName)).toEqual(expect.arrayContaining(['first', 'second', 'repaired']));
    }
    expect(await readiness(last.url)).toMatchObject({ code: 200, status: 'ok' });
    await stopped(last);
    expect(await command('verify')).toMatchObject({ code: 0 });
  },
  patience,
);

const marker = 'pqrs'.repeat(30);

/** Breaks the list of pages that a long event takes, so that SQLite can return neither it nor any event together with it. */
async function breakRow(text: string): Promise<void> {
  const database = new Database(eventsFile());
  database.pragma('wal_checkpoint(TRUNCATE)');
  const [{ page_size: size }] = database.pragma('page_size') as [{ page_size: number }];
  database.close();
  const bytes = await readFile(eventsFile());
  // A page of a long value begins with the number of the next one; all others with a type that is not 0.
  let at = 0;
  while (bytes[at] !== 0 || bytes.readUInt32BE(at) === 0 || !bytes.subarray(at, at + size).includes(text)) at += size;
  bytes.writeUInt32BE(0xfffffff0, at);
  await writeFile(eventsFile(), bytes);
}

test(
  'a row that SQLite cannot return refuses only its organization',
  async () => {
    const first = await installation.start();
    const root = await installation.client(first.url);
    const [damaged, neighbour] = [await found(root, 'damaged'), await found(root, 'neighbour')];
    const clientOf = (url: string, { organizationId, key }: Tenant) => new StampingClient(url, organizationId, key);
    const inputs = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, type: 'bool' }));
    const functions = Array.from({ length: 200 }, (_, at) => ({ type: 'function', name: `${marker}${at}`, inputs }));
    await clientOf(first.url, damaged).submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
      smartContractInterface: JSON.stringify(functions),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'long',
    });
    await createTag(clientOf(first.url, neighbour), 'first');
    await stopped(first);
    await breakRow(marker);
    await removeRows();

    const second = await installation.start();
    const outcomes = await outcomesOf(clientOf(second.url, damaged), 'second');
    expect(outcomes).toEqual(
      outcomes.map(
        () => expect.stringContaining(`503 organization \`${damaged.organizationId}\` is not available`) as string,
      ),
    );
    expect(await outcomesOf(clientOf(second.url, neighbour), 'second')).toEqual(allDone);
    expect(await outcomesOf(await installation.client(second.url), 'second')).toEqual(allDone);
    expect(await readiness(second.url)).toMatchObject(degraded);
    await stopped(second);
    const { code, out } = await command('verify');
    expect(code).toBe(1);
    expect(out).toMatch(/events\.db is damaged/);
  },
  patience,
);

test(
  'a damaged parent refuses what its sub-organizations need it for, and names the parent',
  async () => {
    const first = await installation.start();
    const root = await installation.client(first.url);
    const child = await found(root, 'child');
    await createTag(root, 'first');
    await stopped(first);
    const file = new Database(eventsFile());
    const revision = change(file, organizationStream(root.organizationId), 'data', "replace(data, 'first', 'fIrst')");
    file.close();

    const second = await installation.start();
    const client = new StampingClient(second.url, child.organizationId, child.key);
    await expect(createTag(client, 'first')).rejects.toThrow(
      `503 organization \`${root.organizationId}\` is not available: the event at revision ${revision} of stream`,
    );
    expect(await client.query('whoami')).toMatchObject({ organizationId: child.organizationId });
    expect(await client.query('list_activities')).toMatchObject({ activities: [] });
    expect(await readiness(second.url)).toMatchObject(degraded);
    expect((await command('doctor')).out).toMatch(/warning +coordinator: .* degraded: .*unreadable-events/);
    await stopped(second);
  },
  patience,
);

test(
  'a damaged event of the installation itself refuses the start in one line',
  async () => {
    await stopped(await installation.start());
    const file = new Database(eventsFile());
    file.exec("UPDATE events SET data = substr(data, 1, 20) WHERE type = 'CoordinatorBooted'");
    file.close();
    await expect(installation.start()).rejects.toThrow(
      /\ncountersign cannot start: .*stream `\S+`.*; run countersign verify, and restore a backup\n/,
    );
  },
  patience,
);
