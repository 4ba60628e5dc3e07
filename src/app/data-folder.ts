import { join } from 'node:path';
import { FileLocked, lockFile } from '../ledger/stores/sqlite/file-lock.js';

/**
 * Locks a data folder for this process. Returns a function that unlocks it.
 * @throws {Error} if another process has it
 */
export function lockDataFolder(dataDir: string): () => void {
  try {
    return lockFile(join(dataDir, 'in-use.lock'));
  } catch (error) {
    if (!(error instanceof FileLocked)) throw error;
    throw new Error(
      `the data folder \`${dataDir}\` is in use by another coordinator: give each coordinator its own DATA_DIR, even if they share an event store`,
      { cause: error },
    );
  }
}
