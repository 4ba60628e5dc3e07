import { OrphanedVaults } from '../../src/coordinator/orphaned-vaults.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { unnamedVaults, type UnnamedVault } from '../../src/read-models/unnamed-vaults.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { BareCoordinator, organizationId } from './bare-coordinator.js';
import { preparePorts } from './prepare-ports.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { StoreRefused } from '../../src/ledger/event-store.js';
import { until } from '../e2e/until.js';
import { setTimeout as sleep } from 'node:timers/promises';

const type = 'ACTIVITY_TYPE_CREATE_WALLET';
const stream = organizationStream(organizationId);
const aWallet = (walletName: string) => ({ walletName, accounts: [] });

/** A coordinator on a store, alone on it or not, with the sweep of lost vaults in the test's hands. */
async function started(exclusive: boolean) {
  const inner = new InMemoryEventStore();
  const store = new SteeredStore(inner, exclusive);
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const prepare = await preparePorts(store);
  const coordinator = await BareCoordinator.start({ store, clock, prepare });
  const own = new Set(await vaultsOf(inner));
  const swept: string[] = [];
  const stale: UnnamedVault[] = [];
  const index = {
    unnamedVaults: (after: number, until: number) => [
      ...stale.splice(0),
      ...unnamedVaults(coordinator.projecting.rows, after, until),
    ],
  };
  const lost = new OrphanedVaults(store, clock, index, coordinator.driver, prepare.vault, {
    warn: ({ vaultId }: { vaultId: string }) => swept.push(vaultId),
    error: ({ err }: { err: Error }) => {
      throw err;
    },
  });
  const { root } = coordinator;
  return {
    inner,
    store,
    clock,
    coordinator,
    /** Vaults that the read model has not yet seen named. */
    stale,
    create: (walletName: string) => coordinator.submit(root.key, type, aWallet(walletName)),
    /** Vaults that are not the installation's. */
    vaults: async () => (await vaultsOf(inner)).filter((one) => !own.has(one)),
    /** What a sweep has destroyed. */
    async sweep() {
      await coordinator.projected();
      await lost.sweep();
      return swept.splice(0);
    },
  };
}

/** Where a test lets others wait. */
class Gate {
  readonly waiting: (() => void)[] = [];

  passed(): Promise<void> {
    return new Promise((pass) => this.waiting.push(pass));
  }
}

async function vaultsOf(store: InMemoryEventStore): Promise<string[]> {
  const head = await store.head();
  const streams = new Set<string>();
  await new Promise<void>((resolve, reject) => {
    const subscription = store.subscribe({
      after: 'start',
      onEvents(events) {
        for (const one of events) streams.add(one.stream);
        if (events.at(-1)!.position < head!) return;
        resolve();
        void subscription.close();
      },
      onError: reject,
    });
  });
  return [...streams].filter((one) => one.startsWith('vault-'));
}

/** The number that the next append to the organization will have, when the wallet's vault is the one before it. */
const nextDecision = ({ asked }: SteeredStore) => asked.length + 1;

test('what a store has not answered has not lost: it is kept when it was recorded after all, whatever time passes', async () => {
  const { store, clock, create, vaults, sweep, stale } = await started(false);
  const at = clock.now();
  store.faults.set(nextDecision(store), 'unavailable-after');
  await expect(create('recorded')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await vaults()).toHaveLength(1);
  clock.advance('2h');
  await create('later');
  expect(await sweep()).toEqual([]);
  // Nor by a read model that is behind: the organization's own stream says.
  const [recorded] = await vaults();
  stale.push({ vaultId: recorded!.slice('vault-'.length), organizationId, revision: 3, at });
  expect(await sweep()).toEqual([]);
  expect(await vaults()).toHaveLength(2);
});

test.each([
  ['shared', false],
  ['one process’s own', true],
] as const)(
  'what was never recorded goes after an hour, when nothing can record it any more; the store is %s',
  async (_what, exclusive) => {
    const { store, clock, create, vaults, sweep } = await started(exclusive);
    store.faults.set(nextDecision(store), 'unavailable-before');
    await expect(create('lost')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    const [vault] = await vaults();
    clock.advance('59m');
    expect(await sweep()).toEqual([]);
    clock.advance('2m');
    if (!exclusive) {
      // Another coordinator may have the append on its way, at the end of the stream as it is.
      expect(await sweep()).toEqual([]);
      await create('later');
    }
    expect(await sweep()).toEqual([vault!.slice('vault-'.length)]);
    expect(await vaults()).not.toContain(vault);
    expect(await sweep()).toEqual([]);
  },
);

test('the stream has to go on after the attempt could no longer be recorded, not only after it', async () => {
  const { store, clock, create, sweep } = await started(false);
  store.faults.set(nextDecision(store), 'unavailable-before');
  await expect(create('lost')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  clock.advance('34m');
  await create('before');
  clock.advance('2h');
  expect(await sweep()).toEqual([]);
  await create('after');
  expect(await sweep()).toHaveLength(1);
});

test('what other writers keep refusing is refused for good: its vault is gone with the answer', async () => {
  const inner = new InMemoryEventStore();
  const store = new SteeredStore(inner, false);
  const prepare = await preparePorts(store);
  const coordinator = await BareCoordinator.start({ store, prepare, patienceMs: 0 });
  const own = await vaultsOf(inner);
  store.faults.set(nextDecision(store), 'wrong-revision');
  await expect(coordinator.submit(coordinator.root.key, type, aWallet('late'))).rejects.toMatchObject({
    code: 'ABORTED',
  });
  expect(await vaultsOf(inner)).toEqual(own);
});

test('what the store refuses for its size is refused for good: its vault is gone with the answer', async () => {
  const { store, create, vaults } = await started(false);
  store.overtake = (one) =>
    one === stream
      ? Promise.reject(new StoreRefused('an append', { kind: 'too-large', limit: 1_000 }))
      : Promise.resolve();
  await expect(create('large')).rejects.toMatchObject({ code: 'OUT_OF_RANGE' });
  expect(await vaults()).toEqual([]);
});

test('an activity that fails once it is prepared is answered when its vault is gone', async () => {
  const { store, clock, coordinator, vaults } = await started(true);
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    condition: "activity.kind == 'CREATE_WALLET'",
    consensus: 'approvers.count() >= 2',
  });
  const fingerprints: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    clock.advance('1s');
    const activity = await coordinator.submit(bob.key, type, aWallet('same'));
    expect(activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    fingerprints.push(activity.fingerprint);
  }
  // Both are sealed before either is decided, so the second meets the name that the first has taken.
  const sealing = new Gate();
  store.overtake = (one) => (one.startsWith('vault-') ? sealing.passed() : Promise.resolve());
  const votes = fingerprints.map((fingerprint) =>
    coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint }),
  );
  await until('both seal what they have made', () => sealing.waiting.length === 2);
  store.overtake = () => Promise.resolve();
  for (const seal of sealing.waiting) seal();
  const answers = await Promise.all(votes);
  expect(await vaults()).toHaveLength(1);
  expect(answers.map(({ status }) => status).sort()).toEqual(['ACTIVITY_STATUS_COMPLETED', 'ACTIVITY_STATUS_FAILED']);
});

test('what is decided alone after a batch that was too large has its secrets still, whatever the batch refused', async () => {
  const { inner, store, clock, coordinator, create, vaults } = await started(false);
  const beside = new SteeredStore(inner, false);
  const elsewhere = await BareCoordinator.start({
    store: beside,
    clock,
    seed: 'b',
    prepare: await preparePorts(beside),
  });
  const [sealing, blocking] = [new Gate(), new Gate()];
  const appends: number[] = [];
  store.overtake = async (one) => {
    if (one.startsWith('vault-')) return sealing.passed();
    if (one !== stream) return;
    appends.push(store.asked.at(-1)!.events.length);
    if (appends.length === 1) await blocking.passed();
    if (appends.length === 2) throw new StoreRefused('an append', { kind: 'too-large', limit: 1_000 });
    if (appends.length !== 4) return;
    // The first of them is recorded alone, and loses its name before the last is decided.
    const created = (await coordinator.events(stream)).find(({ type: name }) => name === 'WalletCreated')!;
    const { walletId } = created.data as { walletId: string };
    await elsewhere.submit(elsewhere.root.key, 'ACTIVITY_TYPE_UPDATE_WALLET', { walletId, walletName: 'before' });
  };
  const creating: ReturnType<typeof create>[] = [];
  for (const name of ['treasury', 'other', 'treasury']) {
    creating.push(create(name));
    await until('it seals what it has made', () => sealing.waiting.length === creating.length);
  }
  const tag = { userTagName: 'recorded first', userIds: [] };
  const blocker = coordinator.submit(coordinator.root.key, 'ACTIVITY_TYPE_CREATE_USER_TAG', tag);
  await until('its append is asked for', () => blocking.waiting.length === 1);
  // The others are decided together when it is recorded, in the order in which they queue once they are sealed.
  for (const seal of sealing.waiting.splice(0)) {
    seal();
    await sleep(200);
  }
  blocking.waiting[0]!();
  await Promise.all([blocker, ...creating]);
  expect(appends[1]).toBeGreaterThan(appends[0]!);
  const made = (await coordinator.events(stream)).filter(({ type: name }) => name === 'WalletCreated');
  expect(made.map(({ data }) => (data as { walletName: string }).walletName).sort()).toEqual([
    'other',
    'treasury',
    'treasury',
  ]);
  expect((await vaults()).sort()).toEqual(
    made.map(({ data }) => `vault-${(data as { vaultId: string }).vaultId}`).sort(),
  );
});

test('an attempt that is half an hour old is not recorded: what it needs is prepared anew', async () => {
  const { store, clock, coordinator, create, vaults } = await started(true);
  const sealed: string[] = [];
  store.overtake = (one) => {
    // The vault is sealed, and the process stands still before it decides.
    if (one.startsWith('vault-')) {
      sealed.push(one);
      if (sealed.length === 1) clock.advance('30m');
    }
    return Promise.resolve();
  };
  await create('slow');
  expect(sealed).toHaveLength(2);
  expect(await vaults()).toEqual([sealed[1]]);
  const created = (await coordinator.events(stream)).find(({ type: name }) => name === 'WalletCreated')!;
  expect(`vault-${(created.data as { vaultId: string }).vaultId}`).toBe(sealed[1]);
});
