import { InMemoryEventStore } from '../../../src/ledger/stores/in-memory.js';
import { eventStoreContract } from '../../contracts/event-store.contract.js';

eventStoreContract('the in-memory event store', async () => {
  const store = new InMemoryEventStore();
  return { store, cleanup: () => store.close() };
});
