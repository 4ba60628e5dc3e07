import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import type { EventStore, NewEvent, RecordedEvent } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { LocalKeyEncryption, type KeyEncryption } from '../../src/vault/key-encryption.js';
import { Vault, type VaultPorts } from '../../src/vault/vault.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';

/** A key-encryption key that is one byte over and over. */
export const kekOf = (byte: number): Buffer => Buffer.alloc(32, byte);

export const keysOf = (...bytes: readonly number[]): LocalKeyEncryption =>
  new LocalKeyEncryption(bytes.map(kekOf), new SeededRandomness(`wrapping ${bytes.join()}`));

let vaults = 0;

/** A vault of a coordinator of its own on the store. */
export function vaultOn(
  store: EventStore,
  keyEncryption: KeyEncryption = keysOf(1),
  settings: Pick<VaultPorts, 'cachedBytes' | 'familyOf'> = {},
): Vault & { clock: ManualClock } {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const randomness = new SeededRandomness(`vault ${vaults++}`);
  const vault = new Vault({ store, keyEncryption, clock, randomness, ...settings });
  return Object.assign(vault, { clock });
}

/** Opens a secret and copies it out, which only a test may do. */
export function reveal(vault: Vault, organizationId: string, vaultId: string, name: string): Promise<string> {
  return vault.open({ organizationId, vaultId, name }, (secret) => secret.toString('utf8'));
}

export async function eventsOf(store: EventStore, stream: string): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const event of store.read(stream)) events.push(event);
  return events;
}

/** What an attacker with the store in hands can make: any content with a chain that holds. */
export async function forge(
  store: EventStore,
  stream: string,
  contents: readonly Pick<NewEvent, 'type' | 'data'>[],
): Promise<void> {
  let last = GENESIS_HASH;
  const forged = contents.map(({ type, data }, revision) => {
    const id = crypto.randomUUID();
    const metadata = { at: 0, schemaVersion: 1, $correlationId: stream, $causationId: stream };
    last = chainEvent(last, { stream, revision, id, type, data, metadata });
    return { id, type, data, metadata: { ...metadata, hash: last } };
  });
  await store.append(stream, forged, 'no-stream');
}

/** Stores of each kind, closed and removed by `end`. */
export const stores = {
  'in memory': async () => {
    const store = new InMemoryEventStore();
    return { store, end: () => store.close() };
  },
  'on SQLite': async () => {
    const folder = await mkdtemp(join(tmpdir(), 'countersign-vault-'));
    const store = await SqliteEventStore.open(join(folder, 'events.db'));
    return {
      store,
      async end() {
        await store.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
  'on EventStoreDB': async () => {
    const double = await EventStoreDouble.start();
    const store = await EventStoreDbEventStore.open(double.connectionString);
    return {
      store,
      async end() {
        await store.close();
        await double.stop();
      },
    };
  },
} as const satisfies Record<string, () => Promise<{ store: EventStore; end(): Promise<void> }>>;
