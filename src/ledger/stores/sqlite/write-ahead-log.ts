import type Database from 'libsql';
import { statSync } from 'node:fs';

/**
 * Bytes the write-ahead log is cut back to after a commit larger than that, and those after which writing waits for the
 * readers that keep the log from beginning again.
 */
export const MAX_LOG = 64 * 1024 * 1024;
/** Milliseconds that opening and checkpoints wait for another process: readers hold the file for a page at a time. */
export const PATIENCE = 1_000;
/** Milliseconds that a transaction waits for the lock at once: meanwhile nothing is read. */
export const WRITE_PATIENCE = 50;
/** Milliseconds between two tries to empty the log that deleted bytes came through, while a reader needs it. */
const BETWEEN_TRIES = 50;

/** The write-ahead log of a file, kept within bounds and emptied of what was deleted. */
export class WriteAheadLog {
  readonly #database: Database.Database;
  readonly #file: string;
  readonly #failed: (error: unknown) => void;
  /** Size of the log from which on it is to begin again. */
  #maxLog = MAX_LOG;
  #emptying: NodeJS.Timeout | undefined;

  /** @param failed told of an attempt to empty it that failed with nobody waiting for it */
  constructor(file: string, database: Database.Database, failed: (error: unknown) => void) {
    this.#file = `${file}-wal`;
    this.#database = database;
    this.#failed = failed;
  }

  /** SQLite begins the log again by itself whenever no reader needs it; under readers all the time that may be never. */
  bound(): void {
    const size = sizeOf(this.#file);
    if (size <= this.#maxLog) {
      if (size <= MAX_LOG) this.#maxLog = MAX_LOG;
      return;
    }
    const isDone = this.#checkpoint('RESTART', PATIENCE);
    // A transaction that another program leaves open is not ours to end: it is waited for once in so many bytes.
    this.#maxLog = isDone ? MAX_LOG : size + MAX_LOG;
  }

  /** Whether it was done to the end: a reader that needs the log outlasts our patience. */
  #checkpoint(mode: 'RESTART' | 'TRUNCATE', patience: number): boolean {
    this.#database.exec(`PRAGMA busy_timeout = ${patience}`);
    try {
      const [result] = this.#database.pragma(`wal_checkpoint(${mode})`) as { readonly busy: number }[];
      return result?.busy === 0;
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${WRITE_PATIENCE}`);
    }
  }

  /** Moves everything out of the log. While a reader looks at the file as it was, the log stays, and this is tried again. */
  empty(): void {
    clearTimeout(this.#emptying);
    if (this.#checkpoint('TRUNCATE', 0)) return;
    this.#emptying = setTimeout(() => this.#tryAgain(), BETWEEN_TRIES).unref();
  }

  #tryAgain(): void {
    try {
      this.empty();
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    clearTimeout(this.#emptying);
  }
}

/** Bytes of a file, 0 where there is none. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
