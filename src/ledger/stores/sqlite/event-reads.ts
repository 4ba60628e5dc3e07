import { isArrayBuffer } from 'node:util/types';
import type Database from 'libsql';
import { PAGE_SIZE } from '../feed.js';
import { CHAINED_AT_ONCE, checkedRun, selectChained, type ChainedRows } from './chained-rows.js';
import { fieldsOf, page, PAGE_TEXT, selectJoined, selectPlaces, selectRows, selectSizes } from './row-pages.js';
import type { JoinedRows, JoinedSizes, Place, Row } from './row-pages.js';
import type { ChainedPage, ChainedRun, Fields, Page } from './sqlite-protocol.js';

/** What is read of an open database file, a page at a time. */
export class EventReads {
  readonly #database: Database.Database;
  readonly #streamSizes: Database.Statement;
  readonly #streamRows: Database.Statement;
  readonly #streamJoined: Database.Statement;
  readonly #streamChained: Database.Statement;
  readonly #lastRows: Database.Statement;
  readonly #allSizes: Database.Statement;
  readonly #allRows: Database.Statement;
  readonly #allJoined: Database.Statement;
  readonly #streamPlaces: Database.Statement;
  readonly #allPlaces: Database.Statement;
  readonly #row: Database.Statement;

  constructor(database: Database.Database) {
    this.#database = database;
    const ofStream = 'events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT ?';
    this.#streamSizes = database.prepare(selectSizes(ofStream));
    this.#streamRows = database.prepare(selectRows(ofStream));
    this.#streamJoined = database.prepare(selectJoined(ofStream));
    this.#streamChained = database.prepare(selectChained(ofStream));
    this.#lastRows = database.prepare(selectRows('events WHERE stream = ? ORDER BY revision DESC LIMIT ?'));
    const ofAll = 'events WHERE position > ? ORDER BY position LIMIT ?';
    this.#allSizes = database.prepare(selectSizes(ofAll));
    this.#allRows = database.prepare(selectRows(ofAll));
    this.#allJoined = database.prepare(selectJoined(ofAll));
    this.#streamPlaces = database.prepare(selectPlaces('stream = ? AND revision >= ? ORDER BY revision LIMIT ?'));
    this.#allPlaces = database.prepare(selectPlaces('position > ? ORDER BY position LIMIT ?'));
    this.#row = database.prepare(selectRows('events WHERE position = ?'));
  }

  /** Position of the last event, 0 when there is none. */
  head(): number {
    const [row] = this.#database.prepare('SELECT max(position) AS position FROM events').all([]) as Partial<Row>[];
    return row?.position ?? 0;
  }

  readStream(stream: string, from: number): Page {
    const begin = (last: Pick<JoinedRows, 'revision'> | undefined) => [stream, last ? last.revision + 1 : from];
    return this.#orApart(
      () =>
        page({
          sizes: (most) => only(this.#streamSizes, [stream, from, most]) as JoinedSizes,
          joined: (last, most) => only(this.#streamJoined, [...begin(last), most]) as JoinedRows,
          single: (last, most) => this.#streamRows.all([...begin(last), most]) as Row[],
        }),
      () => this.#streamPlaces.all([stream, from, PAGE_SIZE]) as Place[],
    );
  }

  /** The same for who checks the chain; undefined if an event does not follow from the text of the one before it. */
  readChained(stream: string, from: number, after: string): ChainedPage | undefined {
    try {
      return this.#chained(stream, from, after);
    } catch (error) {
      if (isDamage(error)) return undefined;
      throw error;
    }
  }

  #chained(stream: string, from: number, after: string): ChainedPage | undefined {
    const runs: ChainedRun[] = [];
    let revision = from - 1;
    let link = after;
    let room = PAGE_TEXT;
    for (let left = PAGE_SIZE; left > 0 && room > 0; left -= CHAINED_AT_ONCE) {
      const rows = only(this.#streamChained, [stream, revision + 1, CHAINED_AT_ONCE]) as ChainedRows;
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
    return this.#orApart(
      () =>
        page({
          sizes: (most) => only(this.#allSizes, [after, most]) as JoinedSizes,
          joined: (last, most) => only(this.#allJoined, [last?.position ?? after, most]) as JoinedRows,
          single: (last, most) => this.#allRows.all([last?.position ?? after, most]) as Row[],
        }),
      () => this.#allPlaces.all([after, PAGE_SIZE]) as Place[],
    );
  }

  /**
   * A page; if SQLite finds its rows damaged, those that the index names, each read alone. One that cannot be read is an event without
   * JSON: readers refuse its organization, and not those of the events around it.
   */
  #orApart(together: () => Page, places: () => readonly Place[]): Page {
    try {
      return together();
    } catch (error) {
      if (!isDamage(error)) throw error;
      const found = places();
      const runs: Fields[] = [];
      let size = 0;
      for (const place of found) {
        const fields = this.#fieldsAt(place);
        size += fields.reduce<number>((sum, field) => sum + String(field).length, 0);
        if (runs.length > 0 && size > PAGE_TEXT) break;
        runs.push(fields);
      }
      const last = found[runs.length - 1];
      const isLast = runs.length === found.length && found.length < PAGE_SIZE;
      return { kind: 'page', runs, last: isLast, ...(last ? { revision: last.revision } : {}) };
    }
  }

  #fieldsAt({ position, stream, revision }: Place): Fields {
    try {
      const row = this.#row.all([position])[0] as Row | undefined;
      if (row) return fieldsOf(row);
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    return [position, Buffer.from(stream).toString(), revision, '', 'damaged', '', ''];
  }
}

function chainedPage(runs: readonly ChainedRun[], last: boolean, revision: number): ChainedPage {
  return { kind: 'chained-page', runs, last, ...(runs.length > 0 ? { revision } : {}) };
}

/** Whether SQLite has found a part of the file damaged. */
function isDamage(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_CORRUPT');
}

/**
 * The only row, with its bytes as buffers. Not by `get`: once that has met damage, the same statement fails for every other row.
 */
function only(statement: Database.Statement, values: readonly (string | number)[]): unknown {
  const [row] = statement.all([...values]) as [Readonly<Record<string, unknown>>];
  const members = Object.entries(row).map(([name, value]) => [name, isArrayBuffer(value) ? Buffer.from(value) : value]);
  return Object.fromEntries(members);
}
