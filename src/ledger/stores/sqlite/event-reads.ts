import { isArrayBuffer } from 'node:util/types';
import type Database from 'libsql';
import { PAGE_SIZE } from '../feed.js';
import { CHAINED_AT_ONCE, checkedRun, selectChained, type ChainedRows } from './chained-rows.js';
import { FIELDS_PER_ROW, fieldsOf, SEPARATOR, type ChainedPage, type ChainedRun } from './sqlite-protocol.js';
import type { Page, Row } from './sqlite-protocol.js';

/** A page ends early once its events hold this much JSON, in bytes, so that large events cannot fill the memory. */
const PAGE_TEXT = 1 << 20;

const COLUMNS = ['position', 'stream', 'revision', 'id', 'type', 'data', 'metadata'];
const NUMBERS = ['position', 'revision'];
/**
 * Texts are read as bytes: libsql ends the process at a text that is not UTF-8, as one flipped bit can make it, where nobody could be
 * told which event it is. Decoded, it has U+FFFD in its place, and follows from no link.
 */
const AS_BYTES = COLUMNS.map((column) => (NUMBERS.includes(column) ? column : `CAST(${column} AS BLOB) AS ${column}`));
/** The columns of a row joined by SQLite: handing each to JavaScript alone takes twice as long. */
const JOINED = `position, CAST(${COLUMNS.join(` || char(${SEPARATOR.charCodeAt(0)}) || `)} AS BLOB) AS text`;

interface JoinedRow {
  readonly position: number;
  readonly text: ArrayBuffer | null;
}

/** Where an event is, as the index of streams and revisions has it. */
interface Place {
  readonly position: number;
  readonly stream: ArrayBuffer;
  readonly revision: number;
}

/** Reads one kind of page: what its rows have in common, and their order. */
class Pages {
  readonly #sizes: Database.Statement;
  readonly #rows: Database.Statement;
  readonly #places: Database.Statement;
  readonly #apart: (position: number) => Row | undefined;

  /**
   * @param which everything behind `WHERE`; the last parameter is the number of rows
   * @param apart reads one row, each column alone
   */
  constructor(database: Database.Database, which: string, apart: (position: number) => Row | undefined) {
    const size = 'octet_length(data) + octet_length(metadata)';
    // Without reading the texts: SQLite has the size beside each value.
    this.#sizes = database.prepare(
      `SELECT group_concat(size) AS sizes FROM (SELECT ${size} AS size FROM events WHERE ${which})`,
    );
    this.#rows = database.prepare(`SELECT ${JOINED} FROM events WHERE ${which}`);
    // From the index alone, which is elsewhere in the file.
    this.#places = database.prepare(
      'SELECT position, CAST(stream AS BLOB) AS stream, revision FROM events INDEXED BY sqlite_autoindex_events_1 ' +
        `WHERE ${which}`,
    );
    this.#apart = apart;
  }

  /** Rows until the page is full; the first of them however long it is. */
  read(...from: readonly (string | number)[]): Page {
    try {
      const [{ sizes }] = this.#sizes.all([...from, PAGE_SIZE]) as [{ sizes: string | null }];
      const found = sizes === null ? [] : sizes.split(',').map(Number);
      const count = fitting(found);
      const rows = this.#rows.all([...from, count]) as JoinedRow[];
      return { kind: 'page', rows: rows.map((row) => this.#row(row)), last: isLast(count, found.length) };
    } catch (error) {
      if (!isDamage(error)) throw error;
      return this.#readApart(from);
    }
  }

  #row({ position, text }: JoinedRow): Row {
    const joined = text === null ? '' : Buffer.from(text).toString();
    // The separator is in no JSON, but names in a file may have it.
    return fieldsOf(joined).length === FIELDS_PER_ROW ? joined : this.#apart(position)!;
  }

  /**
   * The rows that the index names, each read alone, if SQLite finds the page damaged. One that cannot be read is an event without JSON:
   * readers refuse its organization, and not those of the events around it.
   */
  #readApart(from: readonly (string | number)[]): Page {
    const places = this.#places.all([...from, PAGE_SIZE]) as Place[];
    const rows: Row[] = [];
    let size = 0;
    for (const place of places) {
      const row = this.#apartOrDamaged(place);
      size += fieldsOf(row).reduce<number>((sum, field) => sum + String(field).length, 0);
      if (rows.length > 0 && size > PAGE_TEXT) break;
      rows.push(row);
    }
    return { kind: 'page', rows, last: isLast(rows.length, places.length) };
  }

  #apartOrDamaged({ position, stream, revision }: Place): Row {
    try {
      const row = this.#apart(position);
      if (row) return row;
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    return [position, Buffer.from(stream).toString(), revision, '', 'damaged', '', ''];
  }
}

/** How many of the next events fit into a page. */
function fitting(sizes: readonly number[]): number {
  let left = PAGE_TEXT;
  const beyond = sizes.findIndex((size) => (left -= size) < 0);
  return beyond < 0 ? sizes.length : Math.max(beyond, 1);
}

/** Whether no events follow a page, of as many as a page has at most. */
function isLast(taken: number, found: number): boolean {
  return taken === found && found < PAGE_SIZE;
}

/** What is read of an open database file, a page at a time. */
export class EventReads {
  readonly #database: Database.Database;
  readonly #streamPages: Pages;
  readonly #allPages: Pages;
  readonly #chained: Database.Statement;
  readonly #lastRows: Database.Statement;
  readonly #row: Database.Statement;

  constructor(database: Database.Database) {
    this.#database = database;
    const ofStream = 'stream = ? AND revision >= ? ORDER BY revision LIMIT ?';
    const apart = (position: number): Row | undefined => this.#apart(position);
    this.#streamPages = new Pages(database, ofStream, apart);
    this.#allPages = new Pages(database, 'position > ? ORDER BY position LIMIT ?', apart);
    this.#chained = database.prepare(selectChained(`events WHERE ${ofStream}`));
    this.#lastRows = database.prepare('SELECT position FROM events WHERE stream = ? ORDER BY revision DESC LIMIT ?');
    this.#row = database.prepare(`SELECT ${AS_BYTES.join(', ')} FROM events WHERE position = ?`);
  }

  head(): number {
    const [row] = this.#database.prepare('SELECT max(position) AS position FROM events').all([]) as {
      position: number | null;
    }[];
    return row?.position ?? 0;
  }

  readStream(stream: string, from: number): Page {
    return this.#streamPages.read(stream, from);
  }

  readAll(after: number): Page {
    return this.#allPages.read(after);
  }

  readLast(stream: string, most: number): Page {
    const rows = this.#lastRows.all([stream, most]) as Pick<Place, 'position'>[];
    return { kind: 'page', rows: rows.reverse().map(({ position }) => this.#apart(position)!), last: true };
  }

  readChained(stream: string, from: number, after: string): ChainedPage | Page {
    try {
      const page = this.#chainedPage(stream, from, after);
      if (page) return page;
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    return this.readStream(stream, from);
  }

  /** Undefined if the first events do not follow from the link. */
  #chainedPage(stream: string, from: number, after: string): ChainedPage | undefined {
    const runs: ChainedRun[] = [];
    const page = (last: boolean): ChainedPage => ({ kind: 'chained-page', runs, last });
    let next = from;
    let link = after;
    let room = PAGE_TEXT;
    for (let left = PAGE_SIZE; left > 0 && room > 0; left -= CHAINED_AT_ONCE) {
      const [rows] = this.#chained.all([stream, next, CHAINED_AT_ONCE]) as [ChainedRows];
      if (rows.count === 0) return page(true);
      const run = checkedRun(rows, link);
      if (run === undefined) return runs.length > 0 ? page(false) : undefined;
      runs.push(run);
      next += rows.count;
      link = run.links.at(-1)!;
      room -= run.list.length;
      if (rows.count < CHAINED_AT_ONCE) return page(true);
    }
    return page(false);
  }

  #apart(position: number): Row | undefined {
    // Not by `get`: once that has met damage, the same statement fails for every other row.
    const [row] = this.#row.all([position]) as Readonly<Record<string, unknown>>[];
    return row && COLUMNS.map((column) => textOrNumber(row[column]));
  }
}

function textOrNumber(value: unknown): string | number {
  return isArrayBuffer(value) ? Buffer.from(value).toString() : Number(value);
}

/** Whether SQLite has found a part of the file damaged. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_CORRUPT');
}
