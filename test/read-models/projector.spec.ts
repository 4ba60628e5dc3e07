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
});
