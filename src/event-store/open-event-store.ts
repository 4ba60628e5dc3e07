import { join } from 'node:path';
import type { EventStore } from './event-store.js';
import { InMemoryEventStore } from './in-memory.js';
import { SqliteEventStore } from './sqlite.js';

/** The file of the SQLite store in a data folder. */
export function eventsFile(dataDir: string): string {
  return join(dataDir, 'events.db');
}

/**
 * Opens the store that EVENT_STORE names: `memory:`, `sqlite:` (a file in the data folder, which must exist), or the
 * connection string of an EventStoreDB.
 * @throws {StoreUnavailable} when it is in use by another process, does not answer, or is no event store
 */
export async function openEventStore(eventStore: string, dataDir: string): Promise<EventStore> {
  if (eventStore === 'memory:') return new InMemoryEventStore();
  if (eventStore === 'sqlite:') return SqliteEventStore.open(eventsFile(dataDir));
  // Its client is large: who keeps events in a file does not wait for it.
  const { EventStoreDbEventStore } = await import('./event-store-db.js');
  return EventStoreDbEventStore.open(eventStore);
}
