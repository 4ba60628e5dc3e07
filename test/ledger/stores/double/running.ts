import {
  EventStoreDbEventStore,
  type EventStoreDbOptions,
} from '../../../../src/ledger/stores/event-store-db/event-store-db.js';
import { EventStoreDouble } from './double.js';

/** Starts doubles and stores on them for the tests of a file; what a test has started ends with it. */
export function runningDoubles(patience: EventStoreDbOptions) {
  const doubles: EventStoreDouble[] = [];
  const stores: EventStoreDbEventStore[] = [];

  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    for (const each of doubles.splice(0)) await each.stop();
  });

  return {
    async aDouble(log?: EventStoreDouble['log']): Promise<EventStoreDouble> {
      const started = await EventStoreDouble.start(log);
      doubles.push(started);
      return started;
    },
    async storeAt(url: string, options: EventStoreDbOptions = {}): Promise<EventStoreDbEventStore> {
      const store = await EventStoreDbEventStore.open(url, { ...patience, ...options });
      stores.push(store);
      return store;
    },
  };
}
