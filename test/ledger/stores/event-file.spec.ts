import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { EventFile } from '../../../src/ledger/stores/sqlite/event-file.js';
import { SCHEMA } from '../../../src/ledger/stores/sqlite/schema.js';
import { OUTCOME } from '../../../src/ledger/stores/sqlite/sqlite-protocol.js';

test('the last revisions of so many streams are kept in memory; those of others are looked up again', () => {
  const folder = mkdtempSync(join(tmpdir(), 'event-file-'));
  const file = join(folder, 'events.db');
  const database = new Database(file);
  database.exec(SCHEMA);
  const events = new EventFile(file, database, undefined, 3);
  /** The outcomes of an append of the first event of each stream. */
  const begin = (...streams: string[]) =>
    events
      .append(streams.flatMap((stream) => [stream, 0, 1, `${stream} 0`, 'Tested', '{}', '{}']))
      .filter((_, at) => at % 3 === 0);
  try {
    expect(begin('first', 'second', 'third', 'fourth', 'first')).toEqual([
      ...Array<number>(4).fill(OUTCOME.written),
      OUTCOME.repeated,
    ]);
    // What is gone from the file behind its back shows which of them it looks up.
    database.exec(`DELETE FROM events WHERE stream IN ('first', 'second', 'third', 'fourth')`);
    expect(begin('first', 'fourth', 'second')).toEqual([OUTCOME.wrongRevision, OUTCOME.wrongRevision, OUTCOME.written]);
  } finally {
    events.close();
    rmSync(folder, { recursive: true });
  }
});
