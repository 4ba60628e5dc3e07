import type Database from 'libsql';
import { checkStoreFormat, STORE_FORMAT } from '../../store-format.js';

/** Marks the file as ours in its header: `CSGN` in ASCII (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x4353474e;

// No index on `id`: a repeated append is recognized by its stream and revision. Ids are random, so that an index would
// dirty a page for every event (measured: 18 000 instead of 40 000 appends a second, and falling as the file grows).
export const SCHEMA = `
  CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (stream, revision)
  );
  CREATE TABLE deleted_streams (stream TEXT PRIMARY KEY) WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${STORE_FORMAT};
`;

/**
 * Whether a file has our tables, in the format of this release. Changes nothing.
 * @throws {Error} if it has another format, or the tables of another program
 */
export function isEventStore(file: string, database: Database.Database): boolean {
  const tables = database.prepare('SELECT name FROM sqlite_schema').all([]) as { name: string }[];
  if (tables.length === 0) return false;
  const [{ application_id: application }] = database.pragma('application_id') as [{ application_id: number }];
  const [{ user_version: format }] = database.pragma('user_version') as [{ user_version: number }];
  // Builds before the first release set no application id.
  const isOurs =
    application === APPLICATION_ID || (application === 0 && tables.some(({ name }) => name === 'deleted_streams'));
  if (!isOurs) throw notOurs(file);
  checkStoreFormat(`\`${file}\``, format);
  refuseOtherSchema(file, database);
  return true;
}

/** What SQLite has of our tables: names, and their definitions without white space. */
const ourSchema: ReadonlyMap<string, string> = new Map([
  ['table events', inOneLine(/CREATE TABLE events [^;]+/.exec(SCHEMA)![0])],
  ['table deleted_streams', inOneLine(/CREATE TABLE deleted_streams [^;]+/.exec(SCHEMA)![0])],
  // SQLite makes these two for UNIQUE and AUTOINCREMENT.
  ['index sqlite_autoindex_events_1', ''],
  ['table sqlite_sequence', inOneLine('CREATE TABLE sqlite_sequence(name,seq)')],
]);

function inOneLine(text: string): string {
  return text.replace(/\s+/g, '');
}

/**
 * Throws if a file has anything but our tables as we make them: a trigger or a view would act on events, or stand in for
 * them, whatever the rows say.
 */
function refuseOtherSchema(file: string, database: Database.Database): void {
  const found = database
    .prepare("SELECT type || ' ' || name AS name, coalesce(sql, '') AS sql FROM sqlite_schema")
    .all([]) as {
    name: string;
    sql: string;
  }[];
  const other = found.find(({ name, sql }) => ourSchema.get(name) !== inOneLine(sql))?.name;
  const missing = [...ourSchema.keys()].find((name) => !found.some((one) => one.name === name));
  const what = other === undefined ? missing && `no ${missing}` : `the ${other}, which no coordinator made`;
  if (what) throw new Error(`the event store \`${file}\` has ${what}: restore a backup`);
}

/**
 * Throws if a file has events that the feed and the streams would not show alike: at positions that no store gives out, or
 * whose stream is no text. Such a row was written by something else, and `verify` would pass over it.
 */
export function refuseOddRows(file: string, database: Database.Database): void {
  // Each is one step in an index: other types than text come before and behind all texts.
  const [found] = database
    .prepare(
      `SELECT CAST((SELECT min(position) FROM events) AS TEXT) AS lowest, CAST((SELECT max(position) FROM events) AS TEXT) AS highest,
         (SELECT typeof(stream) FROM events ORDER BY stream LIMIT 1) AS first,
         (SELECT typeof(stream) FROM events ORDER BY stream DESC LIMIT 1) AS last`,
    )
    .all([]) as [{ lowest: string | null; highest: string | null; first: string | null; last: string | null }];
  const { lowest, highest, first, last } = found;
  if (lowest === null || highest === null) return;
  const refuse = (what: string): never => {
    throw new Error(`the event store \`${file}\` has ${what}, which no coordinator wrote: restore a backup`);
  };
  if (BigInt(lowest) < 1n) refuse(`an event at position ${lowest}`);
  if (BigInt(highest) > BigInt(Number.MAX_SAFE_INTEGER)) refuse(`an event at position ${highest}`);
  if (first !== 'text' || last !== 'text') refuse('an event whose stream is no text');
}

/** The message for a database with other tables. */
export function notOurs(file: string): Error {
  return new Error(`the file \`${file}\` is a database, but not an event store: choose another file`);
}
