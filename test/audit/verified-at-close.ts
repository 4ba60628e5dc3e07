import type { EventStore } from '../../src/ledger/event-store.js';

// Runs before every spec file: each store that a spec of test/e2e has made a coordinator fill is verified when the coordinator
// closes it. What is found fails the test, or the hook, that has closed it.

/** What takes the hook of the spec before out: the spec files of a worker share the classes (docs/adr/0032). */
const takeOut = Symbol.for('countersign: verify no store at its close');
const shared = globalThis as { [takeOut]?: () => void };

let isSpared = false;

/** For specs that plant damage, and say what comes of it themselves. */
export function verifyNothingAtClose(): void {
  isSpared = true;
}

async function verified(store: EventStore): Promise<void> {
  const { activities } = await import('../../src/activities/index.js');
  const { buildRegistry } = await import('../../src/decide/registry.js');
  const { verifyHistory } = await import('../../src/audit/verify/verify.js');
  const { findings } = await verifyHistory(store, { registry: buildRegistry(activities) });
  if (findings.length === 0) return;
  const said = findings.map(({ stream, revision, problem }) => `${stream} @ ${revision}: ${problem}`);
  throw new Error(`what was recorded does not verify:\n${said.join('\n')}`);
}

beforeAll(async () => {
  shared[takeOut]?.();
  if (!expect.getState().testPath?.includes('/test/e2e/')) return;
  const { InMemoryEventStore } = await import('../../src/ledger/stores/in-memory.js');
  const { SqliteEventStore } = await import('../../src/ledger/stores/sqlite/sqlite.js');
  const stores = [InMemoryEventStore.prototype, SqliteEventStore.prototype];
  const closes = stores.map(({ close }) => close);
  shared[takeOut] = () => stores.forEach((store, index) => (store.close = closes[index]!));
  for (const store of stores) {
    const verifiedStores = new WeakSet<EventStore>();
    store.close = new Proxy(store.close, {
      async apply(close, self: EventStore) {
        const isFirst = !verifiedStores.has(self);
        verifiedStores.add(self);
        try {
          if (isFirst && !isSpared) await verified(self);
        } finally {
          await Reflect.apply(close, self, []);
        }
      },
    });
  }
});
