import type Database from 'libsql';

/** Version of the tables below, kept in the file as `user_version`. */
const SCHEMA_VERSION = 1;

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
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Version of the tables in a file, 0 if it has none of ours. @throws {Error} if a newer release wrote it */
export function schemaVersion(file: string, database: Database.Database): number {
  const [{ user_version: version }] = database.pragma('user_version') as [{ user_version: number }];
  if (version <= SCHEMA_VERSION) return version;
  throw new Error(
    `the event store \`${file}\` has schema version ${version}, but this release supports at most ${SCHEMA_VERSION}: ` +
      'start the release that wrote it, or a newer one',
  );
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

/** How many tables a file has, ours or not. */
export function tablesIn(database: Database.Database): number {
  const [{ tables }] = database.prepare('SELECT count(*) AS tables FROM sqlite_schema').all([]) as [{ tables: number }];
  return tables;
}

/** The message for a database with other tables. */
export function notOurs(file: string): Error {
  return new Error(`the file \`${file}\` is a database, but not an event store: choose another file`);
}
