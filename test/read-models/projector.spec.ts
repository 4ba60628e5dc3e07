import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { Projector } from '../../src/read-models/projector.js';
import type { ReadModel } from '../../src/read-models/read-model.js';

const organizationId = '01890000-0000-7000-8000-000000000000';
const source = { identity: 'test', head: 10n };

function event(position: number): RecordedEvent {
  return {
    stream: `organization-${organizationId}`,
    revision: position,
    position: BigInt(position),
    id: `event ${position}`,
    type: 'ActivityCompleted',
    data: {},
    metadata: { at: 1, schemaVersion: 1, $correlationId: 'a', $causationId: 'a', hash: '0'.repeat(64) },
  };
}

/** Notes each position; fails after the write of `failsAt`. */
function notes(name: string, failsAt: () => bigint | undefined): ReadModel {
  return {
    name,
    version: 1,
    tables: [name],
    schema: `CREATE TABLE ${name} (position INTEGER NOT NULL);`,
    project(rows, events) {
      for (const { position } of events) {
        rows.run(`INSERT INTO ${name} VALUES (?)`, position);
        if (position === failsAt()) throw new Error('no such thing');
      }
    },
  };
}

/** Notes each position, with as much text as half a page has room for. */
const filling = (name: string): ReadModel => ({
  name,
  version: 1,
  tables: [name],
  schema: `CREATE TABLE ${name} (position INTEGER NOT NULL, text TEXT NOT NULL);`,
  project(rows, events) {
    for (const { position } of events) rows.run(`INSERT INTO ${name} VALUES (?, ?)`, position, 'x'.repeat(4_000));
  },
});

/** Makes every row longer in one statement, which SQLite can undo without the rest of the transaction. */
const growing = (name: string): ReadModel => ({
  ...filling(name),
  schema: `CREATE TABLE ${name} (position INTEGER UNIQUE NOT NULL, text TEXT NOT NULL);`,
  project(rows, events) {
    for (const { position } of events) rows.run(`INSERT INTO ${name} VALUES (?, ?)`, position, '');
    rows.run(`UPDATE ${name} SET position = position, text = ?`, 'x'.repeat(4_000));
  },
});

/** Pages that a file may still grow by, as on a disk that is nearly full. */
function leaveRoom(database: ReadModelDatabase, pages: number): void {
  const used = database.get('PRAGMA page_count')!['page_count'];
  database.get(`PRAGMA max_page_count = ${Number(used) + pages}`);
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);

const positions = (database: ReadModelDatabase, name: string): number[] =>
  database.all(`SELECT position FROM ${name} ORDER BY position`).map((row) => Number(row['position']));

describe('the projector', () => {
  it('undoes what a failing model wrote of a batch, stops that model alone, and takes it up after a restart', () => {
    const database = new ReadModelDatabase(':memory:');
    let failsAt: bigint | undefined = 3n;
    const models = [notes('first', () => undefined), notes('failing', () => failsAt), notes('last', () => undefined)];
    const projector = new Projector(database, models, source);
    projector.project([event(1)]);
    const failed = projector.project([event(2), event(3)]);
    expect(failed.map(({ model, checkpoint, failure }) => [model, checkpoint, failure !== undefined])).toEqual([
      ['first', 3n, false],
      ['failing', 1n, true],
      ['last', 3n, false],
    ]);
    expect(positions(database, 'failing')).toEqual([1]);
    expect([positions(database, 'first'), positions(database, 'last')]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);

    failsAt = undefined;
    const again = new Projector(database, models, source);
    expect(again.progress().map(({ checkpoint }) => checkpoint)).toEqual([3n, 1n, 3n]);
    again.project([event(2), event(3)]);
    expect(positions(database, 'failing')).toEqual([1, 2, 3]);
    expect(positions(database, 'first')).toEqual([1, 2, 3]);
    database.close();
  });

  describe.each([
    ['that SQLite undoes whole', filling],
    ['of which SQLite undoes one statement', growing],
  ])('when the disk is full, in a batch %s', (_, model) => {
    const models = [notes('first', () => undefined), model('filling'), notes('last', () => undefined)];
    const everything = range(1, 100);
    let folder: string;
    let file: string;
    let database: ReadModelDatabase;
    let projector: Projector;

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'countersign-projector-'));
      file = join(folder, 'rows.db');
      database = new ReadModelDatabase(file);
      projector = new Projector(database, models, source);
      projector.project([event(1)]);
      leaveRoom(database, 3);
      expect(() => projector.project(range(2, 100).map(event))).toThrow('database or disk is full');
    });

    afterEach(async () => {
      database.close();
      await rm(folder, { recursive: true });
    });

    const rows = () => models.map(({ name }) => positions(database, name));

    it('writes nothing of it, for any model, and takes it again once there is room', () => {
      expect(projector.progress().map(({ checkpoint, failure }) => [checkpoint, failure])).toEqual(
        models.map(() => [1n, undefined]),
      );
      expect(rows()).toEqual([[1], [1], [1]]);
      leaveRoom(database, 1_000);
      const after = projector.project(range(2, 100).map(event));
      expect(after.map(({ checkpoint, failure }) => [checkpoint, failure])).toEqual(
        models.map(() => [100n, undefined]),
      );
      expect(rows()).toEqual([everything, everything, everything]);
    });

    it('a new start takes it again', () => {
      database.close();
      database = new ReadModelDatabase(file);
      const again = new Projector(database, models, { ...source, head: 100n });
      expect(again.progress().map(({ checkpoint }) => checkpoint)).toEqual([1n, 1n, 1n]);
      again.project(range(2, 100).map(event));
      expect(rows()).toEqual([everything, everything, everything]);
    });
  });
});
