import Database from 'libsql';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { FileLocked, lockFile } from './file-lock.js';
import { EventFile } from './event-file.js';
import { notOurs, refuseOddRows, SCHEMA, schemaVersion, tablesIn } from './schema.js';
import { MAX_LOG, PATIENCE } from './write-ahead-log.js';

/** Memory for pages of the file, in KiB. Others come from the system's memory for files, which a larger cache only has twice. */
const CACHE_KIB = 8 * 1024;
/**
 * Bytes of a page of a new file; an older one keeps its 4 KiB. A row never shares a page with a part of the next one, and a
 * submission takes 1.6 kB: of pages of 4 KiB, a third stayed empty (docs/adr/0114).
 */
const PAGE_BYTES = 8 * 1024;
/** Bytes of the write-ahead log before it is copied back and written from its beginning again. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;

/**
 * Opens the file for writing by this process only; others may read it (docs/adr/0057). The lock is on a separate file, and
 * ends with the process, however that ends. The pid file is only for the error message of a second process.
 */
export function openForWriting(file: string): EventFile {
  createPrivate(file);
  const release = lockFile(lockOf(file));
  let database: Database.Database | undefined;
  try {
    database = new Database(file);
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
    const version = schemaVersion(file, database);
    // Without effect where there are pages already; in a log, their size is fixed.
    database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
    database.pragma('journal_mode = WAL');
    database.exec('PRAGMA synchronous = FULL');
    database.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    const [{ page_size: pageBytes }] = database.pragma('page_size') as [{ page_size: number }];
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_BYTES / pageBytes}`);
    database.pragma(`journal_size_limit = ${MAX_LOG}`);
    // Fails while an earlier release has the file open: those lock the file itself.
    database.exec('BEGIN EXCLUSIVE');
    if (version === 0) {
      if (tablesIn(database) > 0) throw notOurs(file);
      database.exec(SCHEMA);
    }
    refuseOddRows(file, database);
    database.exec('COMMIT');
    writeFileSync(pidFile(file), String(process.pid), { mode: 0o600 });
    const events = new EventFile(file, database, release);
    // A process that died may have left deleted bytes in its log.
    events.emptyLog();
    return events;
  } catch (error) {
    database?.close();
    release();
    throw error;
  }
}

/** Opens an existing file for reading, whether or not another process is writing it. */
export function openForReading(file: string): EventFile {
  if (!existsSync(file)) throw new Error(`the event store \`${file}\` does not exist`);
  const database = new Database(file);
  try {
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
    database.exec('PRAGMA query_only = ON');
    if (schemaVersion(file, database) === 0) throw notOurs(file);
    refuseOddRows(file, database);
    return new EventFile(file, database);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Makes a missing file readable by its owner only. An existing one is not opened: closing it would drop its locks. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** The file with the id of the writing process. */
export function pidFile(file: string): string {
  return `${file}.pid`;
}

function lockOf(file: string): string {
  return `${file}.lock`;
}

/** The message for a file that could not be opened. */
export function openingFailed(file: string, error: unknown): string {
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
