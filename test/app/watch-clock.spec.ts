import { SteadyClock } from '../../src/app/world.js';
import { continueFromRecorded, watchClock } from '../../src/app/watch-clock.js';
import { bootStream } from '../../src/domain/boots.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { createLogger } from '../../src/logging/logger.js';
import { logConditions } from '../../src/logging/log-conditions.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { Health } from '../../src/ports/health.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { Projector } from '../../src/read-models/projector.js';
import { id } from '../activities/given.js';
import { until } from '../e2e/until.js';
import { Writable } from 'node:stream';

const at = Date.UTC(2026, 0, 1);
const stream = organizationStream(id(1));
const minute = 60_000;

const nothing = { name: 'nothing', version: 1, tables: [], schema: '', project: () => undefined };

/** Two clocks that are steered apart. */
function clocks(wall = at) {
  const time = { wall, monotonic: 0 };
  const clock = new SteadyClock(
    () => time.wall,
    () => time.monotonic,
  );
  return { clock, time };
}

function logged() {
  const lines: { readonly level: number; readonly msg: string; readonly organizationId?: string }[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of String(chunk).trim().split('\n')) lines.push(JSON.parse(line) as (typeof lines)[number]);
      done();
    },
  });
  return { lines, logger: createLogger('info', log) };
}

/** A store with a boot, and a later event of an organization that the rows have. */
async function used() {
  const store = new InMemoryEventStore();
  const event = (name: string, time: number) => ({
    id: name,
    type: name,
    data: {},
    metadata: { at: time, schemaVersion: 1 },
  });
  await store.append(bootStream, [event('first', at + 9 * minute), event('boot', at)], 'no-stream');
  const { position } = await store.append(stream, [event('Something', at + 6 * minute)], 'no-stream');
  const rows = new ReadModelDatabase(':memory:');
  const projector = new Projector(rows, [nothing], { identity: 'one', head: position });
  for await (const recorded of store.read(stream)) projector.project([recorded]);
  return { store, rows };
}

test.each([
  ['the last event in the rows', true, at + 6 * minute],
  ['the last boot', false, at],
])('a start continues from %s, if it is at most 30 minutes ahead', async (what, isProjected, last) => {
  const { store, rows } = await used();
  const { lines, logger } = logged();
  if (!isProjected) rows.run('DELETE FROM last_projected');
  const near = clocks(last - 30 * minute).clock;
  await continueFromRecorded(near, store, rows, logger);
  expect([near.now(), lines]).toEqual([last, []]);

  const far = clocks(last - 30 * minute - 1).clock;
  await continueFromRecorded(far, store, rows, logger);
  expect([what, far.now() < last, lines.length]).toEqual([what, true, 1]);
  expect(lines[0]).toMatchObject({
    level: 40,
    msg: expect.stringContaining('1801 s behind what was recorded') as string,
  });
  expect([...far.state().organizationsAhead.keys()]).toEqual(isProjected ? [id(1)] : []);
});

test('where nothing was recorded yet, any clock will do', async () => {
  const rows = new ReadModelDatabase(':memory:');
  new Projector(rows, [], { identity: 'one', head: -1n });
  const { lines, logger } = logged();
  await continueFromRecorded(clocks(0).clock, new InMemoryEventStore(), rows, logger);
  expect(lines).toEqual([]);
});

test('what the clock notices is a condition, with one line at its start and one at its end', async () => {
  const { clock, time } = clocks();
  const { lines, logger } = logged();
  const health = new Health(logConditions(logger));
  const end = watchClock(clock, { health, logger, everyMs: 5 });
  const becomes = (...names: readonly string[]) =>
    until(`it is ${names.join()}`, () => String(health.conditions().map(({ name }) => name)) === String(names));
  try {
    time.wall += 20 * minute;
    await until('the step is told of', () => lines.length === 1);
    expect(lines[0]).toMatchObject({ level: 40, stepMs: 20 * minute });

    time.wall += 60 * minute;
    await becomes('clock-stepped-ahead');
    expect(health.conditions()[0]).toMatchObject({
      severity: 'failing',
      message: expect.stringContaining('by 3600 s') as string,
    });
    time.monotonic += 60_000;
    time.wall += 60_000;
    await becomes();

    time.wall -= 10 * minute;
    await becomes('clock-behind');
    time.wall += 10 * minute;
    await becomes();

    clock.follow(clock.now() + 24 * 60 * minute, id(1));
    await becomes('organizations-ahead');
    const [condition] = health.conditions();
    expect(condition).toMatchObject({ severity: 'degraded' });
    expect(condition!.message).not.toContain(id(1));
    expect(lines.filter(({ organizationId }) => organizationId === id(1))).toHaveLength(1);
    clock.caughtUp(id(1));
    await becomes();
    expect(lines.map(({ level }) => level)).toEqual([40, 40, 30, 40, 30, 40, 40, 30]);
  } finally {
    end();
  }
});
