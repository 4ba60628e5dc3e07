import { chmodSync, closeSync, openSync } from 'node:fs';
import Database from 'libsql';

/** Kept as long as the thread lives: a lock whose object is garbage-collected would be released. */
const held = new Set<Database.Database>();

/** Someone else has the lock. */
export class FileLocked extends Error {
  constructor(file: string, options?: ErrorOptions) {
    super(`the lock \`${file}\` is held by another process`, options);
    this.name = 'FileLocked';
  }
}

/**
 * Locks an empty file, creating it if missing. It is a kernel lock taken by SQLite: it ends with the process, however
 * that ends, so it is never stale. Returns a function that unlocks; the file stays, because removing it would let two
 * others have a lock each.
 * @throws {FileLocked} if another process, or another thread of this one, has it
 */
export function lockFile(file: string): () => void {
  createPrivate(file);
  const lock = new Database(file);
  try {
    lock.exec('PRAGMA busy_timeout = 0');
    lock.exec('PRAGMA locking_mode = EXCLUSIVE');
    // Avoids a second file beside it.
    lock.exec('PRAGMA journal_mode = MEMORY');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'SQLITE_BUSY' && code !== 'SQLITE_LOCKED') throw error;
    throw new FileLocked(file, { cause: error });
  }
  held.add(lock);
  return () => {
    if (!held.delete(lock)) return;
    lock.close();
  };
}

/** Readable only by its owner. An existing file is not opened: closing it would drop this process's locks. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    chmodSync(file, 0o600);
  }
}
