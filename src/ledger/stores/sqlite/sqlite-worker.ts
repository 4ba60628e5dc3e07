import Database from 'libsql';
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { FileLocked, lockFile } from '../../../file-lock.js';
import { isCut, sendsKept } from '../../event-store.js';
import { PAGE_SIZE } from '../feed.js';
import { OUTCOME } from './sqlite-protocol.js';
import type { Answer, OpenedFor, Request } from './sqlite-protocol.js';

/** Version of the tables below, kept in the file as `user_version`. */
const SCHEMA_VERSION = 1;

// No index on `id`: a repeated append is recognized by its stream and revision. Ids are random, so that an index would
// dirty a page for every event (measured: 18 000 instead of 40 000 appends a second, and falling as the file grows).
const SCHEMA = `
  CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (stream, revision)
  );
  CREATE TABLE deleted_streams (stream TEXT PRIMARY KEY) WITHOUT ROWID;
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** A page ends early once it holds this much text (UTF-16 units), so that large events cannot fill the memory. */
const PAGE_TEXT = 1 << 20;
/** Rows taken from SQLite at once while a page is filled: the most by which a page can exceed `PAGE_TEXT`. */
const ROWS_AT_ONCE = 50;
/** Streams whose last revision is kept in memory; any other costs one index lookup. */
const MAX_HEADS = 100_000;
/** Memory for pages of the file, in KiB. */
const CACHE_KIB = 64 * 1024;
/** Pages (4 KiB) in the write-ahead log before it is copied back and written from its beginning again. */
const CHECKPOINT_PAGES = 4_000;
/**
 * Bytes the write-ahead log is cut back to after a commit larger than that, and those after which writing waits for the
 * readers that keep the log from beginning again.
 */
const MAX_LOG = 64 * 1024 * 1024;
/** Milliseconds that a statement waits for another process: readers hold the file for a page at a time. */
const PATIENCE = 1_000;
/** Milliseconds between two tries to empty the log that deleted bytes came through, while a reader needs it. */
const BETWEEN_TRIES = 50;

/** Last revision of a stream that has no events, and of one that was deleted. */
const EMPTY = -1;
const DELETED = -2;

interface Row {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

/** One open database file, used by one thread. */
class EventFile {
  readonly #database: Database.Database;
  readonly #log: string;
  readonly #release: () => void;
  /** Size of the log from which on it is to begin again. */
  #maxLog = MAX_LOG;
  #emptying: NodeJS.Timeout | undefined;
  readonly #begin: Database.Statement;
  readonly #commit: Database.Statement;
  readonly #insert: Database.Statement;
  readonly #lastRevision: Database.Statement;
  readonly #isDeleted: Database.Statement;
  readonly #written: Database.Statement;
  readonly #streamRows: Database.Statement;
  readonly #lastRows: Database.Statement;
  readonly #cut: Database.Statement;
  readonly #allRows: Database.Statement;
  readonly #heads = new Map<string, number>();

  /** @param release gives back what was locked for writing */
  constructor(file: string, database: Database.Database, release: () => void = () => undefined) {
    this.#log = `${file}-wal`;
    this.#release = release;
    const columns = 'position, stream, revision, id, type, data, metadata';
    this.#database = database;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#insert = database.prepare(
      'INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#lastRevision = database.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?');
    this.#isDeleted = database.prepare('SELECT 1 FROM deleted_streams WHERE stream = ?');
    this.#written = database.prepare('SELECT id, position FROM events WHERE stream = ? AND revision = ?');
    this.#streamRows = database.prepare(
      `SELECT ${columns} FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ${ROWS_AT_ONCE}`,
    );
    this.#lastRows = database.prepare(`SELECT ${columns} FROM events WHERE stream = ? ORDER BY revision DESC LIMIT ?`);
    this.#cut = database.prepare('DELETE FROM events WHERE stream = ? AND revision <= ?');
    this.#allRows = database.prepare(
      `SELECT ${columns} FROM events WHERE position > ? ORDER BY position LIMIT ${ROWS_AT_ONCE}`,
    );
  }

  /** Position of the last event, 0 when there is none. */
  head(): number {
    const [row] = this.#database.prepare('SELECT max(position) AS position FROM events').all([]) as Partial<Row>[];
    return row?.position ?? 0;
  }

  /**
   * Writes a batch of appends in one transaction. Each is checked before its first insert, so that a refused one leaves
   * nothing to undo and the others alone.
   */
  append(batch: readonly (string | number)[]): number[] {
    const outcomes: number[] = [];
    this.#begin.run([]);
    for (let at = 0; at < batch.length;) {
      const count = batch[at + 2] as number;
      this.#appendOne(batch[at] as string, batch[at + 1] as number, count, batch, at + 3, outcomes);
      at += 3 + 4 * count;
    }
    this.#commit.run([]);
    this.#boundLog();
    return outcomes;
  }

  /** SQLite begins the log again by itself whenever no reader needs it; under readers all the time that may be never. */
  #boundLog(): void {
    const size = sizeOf(this.#log);
    if (size <= this.#maxLog) {
      if (size <= MAX_LOG) this.#maxLog = MAX_LOG;
      return;
    }
    const isDone = this.#checkpoint('RESTART');
    // A transaction that another program leaves open is not ours to end: it is waited for once in so many bytes.
    this.#maxLog = isDone ? MAX_LOG : size + MAX_LOG;
  }

  /** Whether it was done to the end: a reader that needs the log outlasts our patience. */
  #checkpoint(mode: 'RESTART' | 'TRUNCATE'): boolean {
    const [result] = this.#database.pragma(`wal_checkpoint(${mode})`) as { readonly busy: number }[];
    return result?.busy === 0;
  }

  #appendOne(
    stream: string,
    first: number,
    count: number,
    batch: readonly (string | number)[],
    start: number,
    outcomes: number[],
  ): void {
    const head = this.#head(stream);
    if (head === DELETED) {
      outcomes.push(OUTCOME.streamDeleted, 0, 0);
    } else if (head === first - 1) {
      this.#insertAll(stream, first, count, batch, start, outcomes);
    } else {
      const position = head >= first + count - 1 ? this.#repeated(stream, first, count, batch, start) : undefined;
      if (position === undefined) outcomes.push(OUTCOME.wrongRevision, head, 0);
      else outcomes.push(OUTCOME.repeated, first + count - 1, position);
    }
  }

  #insertAll(
    stream: string,
    first: number,
    count: number,
    batch: readonly (string | number)[],
    start: number,
    outcomes: number[],
  ): void {
    let position = 0;
    for (let index = 0; index < count; index++) {
      const at = start + 4 * index;
      const row = [stream, first + index, batch[at], batch[at + 1], batch[at + 2], batch[at + 3]];
      position = Number(this.#insert.run(row).lastInsertRowid);
    }
    // Nothing secret is in them, so that they go without what a deletion does.
    if (isCut(stream)) this.#cut.run([stream, first + count - 1 - sendsKept]);
    this.#remember(stream, first + count - 1);
    outcomes.push(OUTCOME.written, first + count - 1, position);
  }

  /** Position of the last event of the append if exactly this append is what the stream has at that place. */
  #repeated(
    stream: string,
    first: number,
    count: number,
    batch: readonly (string | number)[],
    start: number,
  ): number | undefined {
    let position: number | undefined;
    for (let index = 0; index < count; index++) {
      const row = this.#written.get([stream, first + index]) as { id: string; position: number } | undefined;
      if (row?.id !== batch[start + 4 * index]) return undefined;
      position = row?.position;
    }
    return position;
  }

  #head(stream: string): number {
    const known = this.#heads.get(stream);
    if (known !== undefined) return known;
    const { revision } = this.#lastRevision.get([stream]) as { revision: number | null };
    const head = revision ?? (this.#isDeleted.get([stream]) === undefined ? EMPTY : DELETED);
    this.#remember(stream, head);
    return head;
  }

  #remember(stream: string, head: number): void {
    this.#heads.set(stream, head);
    if (this.#heads.size > MAX_HEADS) {
      for (const oldest of this.#heads.keys()) {
        this.#heads.delete(oldest);
        break;
      }
    }
  }

  readStream(stream: string, from: number): Answer {
    return page((last) => this.#streamRows.all([stream, last === undefined ? from : last.revision + 1]) as Row[]);
  }

  readLast(stream: string, most: number): Answer {
    const rows = this.#lastRows.all([stream, most]) as Row[];
    const fields: (string | number)[] = [];
    for (const row of rows.reverse()) pushFields(fields, row);
    return { kind: 'page', rows: fields, last: true };
  }

  readAll(after: number): Answer {
    return page((last) => this.#allRows.all([last === undefined ? after : last.position]) as Row[]);
  }

  delete(stream: string): number {
    // Crypto-shredding: the bytes must be gone from the file, and from the write-ahead log that they came through.
    this.#database.exec('PRAGMA secure_delete = ON');
    this.#begin.run([]);
    this.#database.prepare('DELETE FROM events WHERE stream = ?').run([stream]);
    this.#database.prepare('INSERT OR IGNORE INTO deleted_streams (stream) VALUES (?)').run([stream]);
    this.#commit.run([]);
    this.#database.exec('PRAGMA secure_delete = OFF');
    this.#remember(stream, DELETED);
    this.emptyLog();
    return this.head();
  }

  /** Moves everything out of the log. While a reader looks at the file as it was, the log stays, and this is tried again. */
  emptyLog(): void {
    clearTimeout(this.#emptying);
    this.#database.exec('PRAGMA busy_timeout = 0');
    const isDone = this.#checkpoint('TRUNCATE');
    this.#database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
    this.#emptying = isDone ? undefined : setTimeout(() => this.emptyLog(), BETWEEN_TRIES).unref();
  }

  rollback(): void {
    if (this.#database.inTransaction) this.#database.exec('ROLLBACK');
  }

  close(): void {
    clearTimeout(this.#emptying);
    this.#database.close();
    this.#release();
  }
}

function page(next: (last: Row | undefined) => Row[]): Answer {
  const rows: (string | number)[] = [];
  let text = 0;
  let count = 0;
  let previous: Row | undefined;
  for (;;) {
    const some = next(previous);
    for (const row of some) {
      pushFields(rows, row);
      text += row.data.length + row.metadata.length;
    }
    count += some.length;
    previous = some.at(-1);
    if (some.length < ROWS_AT_ONCE) return { kind: 'page', rows, last: true };
    if (count >= PAGE_SIZE || text >= PAGE_TEXT) return { kind: 'page', rows, last: false };
  }
}

function pushFields(fields: (string | number)[], row: Row): void {
  fields.push(row.position, row.stream, row.revision, row.id, row.type, row.data, row.metadata);
}

/** Bytes of a file, 0 where there is none. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Opens the file as the only process that writes it; others may read meanwhile (docs/adr/0057). The lock is on a file
 * beside it, and ends with the process however that ends. The pid file only serves the message of whoever is refused.
 */
function openForWriting(file: string): EventFile {
  createPrivate(file);
  const release = lockFile(lockOf(file));
  let database: Database.Database | undefined;
  try {
    database = new Database(file);
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
    const version = schemaVersion(file, database);
    database.pragma('journal_mode = WAL');
    database.exec('PRAGMA synchronous = FULL');
    database.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    database.pragma(`journal_size_limit = ${MAX_LOG}`);
    // Fails while an earlier release has the file: it locks the file itself.
    database.exec('BEGIN EXCLUSIVE');
    if (version === 0) {
      if (tablesIn(database) > 0) throw notOurs(file);
      database.exec(SCHEMA);
    }
    database.exec('COMMIT');
    writeFileSync(pidFile(file), String(process.pid), { mode: 0o600 });
    const events = new EventFile(file, database, release);
    // A process that died may have left a log that deleted bytes came through.
    events.emptyLog();
    return events;
  } catch (error) {
    database?.close();
    release();
    throw error;
  }
}

/** Opens a file that is there, whether or not another process writes it; writes nothing. */
function openForReading(file: string): EventFile {
  if (!existsSync(file)) throw new Error(`there is no event store \`${file}\``);
  const database = new Database(file);
  try {
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
    database.exec('PRAGMA query_only = ON');
    if (schemaVersion(file, database) === 0) throw notOurs(file);
    return new EventFile(file, database);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** @throws {Error} when a newer release wrote it */
function schemaVersion(file: string, database: Database.Database): number {
  const [{ user_version: version }] = database.pragma('user_version') as [{ user_version: number }];
  if (version <= SCHEMA_VERSION) return version;
  throw new Error(
    `the event store \`${file}\` has schema version ${version}, this release knows up to ${SCHEMA_VERSION}: ` +
      'start the release that wrote it, or a newer one',
  );
}

function tablesIn(database: Database.Database): number {
  const [{ tables }] = database.prepare('SELECT count(*) AS tables FROM sqlite_schema').all([]) as [{ tables: number }];
  return tables;
}

function notOurs(file: string): Error {
  return new Error(`the file \`${file}\` is a database, but not an event store: choose another file`);
}

/** Makes a missing file readable by its owner only. An existing one is not opened: closing it would drop its locks. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function pidFile(file: string): string {
  return `${file}.pid`;
}

function lockOf(file: string): string {
  return `${file}.lock`;
}

function openingFailed(file: string, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : undefined;
  if (error instanceof FileLocked || code === 'SQLITE_BUSY' || code === 'SQLITE_LOCKED') {
    return `the event store \`${file}\` is in use by ${holder(file)}: stop it first, or choose another file`;
  }
  if (code === 'SQLITE_NOTADB') return `the file \`${file}\` is not a database: choose another file`;
  if (code === undefined) return error.message;
  return `the event store \`${file}\` cannot be opened: ${error.message}`;
}

function holder(file: string): string {
  try {
    const pid = readFileSync(pidFile(file), 'utf8').trim();
    return pid === String(process.pid) ? `this process (pid ${pid})` : `another process (pid ${pid})`;
  } catch {
    return 'another process';
  }
}

/** Answers requests until `close`. After a write that failed it only reads: what is on disk then is not certain. */
function serve({ file, openedFor }: WorkerData, port: NonNullable<typeof parentPort>): void {
  let events: EventFile;
  try {
    events = openedFor === 'writing' ? openForWriting(file) : openForReading(file);
  } catch (error) {
    answer({ kind: 'failed', message: openingFailed(file, error) });
    port.close();
    return;
  }
  answer({ kind: 'opened', head: events.head() });

  let failure: string | undefined;
  port.on('message', (request: Request) => {
    switch (request.kind) {
      case 'append':
        write(() => ({ kind: 'appended', outcomes: events.append(request.batch) }));
        break;
      case 'delete':
        write(() => ({ kind: 'deleted', head: events.delete(request.stream) }));
        break;
      case 'read-stream':
        attempt(() => events.readStream(request.stream, request.from));
        break;
      case 'read-last':
        attempt(() => events.readLast(request.stream, request.most));
        break;
      case 'read-all':
        attempt(() => events.readAll(request.after));
        break;
      case 'head':
        attempt(() => ({ kind: 'head', head: events.head() }));
        break;
      case 'close':
        if (openedFor === 'writing') rmSync(pidFile(file), { force: true });
        attempt(() => {
          events.close();
          return { kind: 'closed' };
        });
        port.close();
        break;
    }
  });

  function write(work: () => Answer): void {
    attempt(() => {
      if (failure !== undefined) throw new Error(failure);
      try {
        return work();
      } catch (error) {
        failure =
          `the event store \`${file}\` could not write (${messageOf(error)}) and takes no more writes: ` +
          'make sure the disk is sound and has space, then restart';
        events.rollback();
        throw new Error(failure);
      }
    });
  }

  function attempt(work: () => Answer): void {
    let result: Answer;
    try {
      result = work();
    } catch (error) {
      result = { kind: 'failed', message: messageOf(error) };
    }
    answer(result);
  }

  function answer(message: Answer): void {
    port.postMessage(message);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface WorkerData {
  readonly file: string;
  readonly openedFor: OpenedFor;
}

if (parentPort !== null) serve(workerData as WorkerData, parentPort);
