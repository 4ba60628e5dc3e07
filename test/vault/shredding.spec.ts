import { createCoordinator, type Coordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { RetryingDelivery } from '../../src/delivery/retrying.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { EventStore } from '../../src/ledger/event-store.js';
import { StoreUnavailable } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { createLogger } from '../../src/logging/logger.js';
import { install, type RootCredentials } from '../../src/app/installation.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { apiKeyPairFromPrivate, StampingClient } from '../../src/testing/index.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { CapturedMessages } from '../../src/testing/captured-messages.js';
import { VaultDestroyer } from '../../src/vault/destroy-vaults.js';
import { until } from '../e2e/until.js';
import { eventsOf, keysOf, stores, vaultOn } from './world.js';

/** A store that deletes nothing while it is told so, and that outlives the coordinators on it. */
class HesitantStore implements EventStore {
  readonly exclusive = true;
  deletesFail = false;
  readonly asked: string[] = [];

  constructor(private readonly inner: EventStore) {}

  append(...args: Parameters<EventStore['append']>) {
    return this.inner.append(...args);
  }

  read(...args: Parameters<EventStore['read']>) {
    return this.inner.read(...args);
  }

  last(...args: Parameters<EventStore['last']>) {
    return this.inner.last(...args);
  }

  subscribe(...args: Parameters<EventStore['subscribe']>) {
    return this.inner.subscribe(...args);
  }

  head() {
    return this.inner.head();
  }

  async delete(stream: string): Promise<void> {
    this.asked.push(stream);
    if (this.deletesFail) throw new StoreUnavailable('the store deletes nothing now');
    await this.inner.delete(stream);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

describe('after a crash between the record of a deletion and the shredding', () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  let root: Omit<RootCredentials, 'apiUrl'> | undefined;

  async function start(store: EventStore, seed: string): Promise<{ coordinator: Coordinator; client: StampingClient }> {
    const config = readConfig({ PORT: '0' });
    const randomness = new SeededRandomness(seed);
    await install(config, { store, clock, randomness }, root, (made) => {
      root = made;
      return Promise.resolve();
    });
    const coordinator = await createCoordinator(config, {
      store,
      clock,
      randomness,
      keyEncryption: keysOf(1),
      delivery: new RetryingDelivery({ email: new CapturedMessages(), sms: new CapturedMessages() }, () => undefined),
      logger: createLogger('silent'),
      projecting: projectInMemory(),
    });
    await coordinator.app.listen(0, '127.0.0.1');
    const url = await coordinator.app.getUrl();
    return {
      coordinator,
      client: new StampingClient(url, root!.organizationId, apiKeyPairFromPrivate(root!.apiPrivateKey!), clock),
    };
  }

  it.each(Object.entries(stores))('the next start shreds what was left behind, %s', async (_kind, make) => {
    root = undefined;
    const { store: inner, end } = await make();
    const store = new HesitantStore(inner);
    const first = await start(store, 'first');
    const create = async (walletName: string) => {
      const { result } = await first.client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts: [] });
      return (result['createWalletResult'] as { walletId: string }).walletId;
    };
    const walletIds = [await create('one'), await create('two'), await create('kept')];
    const created = (await eventsOf(store, organizationStream(root!.organizationId))).filter(
      ({ type }) => type === 'WalletCreated',
    );
    const vaults = created.map(({ data }) => `vault-${(data as { vaultId: string }).vaultId}`);

    store.deletesFail = true;
    const { status } = await first.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', {
      walletIds: walletIds.slice(0, 2),
      deleteWithoutExport: true,
    });
    expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect([...store.asked].sort()).toEqual(vaults.slice(0, 2).sort());
    await first.coordinator.close();
    for (const vault of vaults) expect((await eventsOf(store, vault)).length).toBeGreaterThan(0);

    store.deletesFail = false;
    const second = await start(store, 'second');
    await until('both are gone', async () => {
      const left = await Promise.all(vaults.slice(0, 2).map((vault) => eventsOf(store, vault)));
      return left.every((events) => events.length === 0);
    });
    expect((await eventsOf(store, vaults[2]!)).length).toBeGreaterThan(0);
    await second.coordinator.close();

    // What is gone is not deleted over and over.
    store.asked.length = 0;
    const third = await start(store, 'third');
    await until('the read models are there', async () => (await third.client.query('list_wallets')) !== undefined);
    await third.coordinator.close();
    expect(store.asked).toEqual([]);
    await end();
  });
});

describe('a shredder', () => {
  const silent = { error: () => undefined, warn: () => undefined };

  async function furnished(vaultIds: readonly string[]) {
    const store = new HesitantStore(new InMemoryEventStore());
    const vault = vaultOn(store);
    for (const vaultId of vaultIds) await vault.seal(vaultId, 'org', [{ name: 'key', secret: Buffer.from('secret') }]);
    const left = async () => {
      const all = await Promise.all(vaultIds.map((vaultId) => eventsOf(store, `vault-${vaultId}`)));
      return vaultIds.filter((_, index) => all[index]!.length > 0);
    };
    return { store, vault, left };
  }

  it('tries again by itself what the store did not do', async () => {
    const { store, vault, left } = await furnished(['a', 'b', 'c']);
    const failed: string[] = [];
    const shredder = new VaultDestroyer(
      vault,
      { ...silent, error: ({ vaultId }: { vaultId: string }) => failed.push(vaultId) },
      5,
    );
    store.deletesFail = true;
    await Promise.all([shredder.shred('a'), shredder.shred('b')]);
    expect(failed).toEqual(['a', 'b']);
    await until('it has tried again', () => failed.length >= 6);
    expect(await left()).toEqual(['a', 'b', 'c']);
    store.deletesFail = false;
    await until('both are gone', async () => (await left()).length === 1);
    expect(await left()).toEqual(['c']);
    await shredder.close();
  });

  it('goes on after one that fails, and says what was left behind', async () => {
    const { store, vault, left } = await furnished(['a', 'b', 'c']);
    const caughtUp: string[] = [];
    const failed: string[] = [];
    const logger = {
      ...silent,
      error: ({ vaultId }: { vaultId: string }) => {
        failed.push(vaultId);
        store.deletesFail = false;
      },
      warn: ({ vaultId }: { vaultId: string }) => void caughtUp.push(vaultId),
    };
    const shredder = new VaultDestroyer(vault, logger, 5);
    store.deletesFail = true;
    shredder.sweep(
      () => Promise.resolve(),
      () => ['never there', 'a', 'b', 'gone'],
    );
    await until('both are gone', () => caughtUp.length === 2);
    expect(failed).toEqual(['a']);
    expect(caughtUp.sort()).toEqual(['a', 'b']);
    expect(await left()).toEqual(['c']);
    expect(store.asked).not.toContain('vault-never there');
    await shredder.close();
  });

  it('reports a list that breaks off, and ends no process by it', async () => {
    const { vault } = await furnished([]);
    const stopped: unknown[] = [];
    const shredder = new VaultDestroyer(
      vault,
      { ...silent, error: ({ err }: { err: unknown }) => stopped.push(err) },
      5,
    );
    const failure = new Error('no rows');
    const breaking = function* (): Generator<string> {
      yield 'a';
      throw failure;
    };
    shredder.sweep(() => Promise.resolve(), breaking);
    await until('it is reported', () => stopped.length > 0);
    expect(stopped).toEqual([failure]);
    await shredder.close();
  });

  it('ends at once when it is closed, whatever it waits for', async () => {
    const { store, vault, left } = await furnished(['a']);
    const shredder = new VaultDestroyer(vault, silent, 5);
    shredder.sweep(
      (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      () => ['a'],
    );
    store.deletesFail = true;
    await shredder.shred('a');
    await shredder.close();
    store.deletesFail = false;
    const { length } = store.asked;
    // In the time that one which is not closed tries it several times.
    const other = await furnished(['b']);
    other.store.deletesFail = true;
    const open = new VaultDestroyer(other.vault, silent, 5);
    await open.shred('b');
    await until('another one has tried again', () => other.store.asked.length >= 5);
    await open.close();
    expect(store.asked).toHaveLength(length);
    expect(await left()).toEqual(['a']);
  });

  it('looks at a great many in little time, and leaves off where nothing is to be expected', async () => {
    const { store, vault, left } = await furnished(['far behind']);
    let taken = 0;
    const many = function* (): Generator<string> {
      for (; taken < 10_000; taken++) yield `gone ${taken}`;
      yield 'far behind';
    };
    const shredder = new VaultDestroyer(
      { isThere: () => Promise.resolve(false), shred: (id) => vault.shred(id) },
      silent,
    );
    shredder.sweep(() => Promise.resolve(), many);
    await until('it has looked at all', () => taken === 10_000);
    await shredder.close();
    expect([store.asked, await left()]).toEqual([[], ['far behind']]);
  });
});
