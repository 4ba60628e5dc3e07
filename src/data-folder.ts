import { chmodSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';

/** Held as long as the process lives: a lock whose object is forgotten would be given back with it. */
const held = new Set<Database.Database>();

/**
 * Makes a data folder this process's own. The lock is the kernel's, taken by SQLite on a file that has nothing in it: it
 * ends with the process however that ends, so that it is never stale. Returns what gives it back.
 * @throws {Error} when another process has it
 */
export function lockDataFolder(dataDir: string): () => void {
  const file = join(dataDir, 'in-use.lock');
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
    throw new Error(
      `the data folder \`${dataDir}\` is in use by another coordinator: give each a DATA_DIR of its own, also on one event store`,
      { cause: error },
    );
  }
  held.add(lock);
  return () => {
    held.delete(lock);
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
