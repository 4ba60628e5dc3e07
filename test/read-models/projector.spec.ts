import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chainEvent, type EventMetadata } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { lastProjected, Projector } from '../../src/read-models/projector.js';
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

/** Events 1 to `last` of a stream, each of which follows from the one before it. */
function chainedEvents(last: number): RecordedEvent[] {
  let hash = '0'.repeat(64);
  return range(1, last).map((position) => {
    const { metadata, ...rest } = event(position);
    const { hash: _hash, ...chained } = metadata as EventMetadata;
    hash = chainEvent(hash, { ...rest, metadata: chained });
    return { ...rest, metadata: { ...chained, hash } };
  });
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
    const [one, two, three] = chainedEvents(3) as [RecordedEvent, RecordedEvent, RecordedEvent];
    projector.project([one]);
    const failed = projector.project([two, three]);
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
    again.project([two, three]);
    expect(positions(database, 'failing')).toEqual([1, 2, 3]);
    expect(positions(database, 'first')).toEqual([1, 2, 3]);
    database.close();
  });

  it('stops no model where SQLite can open no more files, and takes the batch again', () => {
    const database = new ReadModelDatabase(':memory:');
    let hasHandles = false;
    const opening: ReadModel = {
      ...notes('opening', () => undefined),
      project(rows, events) {
        notes('opening', () => undefined).project(rows, events);
        if (!hasHandles) rows.run("ATTACH '/no/such/folder/file' AS more");
      },
    };
    const projector = new Projector(database, [notes('first', () => undefined), opening], source);
    expect(() => projector.project([event(1)])).toThrow('unable to open database');
    hasHandles = true;
    expect(projector.project([event(1)]).map(({ failure }) => failure)).toEqual([undefined, undefined]);
    expect([positions(database, 'first'), positions(database, 'opening')]).toEqual([[1], [1]]);
    database.close();
  });

  it.each([
    ['of a newer release', { metadata: { ...(event(3).metadata as object), schemaVersion: 99 } }, 'start the release'],
    ['without metadata', { metadata: null }, 'the schema version `undefined`'],
    ['of a vault, without data', { stream: 'vault-1', type: 'SecretSealed', data: null }, 'Cannot destructure'],
  ])('leaves out an event %s, and says so once, also after a restart', (_, changes, why) => {
    const database = new ReadModelDatabase(':memory:');
    const models = [notes('first', () => undefined), notes('last', () => undefined)];
    const projector = new Projector(database, models, source);
    const unreadable = { ...event(3), ...changes };
    projector.project([event(1), event(2), unreadable, event(4)]);
    projector.project([{ ...unreadable, revision: 5, position: 5n }]);
    for (const one of [projector, new Projector(database, models, source)]) {
      expect(one.leftOut()).toEqual([
        {
          organizationId: unreadable.stream === 'vault-1' ? '' : organizationId,
          stream: unreadable.stream,
          revision: 3,
          position: 3n,
          reason: expect.stringContaining(why) as string,
        },
      ]);
      expect(one.progress().map(({ failure }) => failure)).toEqual([undefined, undefined]);
    }
    for (const { name } of models) expect(positions(database, name)).toEqual([1, 2, 4]);
    // What cannot be read is no place to resume from.
    expect(lastProjected(database)?.position).toBe(4n);
    database.close();
  });

  it('leaves out an altered event that no model can project, and of what follows only what makes no sense', () => {
    const database = new ReadModelDatabase(':memory:');
    const failing = notes('failing', () => undefined);
    const models: readonly ReadModel[] = [
      notes('first', () => undefined),
      {
        ...failing,
        project(rows, events) {
          failing.project(rows, events);
          if (events.some(({ position }) => position === 3n || position === 5n)) throw new Error('no such thing');
        },
      },
    ];
    const projector = new Projector(database, models, source);
    const events = chainedEvents(6).map((one) => (one.position === 3n ? { ...one, data: { altered: true } } : one));
    const other = { ...event(7), stream: 'organization-01890000-0000-7000-8000-000000000001' };
    const progress = projector.project([...events, other]);
    expect(progress.map(({ checkpoint, failure }) => [checkpoint, failure])).toEqual([
      [7n, undefined],
      [7n, undefined],
    ]);
    expect(projector.leftOut()).toMatchObject([{ organizationId, revision: 3, position: 3n }]);
    expect(positions(database, 'first')).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(positions(database, 'failing')).toEqual([1, 2, 4, 6, 7]);
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
