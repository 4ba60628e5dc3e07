import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { projectIntoFile } from '../../src/read-models/projecting.js';
import { threadError } from '../../src/threads/thread-error.js';

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
