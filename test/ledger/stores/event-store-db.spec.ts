import { EventStoreDbEventStore } from '../../../src/ledger/stores/event-store-db/event-store-db.js';
import type { EventStore } from '../../../src/ledger/event-store.js';
import { eventStoreContract, type StoreUnderTest } from '../../contracts/event-store.contract.js';
import { EventStoreDouble } from './double/double.js';

/** A real server to run the contract against instead of the double, such as `esdb://127.0.0.1:2113?tls=false`. */
const realServer = process.env['EVENT_STORE_URL'];

for (const appendMode of ['classic', 'batch'] as const) {
  const underTest = async (mode: typeof appendMode = appendMode): Promise<StoreUnderTest> => {
    const double = realServer === undefined ? await EventStoreDouble.start() : undefined;
    // One of the two each, so that it takes no longer.
    if (double !== undefined) double.version = mode === 'batch' ? '23.10' : '24.10';
    const opened: EventStoreDbEventStore[] = [];
    const open = async (): Promise<EventStoreDbEventStore> => {
      const store = await EventStoreDbEventStore.open(double?.connectionString ?? realServer ?? '', {
        appendMode: mode,
      });
      opened.push(store);
      return store;
    };
    const store = await open();
    return {
      store: double === undefined ? await startingHere(store) : store,
      reopen: async () => {
        await store.close();
        return open();
      },
      cleanup: async () => {
        for (const each of opened) await each.close();
        await double?.stop();
        if (double !== undefined) expect(double.appends[mode === 'batch' ? 'classic' : 'batch']).toBe(0);
      },
    };
  };
  // A process may have one server only that it appends to in batches.
  eventStoreContract(`the EventStoreDB event store (${appendMode} appends)`, underTest, () => underTest('classic'));
}

/** A real server has the events of earlier tests: its start, for a test, is where the test found it. */
async function startingHere(store: EventStore): Promise<EventStore> {
  const here = (await store.head()) ?? 'start';
  return {
    exclusive: store.exclusive,
    append: (...args) => store.append(...args),
    read: (...args) => store.read(...args),
    last: (...args) => store.last(...args),
    subscribe: (options) => store.subscribe({ ...options, after: options.after === 'start' ? here : options.after }),
    head: () => store.head(),
    delete: (stream) => store.delete(stream),
    close: () => store.close(),
  };
}
