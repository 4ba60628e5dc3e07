import { closeSync, openSync, rmSync } from 'node:fs';
import Database from 'libsql';

/** A row of a read model from SQLite. */
export type Row = Readonly<Record<string, string | number | bigint | null>>;
type Value = string | number | bigint | Uint8Array | null;

/** The part of SQLite that projections and queries use. Synchronous: a statement takes microseconds. */
export interface Rows {
  run(sql: string, ...values: Value[]): void;
  get(sql: string, ...values: Value[]): Row | undefined;
  all(sql: string, ...values: Value[]): readonly Row[];
  /**
   * Ends what has found a row missing that another one names: SQLite takes lost rows for absent.
   * @param complaint what is missing, for the log
   * @throws as where SQLite finds damage by itself
   */
  lost(complaint: string): never;
}

/**
 * Milliseconds to wait for a file that another connection locks: the one before it may still be copying its log back as it closes, which
 * takes seconds where the log is long.
 */
const patienceMs = 10_000;

/** Maximum number of cached statements. */
const mostStatements = 1_000;

/**
 * The file of the read models: a cache that may be deleted at any time and is rebuilt from the events. `:memory:` keeps
 * it out of the file system.
 */
export class ReadModelDatabase implements Rows {
  private readonly database: Database.Database;
  /** Depth of nested transactions, and how many of them SQLite knows about. */
  private depth = 0;
  private begun = 0;
  private readonly statements = new Map<string, Database.Statement>();

  constructor(file: string) {
    if (file !== ':memory:') createPrivate(file);
    this.database = new Database(file);
    // Losing the last commits costs a replay of them, so there is no need to wait for the disk.
    // The log is copied back in large pieces: rows change in place again and again, and each copy waits for the disk.
    // 4 MiB of pages: the system caches the file already. Pages of 8 KiB waste less room between rows.
    const settings =
      `PRAGMA busy_timeout = ${patienceMs}; ` +
      'PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; ' +
      'PRAGMA wal_autocheckpoint = 8000; PRAGMA cache_size = -4096;';
    try {
      this.database.exec(settings);
    } catch (error) {
      this.database.close();
      throw error;
    }
  }

  /** False inside `transaction` once SQLite has undone all of it. */
  get isInTransaction(): boolean {
    return this.database.inTransaction;
  }

  /** Cached statements. */
  get ready(): number {
    return this.statements.size;
  }

  run(sql: string, ...values: Value[]): void {
    for (; this.begun < this.depth; this.begun += 1) this.execute(`SAVEPOINT level_${this.begun}`);
    this.execute(sql, ...values);
  }

  get(sql: string, ...values: Value[]): Row | undefined {
    return this.statement(sql).get(values) as Row | undefined;
  }

  all(sql: string, ...values: Value[]): readonly Row[] {
    return this.statement(sql).all(values) as Row[];
  }

  lost(complaint: string): never {
    throw new Damaged(complaint);
  }

  /**
   * Looks for blocks of a table, and of its indexes, that are not as SQLite left them. Reads all of them.
   * @throws what `isDamage` takes for damage
   */
  check(table: string): void {
    const [found] = this.all('SELECT quick_check AS complaint FROM pragma_quick_check(?)', table);
    if (found?.['complaint'] !== 'ok') this.lost(`\`${table}\` is damaged: ${String(found?.['complaint'])}`);
  }

  /** Runs several statements without values: table definitions. */
  define(sql: string): void {
    this.database.exec(sql);
    this.statements.clear();
  }

  /**
   * Everything or nothing. May be nested; an inner failure undoes only the inner work, unless `isInTransaction` says that
   * the outer work is undone with it, which must then not go on. An inner transaction begins with its first write: of twenty
   * models, most write nothing for a batch.
   */
  transaction(work: () => void): void {
    const level = this.depth;
    if (level === 0) {
      this.execute('BEGIN IMMEDIATE');
      this.begun = 1;
    }
    this.depth += 1;
    try {
      work();
      if (this.begun > level) this.execute(level === 0 ? 'COMMIT' : `RELEASE level_${level}`);
    } catch (error) {
      this.undo(level);
      throw error;
    } finally {
      this.depth = level;
      this.begun = Math.min(this.begun, level);
    }
  }

  close(): void {
    this.database.close();
  }

  private undo(level: number): void {
    // A full disk, for one, makes SQLite undo everything by itself.
    if (this.begun <= level || !this.isInTransaction) return;
    if (level === 0) return this.execute('ROLLBACK');
    try {
      this.execute(`ROLLBACK TO level_${level}`);
      this.execute(`RELEASE level_${level}`);
    } catch {
      // What cannot be undone alone is undone with the rest.
      if (this.isInTransaction) this.execute('ROLLBACK');
    }
  }

  private execute(sql: string, ...values: Value[]): void {
    this.statement(sql).run(values);
  }

  private statement(sql: string): Database.Statement {
    let statement = this.statements.get(sql);
    if (!statement) {
      statement = this.database.prepare(sql);
      // Callers choose the lengths of lists, and each length is a separate statement.
      if (this.statements.size >= mostStatements) this.statements.clear();
      this.statements.set(sql, statement);
    }
    return statement;
  }
}

/** With the code of what SQLite finds by itself. */
class Damaged extends Error {
  readonly code = 'SQLITE_CORRUPT';
}

/** Whether an error is no fault of its statement: another would have met it (no room, memory or handle, a broken disk or file). */
export function isForAll(error: unknown): boolean {
  return isDamage(error) || /^SQLITE_(?:FULL|NOMEM|IOERR|CANTOPEN)/.test(codeOf(error));
}

/** Whether an error says that a file is no database, or none that can be read whole. */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error));
}

/** Removes a file of read models, which no connection may write any more, and what SQLite keeps beside it. */
export function removeRows(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
}

/** The code of SQLite in an error; empty if it has none. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** SQLite gives the files beside a database its mode, so it must be created with the right one. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
