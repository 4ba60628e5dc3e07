import { join } from 'node:path';
import type { EventReader, EventStore } from '../event-store.js';
import { InMemoryEventStore } from './in-memory.js';
import { SqliteEventStore } from './sqlite/sqlite.js';

/** The file of the SQLite store in a data folder. */
export function eventsFile(dataDir: string): string {
  return join(dataDir, 'events.db');
}

/** Maximum size of a 2 MiB request body in the log, in bytes: four thirds of it, and what it creates. */
const wantedBytes = 4 * 1024 * 1024;

/** Reports if the store accepts only smaller requests than the server does, and what to change. */
export async function warnOfLimit(store: EventReader, warn: (message: string) => void): Promise<void> {
  const { EventStoreDbEventStore } = await import('./event-store-db/event-store-db.js');
  if (!(store instanceof EventStoreDbEventStore)) return;
  const limit = await store.lowerLimit(wantedBytes);
  if (limit === undefined) return;
  warn(
    `the event store accepts ${limit} bytes in one append, so requests of more than about ` +
      `${Math.floor(limit / 2)} bytes may be refused: set its MaxAppendSize (EVENTSTORE_MAX_APPEND_SIZE) to ${wantedBytes}`,
  );
}

/**
 * Opens the store named by EVENT_STORE: `memory:`, `sqlite:` (a file in the data folder, which must exist), or the
 * connection string of an EventStoreDB.
 * @throws {StoreUnavailable} if it is in use by another process, does not respond, or is not an event store
 */
export async function openEventStore(eventStore: string, dataDir: string): Promise<EventStore> {
  if (eventStore === 'memory:') return new InMemoryEventStore();
  if (eventStore === 'sqlite:') return SqliteEventStore.open(eventsFile(dataDir));
  // Its client is large: installations on a file do not wait for it.
  const { EventStoreDbEventStore } = await import('./event-store-db/event-store-db.js');
  return EventStoreDbEventStore.open(eventStore);
}

/**
 * Opens the store named by EVENT_STORE for reading only, also while a coordinator runs on it.
 * @throws {StoreUnavailable} if it does not exist, does not respond, or is not an event store
 */
export async function openForReading(eventStore: string, dataDir: string): Promise<EventReader> {
  if (eventStore === 'sqlite:') return SqliteEventStore.openForReading(eventsFile(dataDir));
  return openEventStore(eventStore, dataDir);
}
