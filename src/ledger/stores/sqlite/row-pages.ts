import { PAGE_SIZE } from '../feed.js';
import { FIELDS_PER_ROW, SEPARATOR } from './sqlite-protocol.js';
import type { Fields, Page, Run } from './sqlite-protocol.js';

/** A page ends early once its events hold this much JSON, in bytes, so that large events cannot fill the memory. */
export const PAGE_TEXT = 1 << 20;
/** Most rows taken from SQLite at once while a page is filled. */
const ROWS_AT_ONCE = 50;

const COLUMNS = ['position', 'stream', 'revision', 'id', 'type', 'data', 'metadata'] as const;
const TEXTS = COLUMNS.join(` || char(${SEPARATOR.charCodeAt(0)}) || `);

/**
 * An event as it is stored. Texts are bytes: the library that reads SQLite ends the process at a text that is not UTF-8, as
 * one flipped bit can make it, where nobody could be told which event it is. Decoded, it has U+FFFD in its place, and follows
 * from no link.
 */
export type Row = Readonly<Record<'position' | 'revision', number>> &
  Readonly<Record<'stream' | 'id' | 'type' | 'data' | 'metadata', ArrayBuffer>>;

/** Rows as one text, in bytes; the columns are those that the next query can go on from. */
export interface JoinedRows {
  readonly count: number;
  readonly position: number;
  readonly revision: number;
  readonly text: Buffer | null;
}

/** The query of some rows, one by one. @param which everything behind `FROM` */
export function selectRows(which: string): string {
  const columns = COLUMNS.map((column) => (isNumber(column) ? column : `CAST(${column} AS BLOB) AS ${column}`));
  return `SELECT ${columns.join(', ')} FROM ${which}`;
}

/** The same rows joined to one text by SQLite: handing each value to JavaScript alone takes twice as long. */
export function selectJoined(which: string): string {
  return (
    'SELECT count(*) AS count, max(position) AS position, max(revision) AS revision, ' +
    `CAST(group_concat(texts, char(${SEPARATOR.charCodeAt(0)})) AS BLOB) AS text ` +
    `FROM (SELECT position, revision, ${TEXTS} AS texts FROM ${which})`
  );
}

/** Where an event is, as the index of streams and revisions has it. */
export type Place = Pick<Row, 'position' | 'stream' | 'revision'>;

/** The query of the places of some rows, from the index alone: it is elsewhere in the file. @param which everything behind `WHERE` */
export function selectPlaces(which: string): string {
  return (
    'SELECT position, CAST(stream AS BLOB) AS stream, revision FROM events INDEXED BY sqlite_autoindex_events_1 ' +
    `WHERE ${which}`
  );
}

/** How long the same rows are, in bytes, without reading them: SQLite has that beside each value. */
export function selectSizes(which: string): string {
  return `SELECT group_concat(size) AS sizes FROM (SELECT octet_length(data) + octet_length(metadata) AS size FROM ${which})`;
}

/** The sizes, as SQLite gives them. */
export interface JoinedSizes {
  readonly sizes: string | null;
}

/** What the next rows begin behind. */
type Last = Pick<JoinedRows, 'position' | 'revision'>;

/** The rows of a page, so many at most. */
interface RowsOfPage {
  /** From the first. */
  sizes(most: number): JoinedSizes;
  /** All in one, behind the last one. */
  joined(last: Last | undefined, most: number): JoinedRows;
  /** One by one, behind the last one. */
  single(last: Last | undefined, most: number): Row[];
}

/** Rows until the page is full; the first of them however long it is. */
export function page({ sizes, joined, single }: RowsOfPage): Page {
  const { count, last } = rowsOfPage(sizes(PAGE_SIZE));
  const runs: Run[] = [];
  let previous: Last | undefined;
  for (let left = count; left > 0; left -= ROWS_AT_ONCE) {
    const most = Math.min(left, ROWS_AT_ONCE);
    const some = joined(previous, most);
    const text = some.text?.toString();
    // The separator is in no JSON; it is not ours to say that a file has none elsewhere.
    runs.push(isWhole(text, some) ? text : single(previous, most).flatMap(fieldsOf));
    previous = some;
  }
  return { kind: 'page', runs, last, ...(previous ? { revision: previous.revision } : {}) };
}

/** How many of the next rows are a page, and whether no further ones follow. @param sizes of as many as a page has at most */
function rowsOfPage(sizes: JoinedSizes): { readonly count: number; readonly last: boolean } {
  const found = sizesIn(sizes);
  const count = Math.max(thatFit(found, PAGE_TEXT), Math.min(found.length, 1));
  return { count, last: count === found.length && count < PAGE_SIZE };
}

function sizesIn({ sizes }: JoinedSizes): readonly number[] {
  return sizes === null ? [] : sizes.split(',').map(Number);
}

/** How many of the first fit. */
function thatFit(sizes: readonly number[], room: number): number {
  let left = room;
  const beyond = sizes.findIndex((size) => (left -= size) < 0);
  return beyond < 0 ? sizes.length : beyond;
}

function isWhole(text: string | undefined, { count }: JoinedRows): text is string {
  if (text === undefined) return false;
  let separators = 0;
  for (let at = text.indexOf(SEPARATOR); at >= 0; at = text.indexOf(SEPARATOR, at + 1)) separators++;
  return separators === count * FIELDS_PER_ROW - 1;
}

/** A row as the main thread reads it. */
export function fieldsOf(row: Row): Fields {
  return COLUMNS.map((column) => (isNumber(column) ? row[column] : Buffer.from(row[column]).toString()));
}

function isNumber(column: (typeof COLUMNS)[number]): column is 'position' | 'revision' {
  return column === 'position' || column === 'revision';
}
