import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';

/** Streams in the order of the store, as they were recorded; without those of vaults. */
export async function storeOf(events: readonly RecordedEvent[]): Promise<InMemoryEventStore> {
  const store = new InMemoryEventStore();
  const heads = new Map<string, number>();
  for (const { stream, id, type, data, metadata } of events) {
    if (stream.startsWith('vault-')) continue;
    const { revision } = await store.append(stream, [{ id, type, data, metadata }], heads.get(stream) ?? 'no-stream');
    heads.set(stream, revision);
  }
  return store;
}
