import { spawnSync } from 'node:child_process';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { ManualClock, SeededRandomness, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { importHistory, readImport } from '../../src/testing/import-history.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { Vault } from '../../src/vault/vault.js';
import { TypingUser } from '../cli/typed.js';
import { countersign, Installation } from '../e2e/installation.js';

// The command line, and a real coordinator that is started on what a test harness has made.

let user: TypingUser;
let production: TestCoordinator;

beforeAll(async () => {
  production = await startCoordinator({ seed: 'production' });
  await production.createUser('Alice Adams');
  // More than SQLite keeps beside a store that is only read, and so long that a block of 512 bytes ends within the last line.
  for (const policyName of ['one', 'two', 'three', 'four', 'five'])
    await production.createPolicy({ policyName, notes: `👩\u200d💻${'x'.repeat(4_048)}` });
  user = await TypingUser.sitDown();
  await mkdir(user.path('data'));
  const store = await SqliteEventStore.open(user.path('data', 'events.db'));
  const heads = new Map<string, number>();
  for (const { stream, id, type, data, metadata } of await production.recorded()) {
    if (stream.startsWith('renewals-')) continue;
    const { revision } = await store.append(stream, [{ id, type, data, metadata }], heads.get(stream) ?? 'no-stream');
    heads.set(stream, revision);
  }
  await store.close();
});

afterAll(async () => {
  await user.leaves();
  await production.close();
});

test('writes a file for its owner only, which goes on in a test, and never over another', async () => {
  const command = ['history', 'export', '--data-dir', 'data', '--organization', production.organizationId];
  const { code, out, error } = await user.types([...command, '--redact', '--out', 'bug.jsonl']);
  expect({ code, error }).toEqual({ code: 0, error: '' });
  expect(out).toMatch(/bug\.jsonl: \d+ events of organization .*; personal data was replaced in \d+ events\.\n$/);
  expect((await stat(user.path('bug.jsonl'))).mode & 0o777).toBe(0o600);
  expect(await readFile(user.path('bug.jsonl'), 'utf8')).not.toContain('Alice');
  await using coordinator = await startCoordinator({ history: user.path('bug.jsonl') });
  expect(await coordinator.createTag('goes on')).toBeDefined();

  expect(await user.types([...command, '--out', 'bug.jsonl'])).toMatchObject({ code: 2 });
  const shown = await user.types(command);
  expect(shown.out).toContain('Alice');
  expect(shown.out.split('\n')[0]).toContain('"format":"countersign history"');
  // As if it had been piped: what a terminal may act on is an escape, in the file and in its hash.
  await writeFile(user.path('piped.jsonl'), shown.out);
  await (await startCoordinator({ history: user.path('piped.jsonl') })).close();
  expect(await user.types([...command, '--json'])).toMatchObject({ code: 2 });
  const report = await user.json([...command, '--out', 'whole.jsonl']);
  expect(report).toMatchObject({ changed: 0, otherwise: [], header: { redacted: 'none' } });
  const unknown = ['history', 'export', '--data-dir', 'data', '--organization', 'nobody'];
  expect(await user.types(unknown)).toMatchObject({ code: 2 });
});

test('a file that the disk has no room for is not called written, though only a part of its last line is missing', async () => {
  const command = ['history', 'export', '--data-dir', 'data', '--organization', production.organizationId, '--out'];
  await user.types([...command, 'roomy.jsonl']);
  // `sh` counts blocks of 512 bytes, and ignores the signal of a full one for the process that inherits that.
  const text = await readFile(user.path('roomy.jsonl'), 'utf8');
  const blocks = Math.floor((Buffer.byteLength(text) - 1) / 512);
  expect(blocks * 512).toBeGreaterThan(Buffer.byteLength(text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1)));
  const { status, stdout, stderr } = spawnSync(
    'sh',
    [
      ...['-c', `trap '' XFSZ; ulimit -f ${blocks}; exec "$@"`, 'sh'],
      ...[process.execPath, countersign, ...command, 'cramped.jsonl'],
    ],
    { cwd: user.path('.'), encoding: 'utf8', env: {}, timeout: 60_000 },
  );
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: '',
    stderr: expect.stringContaining('EFBIG') as string,
  });
  await expect(stat(user.path('cramped.jsonl'))).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a coordinator does not start on a store that a test harness has filled, and writes nothing to it', async () => {
  await user.types([
    ...['history', 'export', '--data-dir', 'data', '--organization', production.organizationId],
    ...['--out', 'forged.jsonl'],
  ]);
  const installation = await Installation.make();
  try {
    const file = join(installation.dataDir, 'events.db');
    const store = await SqliteEventStore.open(file);
    const randomness = new SeededRandomness('attacker');
    const clock = new ManualClock(Date.parse('2026-06-01'));
    const keyEncryption = new LocalKeyEncryption([randomness.bytes(32)], randomness);
    const vault = new Vault({ store, keyEncryption, randomness, clock });
    const now = clock.now();
    await importHistory(await readImport(user.path('forged.jsonl')), { store, vault, randomness, now });
    const head = await store.head();
    await store.close();
    await writeFile(join(installation.dataDir, 'root.json'), '{}');
    await expect(installation.start()).rejects.toThrow(/imported for tests/);
    const after = await SqliteEventStore.open(file);
    expect(await after.head()).toBe(head);
    await after.close();
  } finally {
    await installation.remove();
  }
});
