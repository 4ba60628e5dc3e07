import { join } from 'node:path';
import type { HealthReports } from '../../ports/health.js';
import type { EventReader, EventStore } from '../event-store.js';
import { checkRecordedFormat } from '../store-format.js';
import { InMemoryEventStore } from './in-memory.js';
import { SqliteEventStore } from './sqlite/sqlite.js';

/** The file of the SQLite store in a data folder. */
export function eventsFile(dataDir: string): string {
  return join(dataDir, 'events.db');
}

/** Maximum size of a 2 MiB request body in the log, in bytes: four thirds of it, and what it creates. */
const wantedBytes = 4 * 1024 * 1024;

/** How long a coordinator that starts waits for a remote store, in milliseconds. */
const startWaitMs = 60_000;

/** Reports if the store accepts only smaller requests than the server does, and what to change. */
export async function warnOfLimit(store: EventReader, warn: (message: string) => void): Promise<void> {
  const { EventStoreDbEventStore } = await import('./event-store-db/event-store-db.js');
  if (!(store instanceof EventStoreDbEventStore)) return;
  const refusal = await store.lowerLimit(wantedBytes);
  if (refusal === undefined) return;
  const { limit, setting = 'MaxAppendSize' } = refusal;
  const unit = setting === 'MaxAppendEventSize' ? 'event' : 'append';
  const size = limit === undefined ? 'large requests' : `requests of more than about ${Math.floor(limit / 2)} bytes`;
  const remedy =
    unit === 'event'
      ? 'MaxAppendEventSize (KURRENTDB_MAX_APPEND_EVENT_SIZE)'
      : 'MaxAppendSize (EVENTSTORE_MAX_APPEND_SIZE, of KurrentDB KURRENTDB_MAX_APPEND_SIZE)';
  warn(
    `the event store accepts ${limit ?? `fewer than ${wantedBytes}`} bytes in one ${unit}, so ${size} may be refused: ` +
      `set its ${remedy} to ${wantedBytes}`,
  );
}

/**
 * Opens the store named by EVENT_STORE: `memory:`, `sqlite:` (a file in the data folder, which must exist), or the
 * connection string of an EventStoreDB.
 * @param health learns of what the store notices while it is open
 * @throws {StoreUnavailable} if it is in use by another process, does not respond, has another format, or is not an event store
 */
export async function openEventStore(eventStore: string, dataDir: string, health?: HealthReports): Promise<EventStore> {
  if (eventStore === 'memory:') return new InMemoryEventStore();
  if (eventStore === 'sqlite:') return SqliteEventStore.open(eventsFile(dataDir), health);
  // Its client is large: installations on a file do not wait for it.
  const { EventStoreDbEventStore } = await import('./event-store-db/event-store-db.js');
  // Who takes note of a store that is away also waits for it.
  const store = await EventStoreDbEventStore.open(eventStore, health ? { health, reachWithinMs: startWaitMs } : {});
  try {
    await checkRecordedFormat(store);
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

/** Whether the store has to be told its format (`recordFormat`). A SQLite file has it from its creation. */
export function recordsFormat(eventStore: string): boolean {
  return eventStore.startsWith('esdb');
}

/**
 * Opens the store named by EVENT_STORE for reading only, also while a coordinator runs on it.
 * @throws {StoreUnavailable} if it does not exist, does not respond, has another format, or is not an event store
 */
export async function openForReading(eventStore: string, dataDir: string): Promise<EventReader> {
  if (eventStore === 'sqlite:') return SqliteEventStore.openForReading(eventsFile(dataDir));
  return openEventStore(eventStore, dataDir);
}
