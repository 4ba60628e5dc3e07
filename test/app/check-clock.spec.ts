import { checkClock } from '../../src/app/check-clock.js';
import { bootStream } from '../../src/domain/boots.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { Projector } from '../../src/read-models/projector.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { id } from '../activities/given.js';

const at = Date.UTC(2026, 0, 1);
const stream = organizationStream(id(1));

const nothing = { name: 'nothing', version: 1, tables: [], schema: '', project: () => undefined };

/** A store with a boot, and a later event of an organization that the rows have. */
async function used() {
  const store = new InMemoryEventStore();
  const event = (name: string, time: number) => ({
    id: name,
    type: name,
    data: {},
    metadata: { at: time, schemaVersion: 1 },
  });
  await store.append(bootStream, [event('first', at + 90_000), event('boot', at)], 'no-stream');
  const { position } = await store.append(stream, [event('Something', at + 60_000)], 'no-stream');
  const rows = new ReadModelDatabase(':memory:');
  const projector = new Projector(rows, [nothing], { identity: 'one', head: position });
  for await (const recorded of store.read(stream)) projector.project([recorded]);
  return { store, rows };
}

test.each([
  ['the last event in the rows', true, at + 60_000],
  ['the last boot', false, at],
])('a clock may be five seconds behind %s, and no more', async (_, isProjected, last) => {
  const { store, rows } = await used();
  if (!isProjected) rows.run('DELETE FROM last_projected');
  const check = (now: number) => checkClock(new ManualClock(now), store, rows);
  await check(last - 5_000);
  await expect(check(last - 5_001)).rejects.toThrow(
    `the clock (${new Date(last - 5_001).toISOString()}) is 6 s behind what was recorded here (${new Date(last).toISOString()})`,
  );
});

test('where nothing was recorded yet, any clock will do', async () => {
  const rows = new ReadModelDatabase(':memory:');
  new Projector(rows, [], { identity: 'one', head: -1n });
  await checkClock(new ManualClock(0), new InMemoryEventStore(), rows);
});
