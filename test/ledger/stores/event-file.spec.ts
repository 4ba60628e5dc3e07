import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { EventFile } from '../../../src/ledger/stores/sqlite/event-file.js';
import { SCHEMA } from '../../../src/ledger/stores/sqlite/schema.js';
import { FIELDS_PER_ROW, OUTCOME, SEPARATOR } from '../../../src/ledger/stores/sqlite/sqlite-protocol.js';

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

test('a page ends before the events for which it has no room, however many are short before them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'event-file-'));
  const file = join(folder, 'events.db');
  const database = new Database(file);
  database.exec(SCHEMA);
  const events = new EventFile(file, database, undefined);
  const stream = 'long';
  // Short and long ones by turns, and one that is longer than a page.
  const sizes = Array.from({ length: 60 }, (_, at) => (at === 7 ? 3_000_000 : at % 2 === 0 ? 10 : 400_000));
  const fields = sizes.flatMap((size, at) => [
    stream,
    at,
    1,
    `${at}`,
    'Tested',
    JSON.stringify('x'.repeat(size)),
    '{}',
  ]);
  const all = (
    read: (from: number) => ReturnType<EventFile['readStream']>,
    next: (fields: readonly unknown[]) => number,
  ) => {
    const found: number[] = [];
    const lengths: number[] = [];
    for (let from = 0, isLast = false; !isLast;) {
      const { runs, last } = read(from);
      const texts = runs.flatMap((run) => (typeof run === 'string' ? run.split(SEPARATOR) : run));
      const rows = Array.from({ length: texts.length / FIELDS_PER_ROW }, (_, at) =>
        texts.slice(at * FIELDS_PER_ROW, (at + 1) * FIELDS_PER_ROW),
      );
      found.push(...rows.map((row) => Number(row[2])));
      lengths.push(texts.reduce<number>((sum, text) => sum + String(text).length, 0));
      if (rows.length > 0) from = next(rows.at(-1)!);
      isLast = last;
    }
    expect(found).toEqual(sizes.map((_, at) => at));
    return lengths;
  };
  try {
    for (let at = 0; at < fields.length; at += 7) events.append(fields.slice(at, at + 7));
    for (const lengths of [
      all(
        (from) => events.readStream(stream, from),
        (row) => Number(row[2]) + 1,
      ),
      all(
        (after) => events.readAll(after),
        (row) => Number(row[0]),
      ),
    ]) {
      expect(lengths.filter((length) => length > 1.1 * 2 ** 20)).toEqual([expect.closeTo(3_000_000, -4)]);
      expect(lengths.length).toBeLessThan(25);
    }
  } finally {
    events.close();
    rmSync(folder, { recursive: true });
  }
});
