import { chmodSync, closeSync, openSync } from 'node:fs';
import Database from 'libsql';

/** Held as long as the thread lives: a lock whose object is forgotten would be given back with it. */
const held = new Set<Database.Database>();

/** Somebody else has the lock. */
export class FileLocked extends Error {
  constructor(file: string, options?: ErrorOptions) {
    super(`the lock \`${file}\` is held by another process`, options);
    this.name = 'FileLocked';
  }
}

/**
 * Locks a file that has nothing in it, making it where it is missing. The lock is the kernel's, taken by SQLite: it ends with
 * the process however that ends, so that it is never stale. Returns what gives it back; the file stays, since whoever
 * removed it would leave two others with a lock each.
 * @throws {FileLocked} when another process, or another thread of this one, has it
 */
export function lockFile(file: string): () => void {
  createPrivate(file);
  const lock = new Database(file);
  try {
    lock.exec('PRAGMA busy_timeout = 0');
    lock.exec('PRAGMA locking_mode = EXCLUSIVE');
    // No second file beside it.
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

/** Readable by its owner only. One that is there is not opened: closing it would drop the locks that this process has. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    chmodSync(file, 0o600);
  }
}
