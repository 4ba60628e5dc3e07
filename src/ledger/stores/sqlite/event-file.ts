import type Database from 'libsql';
import { isCut, sendsKept } from '../../event-store.js';
import { EventReads } from './event-reads.js';
import type { AppendCall, FileCalls, Outcome } from './sqlite-protocol.js';
import { WriteAheadLog } from './write-ahead-log.js';

/** Another program has the lock for writing: nothing was written. */
export class LockedByAnother extends Error {}

/** Last revision of a stream that has no events, and of one that was deleted. */
const EMPTY = -1;
const DELETED = -2;

/** One open database file, used by one thread. */
export class EventFile extends EventReads implements FileCalls {
  readonly #database: Database.Database;
  readonly #log: WriteAheadLog;
  readonly #release: () => void;
  readonly #begin: Database.Statement;
  readonly #lastGiven: Database.Statement;
  readonly #commit: Database.Statement;
  readonly #insert: Database.Statement;
  readonly #lastRevision: Database.Statement;
  readonly #written: Database.Statement;
  readonly #cut: Database.Statement;
  /** The last position that was given to an event, whether or not that is still there. */
  #given: number;

  /**
   * @param release gives back what was locked for writing
   * @param failed told of what failed with nobody waiting for it
   */
  constructor(
    file: string,
    database: Database.Database,
    release: () => void = () => undefined,
    failed: (error: unknown) => void = () => undefined,
  ) {
    super(database);
    this.#log = new WriteAheadLog(file, database, failed);
    this.#release = release;
    this.#database = database;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#lastGiven = database.prepare(`SELECT max(seq) AS position FROM sqlite_sequence WHERE name = 'events'`);
    this.#given = this.#lastPosition();
    this.#commit = database.prepare('COMMIT');
    this.#insert = database.prepare(
      'INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#lastRevision = database.prepare(
      'SELECT coalesce((SELECT max(revision) FROM events WHERE stream = ?), ' +
        `(SELECT ${DELETED} FROM deleted_streams WHERE stream = ?), ${EMPTY}) AS revision`,
    );
    this.#written = database.prepare('SELECT position FROM events WHERE stream = ? AND revision = ? AND id = ?');
    this.#cut = database.prepare('DELETE FROM events WHERE stream = ? AND revision <= ?');
  }

  #lastPosition(): number {
    return (this.#lastGiven.get([]) as { position: number | null }).position ?? 0;
  }

  /**
   * Begins a transaction that writes.
   * @throws {LockedByAnother}; {Error} if another program has added events: what this process knows of the file is not true then
   */
  #beginWriting(): void {
    try {
      this.#begin.run([]);
    } catch (error) {
      if (error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')) {
        throw new LockedByAnother('another program has the lock for writing', { cause: error });
      }
      throw error;
    }
    const input = this.#lastPosition();
    if (input !== this.#given) throw new Error(`another program has added events up to position ${input}`);
  }

  /** @throws {LockedByAnother} if another program has the lock for writing */
  probe(): void {
    this.#beginWriting();
    this.rollback();
  }

  append(batch: readonly AppendCall[]): readonly Outcome[] {
    this.#beginWriting();
    const outcomes = batch.map((append) => this.#append(append));
    const input = this.#lastPosition();
    this.#commit.run([]);
    this.#given = input;
    this.#log.bound();
    return outcomes;
  }

  /** Checked before the first insert, so that a refused append leaves nothing to undo, and the others of the batch alone. */
  #append(append: AppendCall): Outcome {
    const { stream, first, events } = append;
    const { revision: head } = this.#lastRevision.get([stream, stream]) as { revision: number };
    if (head === DELETED) return { kind: 'stream-deleted' };
    const revision = first + events.length - 1;
    if (head === first - 1) return { kind: 'written', revision, position: this.#insertAll(append) };
    const position = head >= revision ? this.#repeated(append) : undefined;
    if (position === undefined) return { kind: 'wrong-revision', revision: head };
    return { kind: 'repeated', revision, position };
  }

  /** Returns the position of the last event. */
  #insertAll({ stream, first, events }: AppendCall): number {
    let position = 0;
    for (const [index, { id, type, data, metadata }] of events.entries()) {
      position = Number(this.#insert.run([stream, first + index, id, type, data, metadata]).lastInsertRowid);
    }
    // Nothing secret is in them, so that they go without what a deletion does.
    if (isCut(stream)) this.#cut.run([stream, first + events.length - 1 - sendsKept]);
    return position;
  }

  /** Position of the last event of the append if exactly this append is what the stream has at that place. */
  #repeated({ stream, first, events }: AppendCall): number | undefined {
    let position: number | undefined;
    for (const [index, { id }] of events.entries()) {
      const row = this.#written.get([stream, first + index, id]) as { position: number } | undefined;
      if (row === undefined) return undefined;
      ({ position } = row);
    }
    return position;
  }

  delete(stream: string): number {
    // Crypto-shredding: the bytes must be gone from the file, and from the write-ahead log that they came through.
    this.#beginWriting();
    this.#database.exec('PRAGMA secure_delete = ON');
    this.#database.prepare('DELETE FROM events WHERE stream = ?').run([stream]);
    this.#database.prepare('INSERT OR IGNORE INTO deleted_streams (stream) VALUES (?)').run([stream]);
    this.#commit.run([]);
    this.#database.exec('PRAGMA secure_delete = OFF');
    this.emptyLog();
    return this.head();
  }

  /** Moves everything out of the log, at once or as soon as no reader needs it. */
  emptyLog(): void {
    this.#log.empty();
  }

  rollback(): void {
    if (this.#database.inTransaction) this.#database.exec('ROLLBACK');
  }

  close(): void {
    this.#log.close();
    this.#database.close();
    this.#release();
  }
}
