import { mkdir } from 'node:fs/promises';
import type { EventStore } from '../../src/ledger/event-store.js';
import { eventsFile } from '../../src/ledger/stores/open-event-store.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import type { TestCoordinator } from '../../src/testing/index.js';

/** What a coordinator has recorded, without its vaults unless they are asked for, in another store. */
export async function copyTo(
  store: EventStore,
  coordinator: TestCoordinator,
  { withVaults = false } = {},
): Promise<void> {
  const heads = new Map<string, number>();
  for (const { stream, id, type, data, metadata } of await coordinator.recorded()) {
    if (!withVaults && stream.startsWith('vault-')) continue;
    const { revision } = await store.append(stream, [{ id, type, data, metadata }], heads.get(stream) ?? 'no-stream');
    heads.set(stream, revision);
  }
}

/** The same, as the data folder of a coordinator that is stopped. */
export async function copyToFolder(
  folder: string,
  coordinator: TestCoordinator,
  options: { readonly withVaults?: boolean } = {},
): Promise<void> {
  await mkdir(folder);
  const store = await SqliteEventStore.open(eventsFile(folder));
  await copyTo(store, coordinator, options);
  await store.close();
}
