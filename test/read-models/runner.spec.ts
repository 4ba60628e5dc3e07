import { organizationStream } from '../../src/domain/organization/organization.js';
import type { EventStore, NewEvent, RecordedEvent, SubscribeOptions } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { readModels } from '../../src/read-models/index.js';
import { projectInMemory, type Projecting } from '../../src/read-models/projecting.js';
import { Projector } from '../../src/read-models/projector.js';
import { ReadModelRunner } from '../../src/read-models/runner.js';
import { until } from '../e2e/until.js';

const organizationId = '0f9d5a5e-0000-4000-8000-000000000001';
const stream = organizationStream(organizationId);

/** Renames of one organization; `size` is the length of each name. */
async function rename(store: EventStore, from: number, count: number, size = 10): Promise<void> {
  const event = (number: number): NewEvent => ({
    id: `event-${number}`,
    type: number === 0 ? 'OrganizationCreated' : 'OrganizationRenamed',
    data: { organizationId, name: String(number).padStart(size, '.') },
    metadata: { at: number, schemaVersion: 1 },
  });
  for (let at = from; at < from + count; at += 500) {
    const events = Array.from({ length: Math.min(500, from + count - at) }, (_, index) => event(at + index));
    await store.append(stream, events, at === 0 ? 'no-stream' : at - 1);
  }
}

/** The real store, which counts what it hands out; the real projections, which a test can hold up or let fail. */
function steered() {
  const inner = new InMemoryEventStore();
  const steering = {
    store: inner,
    delivered: 0,
    batches: [] as number[],
    isHeld: false,
    failures: 0,
    breakFeed: () => undefined as void,
    told: [] as string[],
    feed: new Proxy(inner, {
      get(target, name) {
        if (name !== 'subscribe') return (Reflect.get(target, name) as (() => unknown) | undefined)?.bind(target);
        return (options: SubscribeOptions) => {
          steering.breakFeed = () => {
            void subscription.close();
            options.onError(new Error('the feed broke'));
          };
          const subscription = target.subscribe({
            ...options,
            onEvents: (events) => {
              steering.delivered += events.length;
              return options.onEvents(events);
            },
          });
          return subscription;
        };
      },
    }),
    projecting: undefined as unknown as Projecting,
    runner: undefined as unknown as ReadModelRunner,
    name: () => {
      const row = steering.projecting.rows.get('SELECT doc FROM organizations');
      return (JSON.parse(String(row?.['doc'])) as { name: string }).name;
    },
    async close() {
      steering.isHeld = false;
      await steering.runner.close();
      await steering.projecting.close();
    },
  };
  const real = projectInMemory();
  steering.projecting = {
    rows: real.rows,
    progress: () => real.progress(),
    leftOut: () => real.leftOut(),
    close: () => real.close(),
    async project(events) {
      steering.batches.push(events.length);
      await until('it is free', () => !steering.isHeld);
      if (steering.failures-- > 0) throw new Error('the disk is full');
      await real.project(events);
    },
  };
  steering.runner = newRunner(steering);
  return steering;
}

function newRunner({ feed, projecting, told }: { feed: EventStore; projecting: Projecting; told: string[] }) {
  return new ReadModelRunner(feed, projecting, {
    projected: () => undefined,
    failed: (model, _position, reason) => told.push(`${model}: ${reason}`),
    interrupted: (error) => told.push(String(error)),
  });
}

describe('the runner of the read models', () => {
  it('projects a backlog in large pieces, reading ahead meanwhile, and no further than there is room', async () => {
    const steering = steered();
    await rename(steering.store, 0, 12_000);
    steering.isHeld = true;
    steering.runner.start();
    await until('the next page is read ahead', () => steering.delivered >= steering.batches[0]! + 4_000);
    // Whatever could still come has time to: there is no room for it.
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(steering.delivered).toBeLessThan(steering.batches[0]! + 4_500);

    steering.isHeld = false;
    await until('everything is projected', () => steering.runner.reached() === 12_000n);
    expect(steering.batches[1]).toBeGreaterThanOrEqual(4_000);
    expect(steering.batches.reduce((sum, count) => sum + count)).toBe(12_000);
    expect([steering.name(), steering.told]).toEqual(['.....11999', []]);
    await steering.close();
  });

  it('reads less far ahead when the events are large', async () => {
    const steering = steered();
    await rename(steering.store, 0, 2_000, 20_000);
    steering.isHeld = true;
    steering.runner.start();
    await until('the next page is read ahead', () => steering.delivered >= steering.batches[0]! + 420);
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(steering.delivered).toBeLessThanOrEqual(steering.batches[0]! + 1_000);
    steering.isHeld = false;
    await until('everything is projected', () => steering.runner.reached() === 2_000n);
    await steering.close();
  });

  it('hands over what is large in small batches, which are copied for another thread', async () => {
    const steering = steered();
    await rename(steering.store, 0, 1);
    await rename(steering.store, 1, 10, 400_000);
    steering.runner.start();
    await until('everything is projected', () => steering.runner.reached() === 11n);
    expect(steering.batches).toEqual([4, 3, 3, 1]);
    expect(steering.name()).toBe('10'.padStart(400_000, '.'));
    await steering.close();
  });

  it('goes on after a failure to write, and gives nothing twice and leaves nothing out', async () => {
    const steering = steered();
    await rename(steering.store, 0, 3_000);
    steering.failures = 1;
    steering.runner.start();
    await until('everything is projected', () => steering.runner.reached() === 3_000n);
    expect(steering.told).toEqual(['Error: the disk is full']);
    expect(steering.name()).toBe('......2999');
    await rename(steering.store, 3_000, 5);
    await steering.runner.passed(3_005n, 30_000);
    expect(steering.name()).toBe('......3004');
    await steering.close();
  });

  it('goes on after a broken feed, also with what it had read ahead', async () => {
    const steering = steered();
    await rename(steering.store, 0, 6_000);
    steering.isHeld = true;
    steering.runner.start();
    await until('the next page is read ahead', () => steering.delivered >= steering.batches[0]! + 4_000);
    steering.breakFeed();
    steering.isHeld = false;
    await until('everything is projected', () => steering.runner.reached() === 6_000n);
    expect([steering.name(), steering.told]).toEqual(['......5999', ['Error: the feed broke']]);
    expect(steering.runner.failures()).toEqual([]);
    await steering.close();
  });

  it('can be closed in the middle of a backlog; the next one takes it up where it was', async () => {
    const steering = steered();
    await rename(steering.store, 0, 9_000);
    steering.isHeld = true;
    steering.runner.start();
    await until('the next page is read ahead', () => steering.delivered >= steering.batches[0]! + 4_000);
    const closed = steering.runner.close();
    steering.isHeld = false;
    await closed;
    const reached = steering.runner.reached();
    expect(reached).toBe(BigInt(steering.batches[0]!));
    expect(steering.batches).toHaveLength(1);

    const next = newRunner(steering);
    next.start();
    await next.passed(9_000n, 30_000);
    expect([steering.name(), steering.told]).toEqual(['......8999', []]);
    await next.close();
    await steering.projecting.close();
  });

  it('begins again behind an event that is kept, and once from the start where an older release has left its place', async () => {
    const rows = new ReadModelDatabase(':memory:');
    const projector = () => new Projector(rows, readModels, { identity: 'one', head: 10n });
    const places = (one: Projector) => new Set(one.progress().map(({ resumeAfter }) => resumeAfter));
    const metadata = { at: 0, schemaVersion: 1 };
    const renamed = { id: 'a', type: 'OrganizationCreated', data: { organizationId, name: 'One' }, metadata };
    const sealed = { id: 'b', type: 'SecretSealed', data: {}, metadata };
    const first = projector();
    first.project([
      { ...renamed, stream, revision: 0, position: 4n },
      { ...sealed, stream: 'vault-1', revision: 0, position: 7n },
    ]);
    expect(new Set(first.progress().map(({ checkpoint }) => checkpoint))).toEqual(new Set([7n]));
    expect(places(first)).toEqual(new Set([4n]));
    expect(places(projector())).toEqual(new Set([4n]));
    // What releases before this wrote, whose places may be of events that go away.
    rows.run('UPDATE source SET identity = ?', 'one');
    expect(places(projector())).toEqual(new Set([-1n]));
    rows.close();
  });

  it('keeps models current while another one is rebuilt, whose rows are refused meanwhile', async () => {
    const store = new InMemoryEventStore();
    await rename(store, 0, 9_000);
    const database = new ReadModelDatabase(':memory:');
    const open = () => new Projector(database, readModels, { identity: 'one', head: 9_000n });
    const first: RecordedEvent[] = [];
    for await (const event of store.read(stream)) first.push(event);
    open().project(first);
    database.run("UPDATE checkpoints SET version = version - 1 WHERE model = 'users'");

    const projector = open();
    let isHeld = true;
    const states: string[] = [];
    const runner = new ReadModelRunner(
      store,
      {
        rows: database,
        progress: () => projector.progress(),
        leftOut: () => projector.leftOut(),
        close: () => Promise.resolve(database.close()),
        async project(events, models) {
          if (models?.includes('users')) await until('the rebuild may continue', () => !isHeld);
          projector.project(events, models);
        },
      },
      {
        projected: () => undefined,
        failed: (model) => states.push(`${model} failed`),
        interrupted: (error) => states.push(String(error)),
        rebuild: (state, { models }) => void (state === 'advanced' || states.push(`${state} ${models.join()}`)),
      },
    );
    const name = () => runner.readable(database).get('SELECT doc FROM organizations');
    const users = () => runner.readable(database).all('SELECT * FROM users');
    expect([runner.checkpoint('users'), runner.checkpoint('organizations')]).toEqual([-1n, 9_000n]);
    runner.start();
    await until('the rebuild is noticed', () => states.length > 0);
    await runner.current(9_000n);
    expect(String(name()?.['doc'])).toContain('......8999');
    expect(users).toThrow('read models are being rebuilt from the events, 0 % done (users): try again later');

    isHeld = false;
    await rename(store, 9_000, 5);
    await runner.passed(9_005n, 30_000);
    expect(String(name()?.['doc'])).toContain('......9004');
    expect(users()).toEqual([]);
    expect(states).toEqual(['started users', 'ended users']);
    await runner.close();
    database.close();
  });

  it('lets whoever waits not wait for company', async () => {
    const steering = steered();
    steering.runner.start();
    await rename(steering.store, 0, 3);
    await steering.runner.passed(3n, 30_000);
    expect(steering.name()).toBe('.........2');
    await expect(steering.runner.passed(4n, 20)).rejects.toThrow('the read models have not reached position 4');
    await steering.close();
  });
});
