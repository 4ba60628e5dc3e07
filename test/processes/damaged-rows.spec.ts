import Database from 'libsql';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { submitPath, type StampingClient } from '../../src/testing/index.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { exchange } from '../e2e/exchange.js';
import { Installation, stop } from '../e2e/installation.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const patience = 120_000;
const page = 8_192;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

async function send(client: StampingClient, body: string): Promise<string> {
  const { activity } = (await client.post<{ activity: ActivityEnvelope }>(submitPath(tagType), body)).body;
  return activity.id;
}

/** Bytes of the pages of a table, from a place in each on, read as zeros: blocks of a disk were lost. */
async function lose(table: string, from: number): Promise<void> {
  const file = join(installation.dataDir, 'read-models.db');
  const database = new Database(file);
  database.pragma('wal_checkpoint(TRUNCATE)');
  const { root } = database.prepare('SELECT rootpage AS root FROM sqlite_schema WHERE name = ?').get([table]) as {
    readonly root: number;
  };
  database.close();
  const handle = await open(file, 'r+');
  await handle.write(Buffer.alloc(page / 2), 0, page / 2, (root - 1) * page + from);
  await handle.close();
}

/** A coordinator that has ended, and what it was sent: body by id of the activity. */
async function used(): Promise<ReadonlyMap<string, string>> {
  const server = await installation.start();
  const client = await installation.client(server.url);
  const sent = new Map<string, string>();
  for (let count = 0; count < 60; count++) {
    const body = client.submitBody(tagType, { userTagName: `tag ${count}`, userIds: [] });
    sent.set(await send(client, body), body);
  }
  await client.query('list_user_tags');
  await stop(server);
  return sent;
}

async function sendAgain({ url }: { readonly url: string }, sent: ReadonlyMap<string, string>) {
  const client = await installation.client(url);
  const ids: string[] = [];
  for (const body of sent.values()) ids.push(await send(client, body));
  return ids;
}

test(
  'a lost block of the fingerprints is noticed at the start, and no request happens twice',
  async () => {
    const sent = await used();
    await lose('activity_fingerprints', page / 2);
    const server = await installation.start();
    expect(server.stdout() + server.stderr()).toContain('the read models were damaged, and are rebuilt');
    expect(await sendAgain(server, sent)).toEqual([...sent.keys()]);
  },
  patience,
);

/** Rows of activities are gone, as where SQLite takes a lost block for an empty one. */
function loseRows(): Promise<void> {
  const database = new Database(join(installation.dataDir, 'read-models.db'));
  database.exec('DELETE FROM activities');
  database.close();
  return Promise.resolve();
}

test.each([
  ['that SQLite finds', () => lose('activities', 0), 'database disk image is malformed'],
  ['that only a missing row shows', loseRows, 'an activity is missing whose request is known'],
])(
  'damage %s when a decision meets it stops the read models, and a restart rebuilds them',
  async (_, damage, complaint) => {
    const sent = await used();
    await damage();
    const damaged = await installation.start();
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(sendAgain(damaged, sent)).rejects.toMatchObject({ status: 503 });
    const health = await exchange(`${damaged.url}/health/ready`);
    expect([health.status, health.text]).toEqual([503, expect.stringContaining('failed') as string]);
    const reason = `read-models.db\` is damaged (${complaint}), and may be deleted`;
    expect(damaged.stdout() + damaged.stderr()).toContain(reason);
    damaged.child.kill('SIGTERM');
    expect(await damaged.exit).toEqual({ code: 0, signal: null });

    const rebuilt = await installation.start();
    expect(await sendAgain(rebuilt, sent)).toEqual([...sent.keys()]);
  },
  patience,
);
