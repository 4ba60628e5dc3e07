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

/** How many tables a file has, ours or not. */
export function tablesIn(database: Database.Database): number {
  const [{ tables }] = database.prepare('SELECT count(*) AS tables FROM sqlite_schema').all([]) as [{ tables: number }];
  return tables;
}

/** The message for a database with other tables. */
export function notOurs(file: string): Error {
  return new Error(`the file \`${file}\` is a database, but not an event store: choose another file`);
}
