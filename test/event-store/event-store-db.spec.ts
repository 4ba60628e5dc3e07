import { randomUUID } from 'node:crypto';
import { EventStoreDbEventStore } from '../../src/event-store/event-store-db.js';
import { eventStoreContract } from '../contracts/event-store.contract.js';
import { EventStoreDouble } from './double/double.js';

/** A real server to run the contract against instead of the double, such as `esdb://localhost:2113?tls=false`. */
const realServer = process.env['EVENT_STORE_URL'];

for (const appendMode of ['classic', 'batch'] as const) {
  eventStoreContract(`the EventStoreDB event store (${appendMode} appends)`, async () => {
    const double = realServer === undefined ? await EventStoreDouble.start() : undefined;
    const open = (): Promise<EventStoreDbEventStore> =>
      EventStoreDbEventStore.open(double?.connectionString ?? realServer ?? '', { appendMode });
    const store = await open();
    const opened = [store];
    return {
      store,
      reopen: async () => {
        await store.close();
        const again = await open();
        opened.push(again);
        return again;
      },
      cleanup: async () => {
        for (const each of opened) await each.close();
        if (double !== undefined) expect(double.appends[appendMode === 'batch' ? 'classic' : 'batch']).toBe(0);
        await double?.stop();
      },
    };
  });
}
void randomUUID;
