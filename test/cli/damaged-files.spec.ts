import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import Database from 'libsql';
import { Installation, stop } from '../e2e/installation.js';
import { TypingUser } from './typed.js';

let installation: Installation;
let user: TypingUser;

/** A real installation, which a coordinator has made and left; each test damages a copy of it. */
beforeAll(async () => {
  installation = await Installation.make();
  const server = await installation.start();
  const client = await installation.client(server.url);
  for (let tag = 0; tag < 3; tag++) {
    await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${tag}`, userIds: [] });
  }
  await stop(server);
}, 120_000);

afterAll(() => installation.remove());

beforeEach(async () => {
  user = await TypingUser.sitDown();
  await cp(installation.dataDir, user.path('data'), { recursive: true });
});

afterEach(() => user.leaves());

const verify = (...more: readonly string[]) => user.types(['verify', '--data-dir', 'data', ...more]);

/** Changes a byte in the page that an index begins with. */
async function damageIndex(name: string): Promise<void> {
  const file = user.path('data', 'events.db');
  const database = new Database(file);
  database.pragma('wal_checkpoint(TRUNCATE)');
  const [{ page_size: size }] = database.pragma('page_size') as [{ page_size: number }];
  const { rootpage } = database.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get([name]) as {
    rootpage: number;
  };
  database.close();
  const bytes = await readFile(file);
  bytes[rootpage * size - 40]! ^= 1;
  await writeFile(file, bytes);
}

test('verify and doctor name a damaged index, and how to build it anew', async () => {
  expect(await verify()).toMatchObject({ code: 0 });
  await damageIndex('sqlite_autoindex_events_1');
  const { code, out, error } = await verify();
  expect({ code, error }).toEqual({ code: 1, error: '' });
  expect(out).toMatch(
    /events\.db is damaged:\n {2}.*index sqlite_autoindex_events_1\n[^]* {2}→ .* run sqlite3 \S+events\.db REINDEX/,
  );
  const doctor = await user.types(['doctor', '--data-dir', 'data', '--json']);
  expect(doctor.code).toBe(1);
  expect(doctor.out).toMatch(/"about":"files","level":"problem","found":"\S+events\.db is damaged: [^"]*index/);

  const database = new Database(user.path('data', 'events.db'));
  database.exec('REINDEX');
  database.close();
  expect(await verify()).toMatchObject({ code: 0 });
});

test('verify ends, and verifies the events, where the read models are no database', async () => {
  for (const end of ['-wal', '-shm']) await rm(user.path('data', `read-models.db${end}`), { force: true });
  await writeFile(user.path('data', 'read-models.db'), 'no database '.repeat(1_000));
  const { code, out, error } = await verify();
  expect({ code, error }).toEqual({ code: 1, error: '' });
  expect(out).toMatch(
    /read-models\.db is damaged:\n {2}file is not a database\n {2}→ stop the coordinator and remove it/,
  );
  expect(out).toMatch(/\d+ events in \d+ streams/);
});

test('verify says which file it cannot read', async () => {
  const file = user.path('data', 'events.db');
  const bytes = await readFile(file);
  await writeFile(file, bytes.fill(0, 4096, 8192));
  const { code, out } = await verify();
  expect(code).toBe(1);
  expect(out).toMatch(/events\.db is damaged:\n[^]*→ stop the coordinator and restore a backup/);
});
