import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { EventFile } from '../../../src/ledger/stores/sqlite/event-file.js';
import { SCHEMA } from '../../../src/ledger/stores/sqlite/schema.js';
import { fieldsOf } from '../../../src/ledger/stores/sqlite/sqlite-protocol.js';

test('a page ends before the events for which it has no room, however many are short before them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'event-file-'));
  const file = join(folder, 'events.db');
  const database = new Database(file);
  database.exec(SCHEMA);
  const events = new EventFile(file, database);
  const stream = 'long';
  // Short and long ones by turns, and one that is longer than a page.
  const sizes = Array.from({ length: 60 }, (_, at) => (at === 7 ? 3_000_000 : at % 2 === 0 ? 10 : 400_000));
  const event = (at: number, size: number) => {
    return { id: `${at}`, type: 'Tested', data: JSON.stringify('x'.repeat(size)), metadata: '{}' };
  };
  const all = (
    read: (from: number) => ReturnType<EventFile['readStream']>,
    next: (fields: readonly unknown[]) => number,
  ) => {
    const found: number[] = [];
    const lengths: number[] = [];
    for (let from = 0, isLast = false; !isLast;) {
      const { rows: joined, last } = read(from);
      const rows = joined.map(fieldsOf);
      found.push(...rows.map((row) => Number(row[2])));
      lengths.push(rows.flat().reduce<number>((sum, text) => sum + String(text).length, 0));
      if (rows.length > 0) from = next(rows.at(-1)!);
      isLast = last;
    }
    expect(found).toEqual(sizes.map((_, at) => at));
    return lengths;
  };
  try {
    for (const [at, size] of sizes.entries()) events.append([{ stream, first: at, events: [event(at, size)] }]);
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
