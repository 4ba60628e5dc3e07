import { chmodSync, closeSync, openSync, statSync } from 'node:fs';
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
  if (!createPrivate(file)) chmodSync(file, 0o600);
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

/**
 * Makes a missing file readable by its owner only; false if there is one. An existing file is not opened: closing it would drop this
 * process's locks.
 */
export function createPrivate(file: string): boolean {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}

/** The file at a path by its device and inode, which no other file gets while it is open; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

/** Open files. A path that is deleted or replaced leads elsewhere, while this process would go on with the file it has open. */
export class OpenFiles {
  private readonly known: ReadonlyMap<string, string | undefined>;

  constructor(paths: readonly string[]) {
    this.known = new Map(paths.map((path) => [path, identityOf(path)]));
  }

  /** The first path that no longer leads to the open file; undefined if all do. */
  lost(): string | undefined {
    for (const [path, identity] of this.known) if (identityOf(path) !== identity) return path;
    return undefined;
  }
}
