import { jest } from '@jest/globals';
import { BareCoordinator } from './bare-coordinator.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { until } from '../e2e/until.js';

/** Counted, never timed: what a submit to an organization in memory asks of the store and of the rows. */
describe('a submit to an organization that is in memory', () => {
  const store = new SteeredStore();
  let coordinator: BareCoordinator;
  const rename = (userName: string) =>
    coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_UPDATE_USER_NAME', {
      userId: coordinator.root.userId,
      userName,
    });

  beforeAll(async () => {
    // Projections would ask the same database.
    coordinator = await BareCoordinator.start({ store, readModels: false });
    await rename('Before');
  });
  beforeEach(() => {
    store.asked.length = 0;
    coordinator.counts.appends.length = 0;
  });
  afterEach(() => jest.restoreAllMocks());
  afterAll(() => coordinator.close());

  it('reads nothing from the store, appends once, and looks for its fingerprint once', async () => {
    const reads = jest.spyOn(store, 'read');
    const rows = jest.spyOn(coordinator.projecting.rows, 'get');
    for (let count = 1; count <= 5; count++) {
      await rename(`Name ${count}`);
      expect([store.asked.length, reads.mock.calls.length, rows.mock.calls.length]).toEqual([count, 0, count]);
    }
    for (const [sql] of rows.mock.calls) expect(sql).toContain('FROM activity_fingerprints');
    expect(store.asked.map(({ events }) => events.map(({ type }) => type))).toEqual(
      Array.from({ length: 5 }, () => ['ActivitySubmitted', 'UserUpdated', 'ActivityCompleted']),
    );
  });

  it('shares an append with those that came while the one before was on its way', async () => {
    store.hold();
    const before = coordinator.counts.driven;
    const all = Array.from({ length: 20 }, (_, index) => rename(`Together ${index}`));
    await store.until(1);
    await until('all are waiting', () => coordinator.counts.driven === before + 20);
    store.release();
    await Promise.all(all);
    const [first = 0, second = 0, ...more] = coordinator.counts.appends;
    expect([first + second, more]).toEqual([20, []]);
  });

  it('gives the store the JSON of each event, which says what the event says', async () => {
    await rename('Zoë "\\" 🔐 €');
    const [{ events } = { events: [] }] = store.asked;
    expect(events).toHaveLength(3);
    for (const { data, metadata, json } of events) {
      expect(JSON.parse(json?.data ?? '')).toEqual(data);
      expect(JSON.parse(json?.metadata ?? '')).toEqual(metadata);
    }
  });
});
