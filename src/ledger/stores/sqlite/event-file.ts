import type Database from 'libsql';
import { LatestEntries } from '../../../fairness/latest-entries.js';
import { isCut, sendsKept } from '../../event-store.js';
import { EventReads } from './event-reads.js';
import type { Row } from './row-pages.js';
import { OUTCOME } from './sqlite-protocol.js';
import { WriteAheadLog } from './write-ahead-log.js';

/** Another program has the lock for writing: nothing was written. */
export class LockedByAnother extends Error {}

/** Any stream beyond these costs one index lookup. */
const usualHeads = 100_000;

/** Last revision of a stream that has no events, and of one that was deleted. */
const EMPTY = -1;
const DELETED = -2;

/** One open database file, used by one thread. */
export class EventFile extends EventReads {
  readonly #database: Database.Database;
  readonly #log: WriteAheadLog;
  readonly #release: () => void;
  readonly #begin: Database.Statement;
  readonly #lastGiven: Database.Statement;
  readonly #commit: Database.Statement;
  readonly #insert: Database.Statement;
  readonly #lastRevision: Database.Statement;
  readonly #isDeleted: Database.Statement;
  readonly #written: Database.Statement;
  readonly #cut: Database.Statement;
  readonly #heads: LatestEntries<number>;
  /** The last position that was given to an event, whether or not that is still there. */
  #given: number;

  /**
   * @param release gives back what was locked for writing
   * @param mostHeads streams whose last revision is kept in memory
   * @param failed told of what failed with nobody waiting for it
   */
  constructor(
    file: string,
    database: Database.Database,
    release: () => void = () => undefined,
    mostHeads = usualHeads,
    failed: (error: unknown) => void = () => undefined,
  ) {
    super(database);
    this.#heads = new LatestEntries(mostHeads);
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
    this.#lastRevision = database.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?');
    this.#isDeleted = database.prepare('SELECT 1 FROM deleted_streams WHERE stream = ?');
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
    const given = this.#lastPosition();
    if (given !== this.#given) throw new Error(`another program has added events up to position ${given}`);
  }

  /** @throws {LockedByAnother} if another program has the lock for writing */
  probe(): void {
    this.#beginWriting();
    this.rollback();
  }

  /**
   * Writes a batch of appends in one transaction. Each is checked before its first insert, so that a refused one leaves
   * nothing to undo and the others alone.
   */
  append(batch: readonly (string | number)[]): number[] {
    const outcomes: number[] = [];
    this.#beginWriting();
    for (let at = 0; at < batch.length;) {
      const count = batch[at + 2] as number;
      this.#appendOne(batch[at] as string, batch[at + 1] as number, count, batch, at + 3, outcomes);
      at += 3 + 4 * count;
    }
    const given = this.#lastPosition();
    this.#commit.run([]);
    this.#given = given;
    this.#log.bound();
    return outcomes;
  }

  #appendOne(
    stream: string,
    first: number,
    count: number,
    batch: readonly (string | number)[],
    start: number,
    outcomes: number[],
  ): void {
    const head = this.#head(stream);
    if (head === DELETED) {
      outcomes.push(OUTCOME.streamDeleted, 0, 0);
    } else if (head === first - 1) {
      this.#insertAll(stream, first, count, batch, start, outcomes);
    } else {
      const position = head >= first + count - 1 ? this.#repeated(stream, first, count, batch, start) : undefined;
      if (position === undefined) outcomes.push(OUTCOME.wrongRevision, head, 0);
      else outcomes.push(OUTCOME.repeated, first + count - 1, position);
    }
  }

  #insertAll(
    stream: string,
    first: number,
    count: number,
    batch: readonly (string | number)[],
    start: number,
    outcomes: number[],
  ): void {
    let position = 0;
    for (let index = 0; index < count; index++) {
      const at = start + 4 * index;
      const row = [stream, first + index, batch[at], batch[at + 1], batch[at + 2], batch[at + 3]];
      position = Number(this.#insert.run(row).lastInsertRowid);
    }
    // Nothing secret is in them, so that they go without what a deletion does.
    if (isCut(stream)) this.#cut.run([stream, first + count - 1 - sendsKept]);
    this.#heads.set(stream, first + count - 1);
    outcomes.push(OUTCOME.written, first + count - 1, position);
  }

  /** Position of the last event of the append if exactly this append is what the stream has at that place. */
  #repeated(
    stream: string,
    first: number,
    count: number,
    batch: readonly (string | number)[],
    start: number,
  ): number | undefined {
    let position: number | undefined;
    for (let index = 0; index < count; index++) {
      const row = this.#written.get([stream, first + index, batch[start + 4 * index]]) as
        Pick<Row, 'position'> | undefined;
      if (row === undefined) return undefined;
      ({ position } = row);
    }
    return position;
  }

  #head(stream: string): number {
    const known = this.#heads.get(stream);
    if (known !== undefined) return known;
    const { revision } = this.#lastRevision.get([stream]) as { revision: number | null };
    const head = revision ?? (this.#isDeleted.get([stream]) === undefined ? EMPTY : DELETED);
    this.#heads.set(stream, head);
    return head;
  }

  delete(stream: string): number {
    // Crypto-shredding: the bytes must be gone from the file, and from the write-ahead log that they came through.
    this.#beginWriting();
    this.#database.exec('PRAGMA secure_delete = ON');
    this.#database.prepare('DELETE FROM events WHERE stream = ?').run([stream]);
    this.#database.prepare('INSERT OR IGNORE INTO deleted_streams (stream) VALUES (?)').run([stream]);
    this.#commit.run([]);
    this.#database.exec('PRAGMA secure_delete = OFF');
    this.#heads.set(stream, DELETED);
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
