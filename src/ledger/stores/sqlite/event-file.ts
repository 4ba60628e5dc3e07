import type Database from 'libsql';
import { LatestEntries } from '../../../fairness/latest-entries.js';
import { isCut, sendsKept } from '../../event-store.js';
import { PAGE_SIZE } from '../feed.js';
import { CHAINED_AT_ONCE, checkedRun, selectChained, type ChainedRows } from './chained-rows.js';
import { fieldsOf, page, PAGE_TEXT, selectJoined, selectRows, selectSizes } from './row-pages.js';
import type { JoinedRows, JoinedSizes, Row } from './row-pages.js';
import { OUTCOME } from './sqlite-protocol.js';
import type { ChainedPage, ChainedRun, Page } from './sqlite-protocol.js';
import { WriteAheadLog } from './write-ahead-log.js';

/** Any stream beyond these costs one index lookup. */
const usualHeads = 100_000;

/** Last revision of a stream that has no events, and of one that was deleted. */
const EMPTY = -1;
const DELETED = -2;

/** One open database file, used by one thread. */
export class EventFile {
  readonly #database: Database.Database;
  readonly #log: WriteAheadLog;
  readonly #release: () => void;
  readonly #begin: Database.Statement;
  readonly #commit: Database.Statement;
  readonly #insert: Database.Statement;
  readonly #lastRevision: Database.Statement;
  readonly #isDeleted: Database.Statement;
  readonly #written: Database.Statement;
  readonly #streamSizes: Database.Statement;
  readonly #streamRows: Database.Statement;
  readonly #streamJoined: Database.Statement;
  readonly #streamChained: Database.Statement;
  readonly #lastRows: Database.Statement;
  readonly #cut: Database.Statement;
  readonly #allSizes: Database.Statement;
  readonly #allRows: Database.Statement;
  readonly #allJoined: Database.Statement;
  readonly #heads: LatestEntries<number>;

  /**
   * @param release gives back what was locked for writing
   * @param mostHeads streams whose last revision is kept in memory
   */
  constructor(
    file: string,
    database: Database.Database,
    release: () => void = () => undefined,
    mostHeads = usualHeads,
  ) {
    this.#heads = new LatestEntries(mostHeads);
    this.#log = new WriteAheadLog(file, database);
    this.#release = release;
    this.#database = database;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#insert = database.prepare(
      'INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#lastRevision = database.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?');
    this.#isDeleted = database.prepare('SELECT 1 FROM deleted_streams WHERE stream = ?');
    this.#written = database.prepare('SELECT position FROM events WHERE stream = ? AND revision = ? AND id = ?');
    const ofStream = 'events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?';
    this.#streamSizes = database.prepare(selectSizes(ofStream));
    this.#streamRows = database.prepare(selectRows(ofStream));
    this.#streamJoined = database.prepare(selectJoined(ofStream));
    this.#streamChained = database.prepare(selectChained(ofStream));
    this.#lastRows = database.prepare(selectRows('events WHERE stream = ? ORDER BY revision DESC LIMIT ?'));
    this.#cut = database.prepare('DELETE FROM events WHERE stream = ? AND revision <= ?');
    const ofAll = 'events WHERE position > ? ORDER BY position LIMIT ?';
    this.#allSizes = database.prepare(selectSizes(ofAll));
    this.#allRows = database.prepare(selectRows(ofAll));
    this.#allJoined = database.prepare(selectJoined(ofAll));
  }

  /** Position of the last event, 0 when there is none. */
  head(): number {
    const [row] = this.#database.prepare('SELECT max(position) AS position FROM events').all([]) as Partial<Row>[];
    return row?.position ?? 0;
  }

  /**
   * Writes a batch of appends in one transaction. Each is checked before its first insert, so that a refused one leaves
   * nothing to undo and the others alone.
   */
  append(batch: readonly (string | number)[]): number[] {
    const outcomes: number[] = [];
    this.#begin.run([]);
    for (let at = 0; at < batch.length;) {
      const count = batch[at + 2] as number;
      this.#appendOne(batch[at] as string, batch[at + 1] as number, count, batch, at + 3, outcomes);
      at += 3 + 4 * count;
    }
    this.#commit.run([]);
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

  readStream(stream: string, from: number): Page {
    const begin = (last: Pick<JoinedRows, 'revision'> | undefined) => [stream, last ? last.revision + 1 : from];
    return page({
      sizes: (most) => this.#streamSizes.get([stream, from, most]) as JoinedSizes,
      joined: (last, most) => this.#streamJoined.get([...begin(last), most]) as JoinedRows,
      single: (last, most) => this.#streamRows.all([...begin(last), most]) as Row[],
    });
  }

  /** The same for who checks the chain; undefined if an event does not follow from the text of the one before it. */
  readChained(stream: string, from: number, after: string): ChainedPage | undefined {
    const runs: ChainedRun[] = [];
    let revision = from - 1;
    let link = after;
    let room = PAGE_TEXT;
    for (let left = PAGE_SIZE; left > 0 && room > 0; left -= CHAINED_AT_ONCE) {
      const rows = this.#streamChained.get([stream, revision + 1, CHAINED_AT_ONCE]) as ChainedRows;
      if (rows.revision === null) return chainedPage(runs, true, revision);
      const run = checkedRun(rows, link);
      if (run === undefined) return runs.length > 0 ? chainedPage(runs, false, revision) : undefined;
      runs.push(run);
      ({ revision } = rows);
      link = run.links.at(-1)!;
      room -= run.list.length;
      if (rows.count < CHAINED_AT_ONCE) return chainedPage(runs, true, revision);
    }
    return chainedPage(runs, false, revision);
  }

  readLast(stream: string, most: number): Page {
    const rows = this.#lastRows.all([stream, most]) as Row[];
    return { kind: 'page', runs: [rows.reverse().flatMap(fieldsOf)], last: true };
  }

  readAll(after: number): Page {
    return page({
      sizes: (most) => this.#allSizes.get([after, most]) as JoinedSizes,
      joined: (last, most) => this.#allJoined.get([last?.position ?? after, most]) as JoinedRows,
      single: (last, most) => this.#allRows.all([last?.position ?? after, most]) as Row[],
    });
  }

  delete(stream: string): number {
    // Crypto-shredding: the bytes must be gone from the file, and from the write-ahead log that they came through.
    this.#database.exec('PRAGMA secure_delete = ON');
    this.#begin.run([]);
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

function chainedPage(runs: readonly ChainedRun[], last: boolean, revision: number): ChainedPage {
  return { kind: 'chained-page', runs, last, ...(runs.length > 0 ? { revision } : {}) };
}
