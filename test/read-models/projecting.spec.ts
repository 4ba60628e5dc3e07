import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { findByFingerprint } from '../../src/read-models/activities.js';
import { projectIntoFile, type Projecting } from '../../src/read-models/projecting.js';
import { threadError } from '../../src/threads/thread-error.js';
import { id } from '../activities/given.js';
import { recorded } from './projected.js';

const driver = createRequire(import.meta.url).resolve('libsql');
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-projecting-'));
});

afterEach(() => rm(folder, { recursive: true }));

/** Locks a file of SQLite in a thread for so many milliseconds. Resolves when it is locked. */
async function locking(file: string, ms: number): Promise<Worker> {
  const worker = new Worker(
    `const { parentPort, workerData: { file, ms, driver } } = require('node:worker_threads');
     const database = new (require(driver))(file);
     database.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE');
     parentPort.postMessage('locked');
     setTimeout(() => database.exec('COMMIT'), ms);`,
    { eval: true, workerData: { file, ms, driver } },
  );
  await once(worker, 'message');
  return worker;
}

test('rows that another connection still locks are waited for, as when the one before copies its log back', async () => {
  const file = join(folder, 'rows.db');
  const worker = await locking(file, 700);
  const store = new InMemoryEventStore();
  const projecting = await projectIntoFile(file, { identity: 'one', head: -1n }, store);
  expect(projecting.progress().length).toBeGreaterThan(10);
  await projecting.close();
  await worker.terminate();
});

test('a thread ends whose file cannot be opened for readers', async () => {
  const file = join(folder, 'rows.db');
  const ended = new Promise<number>((resolve) =>
    process.once('worker', (thread: Worker) => {
      thread.once('exit', resolve);
      // It is ready: from now on the name leads to what is no file.
      thread.once('message', () => {
        rmSync(file);
        mkdirSync(file);
      });
    }),
  );
  await expect(projectIntoFile(file, { identity: 'one', head: -1n }, new InMemoryEventStore())).rejects.toThrow();
  expect(await ended).toBe(0);
});

/** Overwrites everything from a place on. */
async function spoil(file: string, from: number): Promise<void> {
  await writeFile(file, (await readFile(file)).fill(0xff, from));
}

describe('a batch that cannot be written, in a thread', () => {
  const events = recorded(id(1), [{ type: 'OrganizationCreated', data: { organizationId: id(1), name: 'One' } }]);
  const checkpoints = ({ progress }: Projecting) => new Set(progress().map(({ checkpoint }) => checkpoint));
  const failures = ({ progress }: Projecting) => new Set(progress().map(({ failure }) => failure));

  test('is taken again by the same thread, whichever model met the fault', async () => {
    const file = join(folder, 'rows.db');
    const projecting = await projectIntoFile(file, { identity: 'one', head: -1n }, new InMemoryEventStore());
    // As on a full disk, SQLite ends the transaction by itself.
    const fault = "SELECT RAISE(ROLLBACK, 'database or disk is full')";
    projecting.rows.run(`CREATE TRIGGER fault BEFORE INSERT ON organizations BEGIN ${fault}; END`);
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(projecting.project(events)).rejects.toThrow('database or disk is full');
      expect([checkpoints(projecting), failures(projecting)]).toEqual([new Set([-1n]), new Set([undefined])]);
    }
    projecting.rows.run('DROP TRIGGER fault');
    await projecting.project(events);
    expect([checkpoints(projecting), failures(projecting)]).toEqual([new Set([0n]), new Set([undefined])]);
    expect(projecting.rows.all('SELECT organization_id FROM organizations')).toHaveLength(1);
    await projecting.close();
  });

  test('stops every model if the thread is lost, and says that a restart is needed', async () => {
    const created = once(process, 'worker') as Promise<[Worker]>;
    const file = join(folder, 'rows.db');
    const projecting = await projectIntoFile(file, { identity: 'one', head: -1n }, new InMemoryEventStore());
    const [thread] = await created;
    const projected = projecting.project(events);
    await thread.terminate();
    await projected;
    const reason = 'the thread of the read models ended with code 1: restart the coordinator';
    expect(failures(projecting)).toEqual(new Set([reason]));
    await projecting.project(events);
    await projecting.close();
  });
});

describe('a damaged file', () => {
  const events = recorded(id(1), [{ type: 'OrganizationCreated', data: { organizationId: id(1), name: 'One' } }]);
  const store = new InMemoryEventStore();
  const source = { identity: 'one', head: 0n };
  let file: string;

  /** Rows of one event, in a file without a log. */
  beforeEach(async () => {
    file = join(folder, 'rows.db');
    const projecting = await projectIntoFile(file, source, store);
    await projecting.project(events);
    await projecting.close();
    const rows = new ReadModelDatabase(file);
    rows.get('PRAGMA wal_checkpoint(TRUNCATE)');
    rows.close();
  });

  test.each([
    ['is no database', () => writeFile(file, 'x'.repeat(100_000))],
    ['was cut off', () => truncate(file, 3 * 8_192)],
    ['cannot be read from its second page on', () => spoil(file, 8_192)],
  ])('that %s is rebuilt, and the log is told', async (_, damage) => {
    await damage();
    const told: unknown[] = [];
    const projecting = await projectIntoFile(file, source, store, { damaged: (error) => told.push(error) });
    expect(told).toEqual([
      expect.objectContaining({ code: expect.stringMatching(/^SQLITE_(CORRUPT|NOTADB)/) as string }),
    ]);
    expect(new Set(projecting.progress().map(({ checkpoint }) => checkpoint))).toEqual(new Set([-1n]));
    await projecting.project(events);
    expect(projecting.rows.all('SELECT organization_id FROM organizations')).toHaveLength(1);
    await projecting.close();
  });

  test('is not taken for one that cannot be opened', async () => {
    const told: unknown[] = [];
    await expect(projectIntoFile(folder, source, store, { damaged: (error) => told.push(error) })).rejects.toThrow();
    expect(told).toEqual([]);
  });

  test('that is met later stops every model, and the log says which file may be deleted', async () => {
    const projecting = await projectIntoFile(file, source, store);
    await projecting.project(events);
    const { rows } = projecting;
    // Another's write makes the thread read the file again.
    rows.run('CREATE TABLE others (one)');
    rows.get('PRAGMA wal_checkpoint(TRUNCATE)');
    await spoil(file, 8_192);
    await projecting.project(
      recorded(id(2), [{ type: 'OrganizationCreated', data: { organizationId: id(2), name: 'Two' } }], 1),
    );
    const reason =
      `\`${file}\` is damaged (database disk image is malformed), and may be deleted, with its -wal and -shm, ` +
      'while the coordinator is stopped: restart the coordinator';
    expect(new Set(projecting.progress().map(({ failure }) => failure))).toEqual(new Set([reason]));
    await projecting.close();
  });

  test('whose request is known without its activity stops every model, whatever SQLite says, and is rebuilt', async () => {
    const projecting = await projectIntoFile(file, source, store);
    const { rows } = projecting;
    const fingerprint = createHash('sha256').digest();
    rows.run('INSERT INTO activity_fingerprints VALUES (?, ?, 1)', id(1), fingerprint);
    const ask = () => findByFingerprint(rows, id(1), `sha256:${fingerprint.toString('hex')}`);
    const told = { code: 'UNAVAILABLE', message: 'read models have stopped: see the log of the server' };
    expect(ask).toThrow(expect.objectContaining(told) as Error);
    for (const { failure } of projecting.progress())
      expect(failure).toContain(`\`${file}\` is damaged (an activity is missing whose request is known)`);
    await projecting.close();
    await expect(readFile(file)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

test('an error of SQLite that ends a thread is told by its code, though Node.js passes it on as a plain object', async () => {
  const worker = new Worker(
    `const { workerData: { file, driver } } = require('node:worker_threads');
     const Database = require(driver);
     const [one, other] = [new Database(file), new Database(file)];
     one.exec('BEGIN IMMEDIATE');
     other.exec('BEGIN IMMEDIATE');`,
    { eval: true, workerData: { file: join(folder, 'busy.db'), driver } },
  );
  const [passed] = (await once(worker, 'error').catch((error: unknown) => [error])) as [unknown];
  expect(passed).not.toBeInstanceOf(Error);
  expect(threadError(passed).message).toBe('a thread has ended with `SQLITE_BUSY`');
  const own = new Error('it says why');
  expect(threadError(own)).toBe(own);
  expect(threadError('a text').message).toBe('a thread has ended with `a text`');
});
