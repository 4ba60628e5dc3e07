import { join } from 'node:path';
import { FileLocked, lockFile, OpenFiles } from '../ledger/stores/sqlite/file-lock.js';
import { FatalError, type HealthReports } from '../ports/health.js';

/** Milliseconds between two checks that the lock is still the one that another process would meet. */
const betweenChecks = 1_000;

/**
 * Locks a data folder for this process. Returns a function that unlocks it.
 * @param health learns if the lock was deleted, so that another process could have taken one of its own
 * @throws {Error} if another process has it
 */
export function lockDataFolder(dataDir: string, health?: Pick<HealthReports, 'fail'>): () => void {
  const file = join(dataDir, 'in-use.lock');
  try {
    const unlock = lockFile(file);
    const lock = new OpenFiles([file]);
    const checking = setInterval(() => {
      if (lock.lost() === undefined) return;
      health?.fail(
        new FatalError(
          `\`${file}\` was deleted while the coordinator was using it; restart the coordinator, and never delete its lock files`,
        ),
      );
    }, betweenChecks).unref();
    return () => {
      clearInterval(checking);
      unlock();
    };
  } catch (error) {
    if (!(error instanceof FileLocked)) throw error;
    throw new Error(
      `the data folder \`${dataDir}\` is in use by another coordinator: give each coordinator its own DATA_DIR, even if they share an event store`,
      { cause: error },
    );
  }
}
