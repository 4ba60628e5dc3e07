import Database from 'libsql';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StoreUnavailable, WrongRevision, type EventReader } from '../../../src/ledger/event-store.js';
import {
  BrokenChain,
  GENESIS_HASH,
  LINK_LENGTH,
  linkTexts,
  verifyCanonicalChain,
  verifyChain,
} from '../../../src/ledger/chain.js';
import { emptyTail, seal } from '../../../src/ledger/seal.js';
import { checkedAfter, storedEvent } from '../../../src/ledger/stored-event.js';
import { SqliteEventStore } from '../../../src/ledger/stores/sqlite/sqlite.js';
import {
  all,
  anEvent,
  aStream,
  eventStoreContract,
  follow,
  pause,
  someEvents,
  type StoreUnderTest,
} from '../../contracts/event-store.contract.js';

const libsql = fileURLToPath(import.meta.resolve('libsql'));
const dist = (name: string): string => fileURLToPath(new URL(`../../../dist/ledger/${name}`, import.meta.url));

let directory: string;
let file: string;
const opened: SqliteEventStore[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'event-store-'));
  file = join(directory, 'events.db');
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await rm(directory, { recursive: true });
});

async function open(path = file): Promise<SqliteEventStore> {
  const store = await SqliteEventStore.open(path);
  opened.push(store);
  return store;
}

const underTest = (path: () => string) => async (): Promise<StoreUnderTest> => {
  const store = await open(path());
  return {
    store,
    reopen: async () => {
      await store.close();
      return open(path());
    },
    cleanup: () => store.close(),
  };
};
eventStoreContract(
  'the SQLite event store',
  underTest(() => file),
  underTest(() => join(directory, 'another.db')),
);

/** All bytes of the file and its log. */
function bytes(): string {
  // In another process: closing the file here would drop the locks of the store under test.
  const { stdout } = spawnSync('cat', [file, ...(existsSync(`${file}-wal`) ? [`${file}-wal`] : [])], {
    encoding: 'latin1',
    maxBuffer: 1 << 28,
  });
  return stdout;
}

describe('the SQLite file', () => {
  it('is left after close with an empty lock beside it, and every file is readable by its owner only', async () => {
    const store = await open();
    await store.append(aStream(), someEvents(1), 'no-stream');
    const files = ['events.db', 'events.db-shm', 'events.db-wal', 'events.db.lock', 'events.db.pid'];
    expect((await readdir(directory)).sort()).toEqual(files);
    for (const name of files) {
      expect([name, (await stat(join(directory, name))).mode & 0o077]).toEqual([name, 0]);
    }
    await store.close();
    expect((await readdir(directory)).sort()).toEqual(['events.db', 'events.db.lock']);
    expect((await stat(join(directory, 'events.db.lock'))).size).toBe(0);
  });

  it('has the documented table', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, [{ id: 'an id', type: 'UserCreated', data: { a: [1] }, metadata: null }], 'no-stream');
    await store.close();
    const database = new Database(file);
    expect(database.prepare('SELECT * FROM events').all([])).toEqual([
      { position: 1, stream, revision: 0, id: 'an id', type: 'UserCreated', data: '{"a":[1]}', metadata: 'null' },
    ]);
    expect(database.pragma('application_id')).toEqual([{ application_id: Buffer.from('CSGN').readInt32BE() }]);
    expect(database.pragma('user_version')).toEqual([{ user_version: 2 }]);
    expect(database.pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    database.close();
  });

  it('has one transaction for all appends that wait together', async () => {
    const store = await open();
    const before = (await stat(`${file}-wal`)).size;
    await Promise.all(Array.from({ length: 200 }, () => store.append(aStream(), someEvents(1), 'no-stream')));
    const together = (await stat(`${file}-wal`)).size - before;
    for (let index = 0; index < 200; index++) await store.append(aStream(), someEvents(1), 'no-stream');
    const apart = (await stat(`${file}-wal`)).size - before - together;
    // A transaction of its own writes at least three pages for each append; a shared one, far fewer than one.
    expect(together / 4096).toBeLessThan(100);
    expect(apart / 4096).toBeGreaterThan(600);
  });

  it('keeps its write-ahead log bounded', async () => {
    const store = await open();
    const stream = aStream();
    const text = 'x'.repeat(100_000);
    let largest = 0;
    for (let revision = 0; revision < 1_000; revision += 20) {
      const events = Array.from({ length: 20 }, () => anEvent({ text }));
      await store.append(stream, events, revision === 0 ? 'no-stream' : revision - 1);
      largest = Math.max(largest, (await stat(`${file}-wal`)).size);
    }
    expect((await stat(file)).size).toBeGreaterThan(80_000_000);
    expect(largest).toBeLessThan(24_000_000);
  });

  it('holds no byte of a deleted vault stream, nor does its log', async () => {
    const store = await open();
    const stream = 'vault-1';
    const secret = 'sealed-secret-to-be-shredded';
    const large = { sealed: secret.repeat(2_000) };
    await store.append(stream, [anEvent({ sealed: secret }), anEvent(large)], 'no-stream');
    await store.append('vault-2', [anEvent({ sealed: 'another secret' })], 'no-stream');
    await store.append(stream, [anEvent({ sealed: secret })], 1);
    expect(bytes().includes(secret)).toBe(true);

    await store.delete(stream);
    expect(bytes().includes(secret)).toBe(false);
    expect(bytes().includes('another secret')).toBe(true);
    await store.close();
    expect(bytes().includes(secret)).toBe(false);
  });
});

describe('opening', () => {
  it('is refused to a second store in the process, and the first stays protected', async () => {
    const store = await open();
    await expect(open()).rejects.toThrow(
      `the event store \`${file}\` is in use by this process (pid ${process.pid}): stop it first, or choose another file`,
    );
    await expect(open()).rejects.toBeInstanceOf(StoreUnavailable);
    expect(openElsewhere()).toContain(`is in use by another process (pid ${process.pid})`);
    await store.append(aStream(), someEvents(1), 'no-stream');
    await store.close();
    await (await open()).close();
  });

  it('is refused to another process, also before the first write', async () => {
    await open();
    expect(openElsewhere()).toContain(
      `the event store \`${file}\` is in use by another process (pid ${process.pid}): stop it first, or choose another file`,
    );
  });

  it('is refused to a release that locks the file itself, and while one has it', async () => {
    const store = await open();
    const exclusive = `
      const database = new (require(process.argv[1]))(process.argv[2]);
      database.pragma('locking_mode = EXCLUSIVE');
      database.exec('BEGIN EXCLUSIVE');`;
    expect(inAnotherProcess(exclusive).stderr).toContain('SQLITE_BUSY');
    await store.close();

    const older = await holding(`${exclusive} database.exec('COMMIT');`);
    await expect(open()).rejects.toThrow(`the event store \`${file}\` is in use by another process`);
    await expect(SqliteEventStore.openForReading(file)).rejects.toThrow(`\`${file}\` is in use by another process`);
    await older.end();
    await (await open()).close();
  });

  it('works again after close, in another process too', async () => {
    const store = await open();
    await store.append(aStream(), someEvents(1), 'no-stream');
    await store.close();
    expect(openElsewhere()).toBe('opened');
    expect(await (await open()).head()).toBe(1n);
  });

  it('is not fooled by the pid file of a process that is gone', async () => {
    await (await open()).close();
    await writeFile(`${file}.pid`, '1');
    await (await open()).close();
  });

  it.each([
    ['a later', 'PRAGMA user_version = 3', 3],
    ['an earlier', 'PRAGMA user_version = 1; PRAGMA application_id = 0', 1],
  ])('refuses a file of %s format, also for reading, and does not touch it', async (_which, change, format) => {
    await (await open()).close();
    const database = new Database(file);
    database.exec(change);
    database.close();
    const before = await readFile(file);
    const problem =
      `the event store \`${file}\` has format ${format}, but this release uses format 2: start the release that wrote it, ` +
      'or set DATA_DIR or EVENT_STORE to another store';
    await expect(open()).rejects.toThrow(problem);
    await expect(SqliteEventStore.openForReading(file)).rejects.toThrow(problem);
    expect(await readFile(file)).toEqual(before);
  });

  it.each([
    ['position = -10', 'an event at position -10'],
    ['position = 9007199254740993', 'an event at position 9007199254740993'],
    ['position = 9223372036854775807', 'an event at position 9223372036854775807'],
    ['stream = CAST(stream AS BLOB)', 'an event whose stream is no text'],
  ])(
    'refuses a file in which something else has set %s, which one reader sees and another does not',
    async (change, what) => {
      const store = await open();
      await store.append('organization-1', [anEvent(), anEvent()], 'no-stream');
      await store.close();
      const database = new Database(file);
      database.exec(`UPDATE events SET ${change} WHERE revision = 1`);
      database.close();
      const problem = `the event store \`${file}\` has ${what}, which no coordinator wrote: restore a backup`;
      await expect(SqliteEventStore.open(file)).rejects.toThrow(problem);
      await expect(SqliteEventStore.openForReading(file)).rejects.toThrow(problem);
    },
  );

  it.each([
    [
      'CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END',
      'the trigger t, which no coordinator made',
    ],
    ['CREATE VIEW v AS SELECT * FROM events', 'the view v, which no coordinator made'],
    ['CREATE INDEX i ON events (type)', 'the index i, which no coordinator made'],
    ['CREATE TABLE things (name TEXT)', 'the table things, which no coordinator made'],
    ['ALTER TABLE events ADD COLUMN more TEXT', 'the table events, which no coordinator made'],
    [
      'ALTER TABLE events RENAME TO real; CREATE VIEW events AS SELECT * FROM real',
      'the table real, which no coordinator made',
    ],
    ['DROP TABLE deleted_streams', 'no table deleted_streams'],
  ])('refuses a file in which something else did %s, also for reading', async (change, what) => {
    await (await open()).close();
    const database = new Database(file);
    database.exec(change);
    database.close();
    const problem = `the event store \`${file}\` has ${what}: restore a backup`;
    await expect(SqliteEventStore.open(file)).rejects.toThrow(problem);
    await expect(SqliteEventStore.openForReading(file)).rejects.toThrow(problem);
  });

  it('refuses what is not an event store', async () => {
    await writeFile(file, 'not a database at all, but long enough to be looked at'.repeat(100));
    await expect(open()).rejects.toThrow(`the file \`${file}\` is not a database: choose another file`);
    expect(await readFile(file, 'utf8')).toMatch(/^not a database at all/);

    const other = join(directory, 'other.db');
    const database = new Database(other);
    database.exec('CREATE TABLE things (name TEXT)');
    database.close();
    await expect(open(other)).rejects.toThrow(`\`${other}\` is a database, but not an event store`);

    const nowhere = join(directory, 'missing', 'events.db');
    await expect(open(nowhere)).rejects.toThrow(`the event store \`${nowhere}\` cannot be opened: ENOENT`);
  });

  it('leaves the process free to end after close', async () => {
    const script = `
      import { SqliteEventStore } from ${JSON.stringify(dist('stores/sqlite/sqlite.js'))};
      const store = await SqliteEventStore.open(process.argv[1]);
      store.subscribe({ after: 'start', onEvents() {}, onError: console.error });
      await store.append('organization-1', [{ id: '1', type: 'A', data: 1, metadata: 2 }], 'no-stream');
      await store.close();
      console.log('closed');
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, file], { env: {} });
    let output = '';
    child.stdout.on('data', (text) => (output += String(text)));
    const started = Date.now();
    const code = await new Promise((resolve) => child.once('exit', resolve));
    expect([code, output]).toEqual([0, 'closed\n']);
    expect(Date.now() - started).toBeLessThan(5_000);
  });

  function inAnotherProcess(script: string): { readonly stdout: string; readonly stderr: string } {
    return spawnSync(process.execPath, ['-e', script, libsql, file], { encoding: 'utf8', env: {}, timeout: 60_000 });
  }

  function openElsewhere(): string {
    const script = `
      import { SqliteEventStore } from ${JSON.stringify(dist('stores/sqlite/sqlite.js'))};
      const said = await SqliteEventStore.open(process.argv[1]).then((store) => store.close().then(() => 'opened'), (error) => error.message);
      process.stdout.write(said);
    `;
    return spawnSync(process.execPath, ['--input-type=module', '-e', script, file], { encoding: 'utf8', env: {} })
      .stdout;
  }
});

/** Runs a script of plain SQLite in another process, which holds what it has taken until it is told to end. */
async function holding(script: string): Promise<{ end(): Promise<void> }> {
  const whole = `${script} process.stdout.write('holds'); process.stdin.on('end', () => process.exit()).resume();`;
  const child = spawn(process.execPath, ['-e', whole, libsql, file], { env: {}, stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await Promise.race([once(child.stdout, 'data'), gone]);
  if (child.exitCode !== null) throw new Error('the other process has ended');
  return {
    end() {
      child.stdin.end();
      return gone;
    },
  };
}

/** A transaction that looks at the file as it is now. */
const looking = `
  const database = new (require(process.argv[1]))(process.argv[2]);
  database.exec('BEGIN');
  database.prepare('SELECT count(*) FROM events').all([]);`;

describe('reading while the store is open', () => {
  const readers: EventReader[] = [];

  afterEach(async () => {
    for (const reader of readers.splice(0)) await reader.close();
  });

  async function openForReading(): Promise<EventReader> {
    const reader = await SqliteEventStore.openForReading(file);
    readers.push(reader);
    return reader;
  }

  it('is for everybody: plain SQLite, and whoever opens it for reading', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(3), 'no-stream');
    await (await holding(looking)).end();

    const reader = await openForReading();
    expect(await reader.head()).toBe(3n);
    expect((await all(reader.read(stream, 1))).map(({ revision }) => revision)).toEqual([1, 2]);
    await store.append(stream, someEvents(2), 2);
    expect(await reader.head()).toBe(5n);
    expect(await all(reader.read(stream))).toEqual(await all(store.read(stream)));
    await reader.close();
    await store.append(stream, someEvents(1), 4);
    await expect(open()).rejects.toThrow('in use by this process');
  });

  it('follows what the writing process adds', async () => {
    const store = await open();
    await store.append(aStream(), someEvents(2), 'no-stream');
    const feed = follow(await openForReading(), 'start');
    await feed.sees(2);
    await store.append(aStream(), someEvents(1), 'no-stream');
    await feed.sees(3);
    await feed.stop();
  });

  it('writes nothing, and makes no file', async () => {
    await expect(openForReading()).rejects.toThrow(`the event store \`${file}\` does not exist`);
    expect(await readdir(directory)).toEqual([]);

    await (await open()).close();
    const reader = await openForReading();
    const forbidden = (reader as SqliteEventStore).append(aStream(), someEvents(1), 'no-stream');
    await expect(forbidden).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await reader.head()).toBeUndefined();
    const store = await open();
    await store.append(aStream(), someEvents(1), 'no-stream');
    expect(await reader.head()).toBe(1n);
  });

  it('leaves the write-ahead log bounded: a slow reader holds nothing, and of those that overlap all are waited for', async () => {
    const store = await open();
    const stream = aStream();
    const many = (count: number) => Array.from({ length: count }, () => anEvent({ text: 'x'.repeat(100_000) }));
    await store.append(stream, many(200), 'no-stream');
    const slow = (await openForReading()).read(stream)[Symbol.asyncIterator]();
    await slow.next();
    const overlapping = await holding(`
      const open = () => new (require(process.argv[1]))(process.argv[2]);
      const connections = [open(), open()];
      let at = 0;
      const look = (database) => { database.exec('BEGIN'); database.prepare('SELECT count(*) FROM events').all([]); };
      look(connections[0]);
      setInterval(() => {
        const ends = connections[at];
        look(connections[(at = 1 - at)]);
        ends.exec('COMMIT');
      }, 20);`);
    let largest = 0;
    for (let revision = 200; revision < 1_400; revision += 20) {
      await store.append(stream, many(20), revision - 1);
      largest = Math.max(largest, (await stat(`${file}-wal`)).size);
    }
    await overlapping.end();
    // What SQLite does by itself ends at 24 MB where nobody reads, and nowhere where somebody always does.
    expect(largest).toBeGreaterThan(24_000_000);
    expect(largest).toBeLessThan(72_000_000);
    for (let revision = 1; revision < 200; revision++) expect((await slow.next()).value).toMatchObject({ revision });
    await slow.return?.();
  });

  it('keeps the bytes of what is deleted no longer than a transaction looks at them', async () => {
    const store = await open();
    const secret = 'sealed-secret-to-be-shredded';
    await store.append('vault-1', [anEvent({ sealed: secret.repeat(2_000) })], 'no-stream');
    const other = await holding(looking);
    await store.delete('vault-1');
    expect(await all(store.read('vault-1'))).toEqual([]);
    await store.append(aStream(), someEvents(1), 'no-stream');
    expect(bytes()).toContain(secret);
    await other.end();
    // Nothing more is written.
    while (bytes().includes(secret)) await pause(20);
  });
});

describe('a disk that takes no more', () => {
  /**
   * Runs the store in a process whose files may not exceed a size, so that a write fails as on a full disk. The shell
   * ignores the signal of that, which the process inherits.
   */
  function onASmallDisk(kibibytes: number, script: string): unknown {
    const { stdout, stderr } = spawnSync(
      'bash',
      [
        '-c',
        `trap '' XFSZ; ulimit -f ${kibibytes}; exec "$0" --input-type=module -e "$1" "$2"`,
        process.execPath,
        script,
        file,
      ],
      { encoding: 'utf8', env: {} },
    );
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout);
  }

  it('rejects what waits, refuses everything from then on, says so once, and loses nothing acknowledged', async () => {
    const result = onASmallDisk(
      3_000,
      `
      import { SqliteEventStore } from ${JSON.stringify(dist('stores/sqlite/sqlite.js'))};
      import { StoreUnavailable } from ${JSON.stringify(dist('event-store.js'))};
      const fatal = [];
      const health = { raise() {}, clear() {}, fail: ({ name, message }) => fatal.push([name, message]) };
      const store = await SqliteEventStore.open(process.argv[1], health);
      const event = (id) => ({ id, type: 'A', data: 'x'.repeat(10_000), metadata: {} });
      const acknowledged = [];
      const failures = [];
      for (let round = 0; failures.length === 0; round++) {
        const ids = Array.from({ length: 20 }, (_, index) => 'organization-' + round + '-' + index);
        await Promise.all(ids.map((id) => store.append(id, [event(id)], 'no-stream').then(() => acknowledged.push(id), (error) => failures.push(error))));
      }
      const later = await store.append('organization-late', [event('late')], 'no-stream').catch((error) => error);
      const deleted = await store.delete('vault-1').catch((error) => error);
      const read = await (async () => { for await (const event of store.read(acknowledged[0])) return event; })().catch((error) => error);
      const head = await store.head().catch((error) => error);
      await store.close();
      const every = [...failures, later, deleted, read, head];
      process.stdout.write(JSON.stringify({
        acknowledged, fatal, failures: failures.length,
        unavailable: every.every((error) => error instanceof StoreUnavailable),
        messages: [...new Set(every.map((error) => error.message))],
      }));
    `,
    ) as {
      acknowledged: string[];
      fatal: string[][];
      failures: number;
      unavailable: boolean;
      messages: string[];
    };

    expect(result.acknowledged.length).toBeGreaterThan(20);
    expect(result.failures).toBe(20);
    expect(result.unavailable).toBe(true);
    expect(result.messages).toHaveLength(1);
    expect(result.messages[0]).toMatch(
      /^the event store `.+` could not be written: disk I\/O error; make sure that the disk is sound, then restart the coordinator$/,
    );
    expect(result.fatal).toEqual([['FatalError', result.messages[0]]]);

    const store = await open();
    for (const id of result.acknowledged) expect(await all(store.read(id))).toHaveLength(1);
    expect((await store.append('organization-late', someEvents(1), 'no-stream')).revision).toBe(0);
  });

  it('ends the store when deleted bytes cannot be moved out of the log; they are when it opens with room', async () => {
    const store = await open();
    await store.append('vault-1', [anEvent('secret')], 'no-stream');
    await store.append('organization-1', [anEvent({ text: 'x'.repeat(2_000_000) })], 'no-stream');
    await store.close();
    const result = onASmallDisk(
      3_000,
      `
      import Database from ${JSON.stringify(libsql)};
      import { SqliteEventStore } from ${JSON.stringify(dist('stores/sqlite/sqlite.js'))};
      const store = await SqliteEventStore.open(process.argv[1]);
      const event = (id, length) => ({ id, type: 'A', data: 'x'.repeat(length), metadata: {} });
      const reader = new Database(process.argv[1]);
      reader.exec('BEGIN');
      reader.prepare('SELECT count(*) FROM events').all([]);
      await store.append('organization-2', [event('two', 1_500_000)], 'no-stream');
      await store.delete('vault-1');
      reader.exec('COMMIT');
      // The log is tried again every 50 ms, and now has no room in the file.
      await new Promise((resolve) => setTimeout(resolve, 500));
      const outcome = await store.append('organization-3', [event('three', 10)], 'no-stream').catch((error) => error.message);
      process.stdout.write(JSON.stringify({ outcome }));
      process.exit();
    `,
    );
    expect(result).toEqual({ outcome: expect.stringContaining('could not be written: disk I/O error') as string });
    const again = await open();
    expect(bytes()).not.toContain('secret');
    expect(await all(again.read('organization-2'))).toHaveLength(1);
    expect(await all(again.read('organization-3'))).toEqual([]);
  });
});

describe('many appends and large events', () => {
  it('are committed together, up to a mebibyte of text', async () => {
    const store = await open();
    const committedWithFirst = async (length: number): Promise<number> => {
      const written: number[] = [];
      const appends = Array.from({ length: 6 }, (_, place) =>
        store.append(aStream(), [anEvent({ text: 'x'.repeat(length) })], 'no-stream').then(() => written.push(place)),
      );
      await appends[0];
      // Whoever waits for the same commit hears of it before anything else happens.
      await new Promise(process.nextTick);
      const first = [...written];
      await Promise.all(appends);
      expect(written).toEqual([0, 1, 2, 3, 4, 5]);
      return first.length;
    };
    expect(await committedWithFirst(1)).toBe(6);
    expect(await committedWithFirst(400_000)).toBe(2);
    expect(await committedWithFirst(2_000_000)).toBe(1);
  });

  it('read back in full when a page of them would be far too large', async () => {
    const store = await open();
    const stream = aStream();
    const text = 'x'.repeat(200_000);
    for (let revision = 0; revision < 120; revision += 20) {
      const events = Array.from({ length: 20 }, (_, index) => anEvent({ number: revision + index, text }));
      await store.append(stream, events, revision === 0 ? 'no-stream' : revision - 1);
    }
    const batches: number[] = [];
    const feed = follow(store, 'start', (batch) => void batches.push(batch.length));
    await feed.sees(120);
    await feed.stop();
    expect(Math.max(...batches)).toBeLessThanOrEqual(50);
    expect(feed.events.map(({ revision }) => revision)).toEqual(Array.from({ length: 120 }, (_, index) => index));
    expect((await all(store.read(stream))).map(({ data }) => (data as { number: number }).number)).toEqual(
      Array.from({ length: 120 }, (_, index) => index),
    );
  });
});

describe('texts that are joined while they are read', () => {
  it('come back as they were written, whatever is in them', async () => {
    const store = await open();
    const stream = `${aStream()}\u001f`;
    const written = Array.from({ length: 120 }, (_, number) => anEvent({ number, text: '\u0000 \u001f \u{1f511} é' }));
    // Of all that a file may hold, only names can have the character that stands between two of them.
    written[60] = { ...written[60]!, id: '\u001f', type: 'a\u001fb\u001f' };
    await store.append(stream, written, 'no-stream');
    const read = await all(store.read(stream));
    expect(read.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }))).toEqual(written);
    expect(read.map(({ revision }) => revision)).toEqual(written.map((_, revision) => revision));
    expect(new Set(read.map((event) => event.stream))).toEqual(new Set([stream]));
    const feed = follow(store, 'start');
    await feed.sees(120);
    await feed.stop();
    expect(feed.events.map(({ id, type, data }) => ({ id, type, data }))).toEqual(
      written.map(({ id, type, data }) => ({ id, type, data })),
    );
  });
});

describe('an append that is made again', () => {
  it('is another one where the id in the file is no UTF-8 any more, and the process goes on', async () => {
    const stream = aStream();
    const events = [anEvent()];
    const before = await open();
    await before.append(stream, events, 'no-stream');
    expect((await before.append(stream, events, 'no-stream')).revision).toBe(0);
    await before.close();
    const database = new Database(file);
    database.prepare('UPDATE events SET id = CAST(? AS TEXT)').run([Buffer.from([0xff])]);
    database.close();
    await expect((await open()).append(stream, events, 'no-stream')).rejects.toThrow(WrongRevision);
  });
});

describe('a chain that is checked where it is read', () => {
  const stream = aStream();
  /** More than a page, and then one that was changed in the file. */
  async function written(changed?: { revision: number; data?: string; metadata?: string }): Promise<EventReader> {
    const store = await SqliteEventStore.open(file);
    const metadata = { at: 1, $correlationId: 'one', $causationId: 'two' };
    const facts = someEvents(1_300).map(({ type, data }) => ({ type, data, metadata }));
    await store.append(stream, seal(stream, emptyTail, facts).events, 'no-stream');
    await store.close();
    if (changed) {
      const database = new Database(file);
      database
        .prepare('UPDATE events SET data = coalesce(?, data), metadata = coalesce(?, metadata) WHERE revision = ?')
        .run([changed.data ?? null, changed.metadata ?? null, changed.revision]);
      database.close();
    }
    return SqliteEventStore.openForReading(file);
  }
  /** How far it goes, and of how many events the reading thread has said that they follow. */
  async function walk(store: EventReader, after: string | undefined): Promise<{ revision: number; checked: number }> {
    let [hash, revision, checked] = [GENESIS_HASH, -1, 0];
    try {
      for await (const event of store.read(stream, 0, after)) {
        if (checkedAfter(event) === hash) checked++;
        hash = verifyChain(hash, event);
        revision = event.revision;
      }
    } catch (error) {
      if (!(error instanceof BrokenChain) || error.revision !== revision + 1) throw error;
    } finally {
      await store.close();
    }
    return { revision, checked };
  }

  it('is not checked again, whatever page an event is on', async () => {
    expect(await walk(await written(), GENESIS_HASH)).toEqual({ revision: 1_299, checked: 1_300 });
  });

  it('is checked by whoever folds, where nobody asked', async () => {
    expect(await walk(await written(), undefined)).toEqual({ revision: 1_299, checked: 0 });
  });

  it.each([0, 700, 1_299])('ends at revision %i, which was changed', async (revision) => {
    const store = await written({ revision, data: '{"number":-1,"text":"another text"}' });
    expect((await walk(store, GENESIS_HASH)).revision).toBe(revision - 1);
  });

  it.each([
    ['is short', '{}'],
    ['has no link, and other characters than ASCII at its end', `{"schemaVersion":1,"é":"${'漢😀'.repeat(40)}"}`],
    ['has such characters in its link', `{"at":1,"schemaVersion":1,"hash":"${'0'.repeat(63)}é"}`],
  ])('ends where the metadata %s', async (_name, metadata) => {
    const store = await written({ revision: 700, metadata });
    expect((await walk(store, GENESIS_HASH)).revision).toBe(699);
  });

  it('ends where the link has another name', async () => {
    await (await written()).close();
    const database = new Database(file);
    database.exec(`UPDATE events SET metadata = replace(metadata, '"hash":', '"hasi":') WHERE revision = 700`);
    database.close();
    expect((await walk(await SqliteEventStore.openForReading(file), GENESIS_HASH)).revision).toBe(699);
  });

  it('is checked by who folds for the page that a large event is on, and by the reading thread behind it', async () => {
    const store = await open();
    const metadata = { at: 1, $correlationId: 'one', $causationId: 'two' };
    const facts = someEvents(1_300).map(({ type, data }) => ({ type, data, metadata }));
    facts[150] = { ...facts[150]!, data: { number: 150, text: 'a'.repeat(30_000) } };
    await store.append(stream, seal(stream, emptyTail, facts).events, 'no-stream');
    // 100 before the page of 500 that it is on, and 700 behind that.
    expect(await walk(store, GENESIS_HASH)).toEqual({ revision: 1_299, checked: 800 });
  });

  it.each(
    ['id', 'type', 'data', 'metadata'].flatMap((column) => [
      [column, 'the reading thread', GENESIS_HASH] as const,
      [column, 'who folds', undefined] as const,
    ]),
  )(
    'ends at the event whose %s is no UTF-8 any more, when %s checks it, and the process goes on',
    async (column, _who, after) => {
      await (await written()).close();
      const database = new Database(file);
      const damaged = Buffer.concat([Buffer.from('{"number":"'), Buffer.from([0xff]), Buffer.from('"}')]);
      database.prepare(`UPDATE events SET ${column} = CAST(? AS TEXT) WHERE revision = 700`).run([damaged]);
      database.close();
      expect((await walk(await SqliteEventStore.openForReading(file), after)).revision).toBe(699);
    },
  );

  it('says nothing of the page behind another link than the one that was asked for', async () => {
    expect(await walk(await written(), '1'.repeat(64))).toEqual({ revision: 1_299, checked: 800 });
  });

  it('goes on where the text is not canonical, but the values are those that were recorded', async () => {
    const store = await written({ revision: 700, data: '{ "number": 700, "text": "some text of an event" }' });
    // 700 before it, and 100 behind its page.
    expect(await walk(store, GENESIS_HASH)).toEqual({ revision: 1_299, checked: 800 });
  });

  it('is what any other reader sees, whatever names and texts hold', async () => {
    const odd = [
      'plain',
      '"quoted"',
      'back\\slash',
      'line\nfeed\ttab\b\f\r',
      '\u0001\u001f\u007f',
      'é 漢 😀 \u2028',
      "o'clock",
    ];
    const name = `organization-${odd.join()}`;
    const metadata = { at: 1, $correlationId: 'one', $causationId: 'two é 漢 😀' };
    const facts = odd.map((text) => ({
      id: `id ${text}`,
      type: `Type ${text}`,
      data: { text, ['__proto__']: 1, 10: [text] },
      metadata,
    }));
    const store = await open();
    await store.append(name, seal(name, emptyTail, facts).events, 'no-stream');
    const seen = [];
    let hash = GENESIS_HASH;
    for await (const event of store.read(name, 0, GENESIS_HASH)) {
      expect(checkedAfter(event)).toBe(hash);
      hash = verifyChain(hash, event);
      seen.push(event);
    }
    const others = await all(store.read(name));
    expect(seen).toEqual(others);
    expect(seen.map(storedEvent)).toEqual(others.map(storedEvent));
    expect(seen.map((event) => verifyCanonicalChain(checkedAfter(event)!, event)).at(-1)).toBe(hash);
  });

  it.each([
    ['no JSON', '{"number":'],
    ['an event more', `1,"metadata":{}}},{"position":1,"hash":"${'0'.repeat(64)}","record":{"data":2`],
    ['an event without metadata', '1},"record":{"data":2},"more":{"data":3'],
    ['another link', `1,"metadata":{}},"hash":"${'0'.repeat(64)}","more":{"data":2`],
    ['half of the next event', '"'],
  ])('leaves the events before it, where the file has %s that the chain covers', async (_name, data) => {
    const store = await open();
    const metadata = { at: 1, $correlationId: 'one', $causationId: 'two' };
    const facts = someEvents(30).map(({ type, data: sound }) => ({ type, data: sound, metadata }));
    const { events, tail, hashes } = seal(stream, emptyTail, facts);
    const [next] = seal(stream, tail, facts.slice(0, 1)).events;
    const rest = JSON.stringify(next!.metadata).slice(0, -LINK_LENGTH);
    const link = linkTexts(tail.hash, { ...next!, stream, revision: 30 }, data, `${rest}}`);
    const json = { data, metadata: `${rest},"hash":"${link}"}` };
    await store.append(stream, [...events, { ...next!, json }], 'no-stream');
    let hash = GENESIS_HASH;
    const links: string[] = [];
    const walk = async () => {
      for await (const event of store.read(stream, 0, GENESIS_HASH)) {
        hash = verifyChain(hash, event);
        expect(event.data).toBeDefined();
        links.push(hash);
      }
    };
    await expect(walk()).rejects.toThrow(BrokenChain);
    expect(links).toEqual(hashes);
  });
});

describe('a subscriber', () => {
  it('misses nothing, wherever it starts between memory and disk', async () => {
    const store = await open();
    const live = follow(store, 'start');
    const stream = aStream();
    for (let revision = 0; revision < 2_100; revision += 3) {
      await store.append(stream, someEvents(3), revision === 0 ? 'no-stream' : revision - 1);
    }
    await live.sees(2_100);
    for (let after = 990n; after < 1_110n; after++) {
      const feed = follow(store, after);
      await feed.sees(100);
      await feed.stop();
      const positions = feed.events.slice(0, 100).map(({ position }) => position - after);
      expect(positions).toEqual(Array.from({ length: 100 }, (_, index) => BigInt(index + 1)));
    }
    await live.stop();
  });
});

describe('a worker thread that dies', () => {
  it('rejects what waits for it, ends the feeds, and lets go of the file', async () => {
    const script = `
      import { SqliteEventStore } from ${JSON.stringify(dist('stores/sqlite/sqlite.js'))};
      let worker;
      process.once('worker', (started) => (worker = started));
      const store = await SqliteEventStore.open(process.argv[1]);
      const said = [];
      const note = (error) => said.push(error.name + ': ' + error.message);
      store.subscribe({ after: 'start', onEvents() {}, onError: note });
      await store.append('organization-1', [{ id: '1', type: 'A', data: 1, metadata: 2 }], 'no-stream');
      const died = worker.terminate();
      await store.append('organization-1', [{ id: '2', type: 'A', data: 1, metadata: 2 }], 0).catch(note);
      await died;
      await store.append('organization-1', [{ id: '3', type: 'A', data: 1, metadata: 2 }], 0).catch(note);
      await store.delete('vault-1').catch(note);
      await (async () => { for await (const event of store.read('organization-1')) said.push(event); })().catch(note);
      await store.close();
      const reopened = await SqliteEventStore.open(process.argv[1]);
      said.push(String((await reopened.head()) >= 1n));
      await reopened.close();
      process.stdout.write(JSON.stringify(said));
    `;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script, file], {
      encoding: 'utf8',
      env: {},
    });
    expect(stderr).toBe('');
    const lost = `StoreUnavailable: the event store \`${file}\` is not available: its thread has ended`;
    expect(JSON.parse(stdout)).toEqual([lost, lost, lost, lost, lost, 'true']);
  });
});
