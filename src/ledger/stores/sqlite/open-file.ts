import Database from 'libsql';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errorMessage } from '../../../domain/errors.js';
import { createPrivate, FileLocked, lockFile } from './file-lock.js';
import { EventFile } from './event-file.js';
import { isEventStore, notOurs, refuseOddRows, SCHEMA } from './schema.js';
import { MAX_LOG, PATIENCE, WRITE_PATIENCE } from './write-ahead-log.js';

/** Memory for pages of the file, in KiB. Others come from the system's memory for files, which a larger cache only has twice. */
const CACHE_KIB = 8 * 1024;
/**
 * Bytes of a page. A row that does not fit into the rest of a page leaves it empty: a submission takes 1.6 kB, so a third of
 * each page of 4 KiB would be wasted.
 */
const PAGE_BYTES = 8 * 1024;
/** Bytes of the write-ahead log before it is copied back and written from its beginning again. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;

/**
 * Opens the file for writing by this process only; others may read it (docs/adr/0020). The lock is on a separate file, and
 * ends with the process, however that ends. The pid file is only for the error message of a second process.
 */
export function openForWriting(file: string, failed: (error: unknown) => void): EventFile {
  createPrivate(file);
  const release = lockFile(lockOf(file));
  let database: Database.Database | undefined;
  try {
    database = new Database(file);
    database.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
    // Before anything is written to it.
    isEventStore(file, database);
    // Without effect where there are pages already.
    database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
    database.pragma('journal_mode = WAL');
    database.exec('PRAGMA synchronous = FULL');
    database.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
    const [{ page_size: pageBytes }] = database.pragma('page_size') as [{ page_size: number }];
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_BYTES / pageBytes}`);
    database.pragma(`journal_size_limit = ${MAX_LOG}`);
    database.exec('BEGIN EXCLUSIVE');
    if (!isEventStore(file, database)) database.exec(SCHEMA);
    refuseOddRows(file, database);
    database.exec('COMMIT');
    database.exec(`PRAGMA busy_timeout = ${WRITE_PATIENCE}`);
    writeFileSync(pidFile(file), String(process.pid), { mode: 0o600 });
    const events = new EventFile(file, database, release, failed);
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
    if (!isEventStore(file, database)) throw notOurs(file);
    refuseOddRows(file, database);
    return new EventFile(file, database);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The file with the id of the writing process. */
export function pidFile(file: string): string {
  return `${file}.pid`;
}

function lockOf(file: string): string {
  return `${file}.lock`;
}

/** The files that the writing process has open; none of them changes its place meanwhile. */
export function filesOf(file: string): readonly string[] {
  return [file, `${file}-wal`, `${file}-shm`, lockOf(file)];
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
  return `the event store \`${file}\` cannot be opened: ${error.message}${hasRoom(file) ? '' : `; ${makeRoom(file)}`}`;
}

/** The message for a file that could not be written. */
export function writingFailed(file: string, error: unknown): string {
  const reason = errorMessage(error);
  const toDo = hasRoom(file) ? 'make sure that the disk is sound, then restart the coordinator' : makeRoom(file);
  return `the event store \`${file}\` could not be written: ${reason}; ${toDo}`;
}

/** The message for a file that was deleted or replaced while it was open. */
export function fileLost(file: string, path: string): string {
  const isThere = existsSync(path);
  return (
    `\`${path}\` was ${isThere ? 'replaced' : 'deleted'} while the coordinator was using it; ` +
    (path === lockOf(file)
      ? 'restart the coordinator, and never delete its lock files'
      : 'stop whatever does that, restore the data folder from a backup if events are missing, then start the coordinator')
  );
}

const makeRoom = (file: string): string => `the disk with \`${dirname(file)}\` is full: make room, then start again`;

/** Whether a file of a page can be written beside it: SQLite reports a full disk as any other fault. */
function hasRoom(file: string): boolean {
  const probe = join(dirname(file), `room-${process.pid}.tmp`);
  try {
    writeFileSync(probe, Buffer.alloc(64 * 1024, 1), { mode: 0o600 });
    return true;
  } catch (error) {
    return !noRoom.has((error as NodeJS.ErrnoException).code);
  } finally {
    rmSync(probe, { force: true });
  }
}

const noRoom: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

function holder(file: string): string {
  try {
    const pid = readFileSync(pidFile(file), 'utf8').trim();
    return pid === String(process.pid) ? `this process (pid ${pid})` : `another process (pid ${pid})`;
  } catch {
    return 'another process';
  }
}
