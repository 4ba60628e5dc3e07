import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventStore } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { readKeys, type KekSource } from '../../src/vault/kek-source.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { provideKeyEncryption } from '../../src/vault/provide-key-encryption.js';
import { rotateKek, type Rotation } from '../../src/vault/rotate-kek.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { eventsOf, kekOf, keysOf, reveal, stores, vaultOn } from './world.js';

const hex = (byte: number): string => kekOf(byte).toString('hex');
const vaultIds = Array.from({ length: 20 }, (_, index) => `v${index}`);

let folder: string;
let kekFile: string;
let runs = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-rotate-'));
  kekFile = join(folder, 'kek');
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const world = (store: EventStore) => ({
  store,
  clock: new ManualClock(0),
  randomness: new SeededRandomness(`rotation ${runs++}`),
});

async function start(store: EventStore, source: Partial<KekSource> = {}) {
  const from = { kek: undefined, kekFile, ...source };
  return provideKeyEncryption(world(store), from, await readKeys(from), () => undefined);
}

const rotate = (store: EventStore, source: Partial<KekSource> = {}): Promise<Rotation> =>
  rotateKek(world(store), { kek: undefined, kekFile, ...source });

const linesOf = async (file: string) => (await readFile(file, 'utf8')).trim().split('\n');

async function keysInFile(): Promise<LocalKeyEncryption> {
  const keys = (await linesOf(kekFile)).map((line) => Buffer.from(line, 'hex'));
  return new LocalKeyEncryption(keys, new SeededRandomness(`file ${runs++}`));
}

/** Vaults with two secrets each, and one that was shredded. */
async function furnish(store: EventStore, keys: LocalKeyEncryption): Promise<void> {
  const vault = vaultOn(store, keys);
  for (const vaultId of [...vaultIds, 'shredded']) {
    await vault.seal(vaultId, 'org', [
      { name: 'seed', secret: Buffer.from(`seed of ${vaultId}`) },
      { name: 'key', secret: Buffer.from(`key of ${vaultId}`) },
    ]);
  }
  await vault.shred('shredded');
}

async function expectEverythingUnder(store: EventStore, keys: LocalKeyEncryption): Promise<void> {
  const vault = vaultOn(store, keys);
  for (const vaultId of vaultIds) {
    expect(await reveal(vault, 'org', vaultId, 'seed')).toBe(`seed of ${vaultId}`);
    expect(await vault.verify(vaultId)).toBe(2);
  }
  expect(await vault.names('shredded')).toEqual([]);
}

const recorded = async (store: EventStore) =>
  (await eventsOf(store, 'installation-kek')).map(({ type, data }) => [type, data]);

describe.each(Object.entries(stores))('a rotation %s', (_kind, make) => {
  let store: EventStore;
  let end: () => Promise<void>;

  beforeEach(async () => {
    ({ store, end } = await make());
    await start(store);
    await furnish(store, await keysInFile());
  });

  afterEach(() => end());

  it('leaves everything under a new key, and only that key in the file', async () => {
    const [old] = await linesOf(kekFile);
    const before = await keysInFile();
    const done = await rotate(store);
    const after = await keysInFile();
    expect(done).toEqual({
      kekId: after.currentId,
      vaults: vaultIds.length,
      dataKeys: 2 * vaultIds.length,
      rewrapped: 2 * vaultIds.length,
      leftToDo: undefined,
    });
    expect(after.knownIds).toHaveLength(1);
    expect(await linesOf(kekFile)).not.toContain(old);
    expect((await stat(kekFile)).mode & 0o777).toBe(0o600);
    expect((await readdir(folder)).filter((name) => name.startsWith('kek'))).toEqual(['kek']);
    await expectEverythingUnder(store, after);
    expect(await recorded(store)).toEqual([
      ['KeyEncryptionKeyActivated', { kekId: before.currentId }],
      ['KeyEncryptionKeyActivated', { kekId: after.currentId }],
      ['DataKeysRewrapped', { kekId: after.currentId, vaultCount: vaultIds.length, dataKeyCount: 2 * vaultIds.length }],
    ]);
    expect((await start(store)).currentId).toBe(after.currentId);
    await writeFile(kekFile, old!);
    await expect(start(store)).rejects.toThrow(`sealed under key-encryption key ${after.currentId}`);
  });

  it('can be repeated', async () => {
    for (let count = 0; count < 3; count++) {
      expect(await rotate(store)).toMatchObject({ dataKeys: 2 * vaultIds.length, rewrapped: 2 * vaultIds.length });
    }
    await expectEverythingUnder(store, await keysInFile());
  });
});

describe('a rotation that breaks off', () => {
  it('at any append is repaired by another, and coordinators can start in between', async () => {
    for (const fault of ['unavailable-before', 'unavailable-after'] as const) {
      for (let broken = 0; ; broken += 5) {
        const store = new SteeredStore();
        await rm(kekFile, { force: true });
        await start(store);
        await furnish(store, await keysInFile());
        store.failTwice(store.asked.length + broken, fault);
        const first = await rotate(store).catch((error: unknown) => error);
        if (!(first instanceof Error)) {
          expect(broken).toBeGreaterThan(vaultIds.length);
          break;
        }
        expect(await linesOf(kekFile)).toHaveLength(2);
        const keys = await keysInFile();
        expect((await start(store)).knownIds).toEqual(keys.knownIds);
        await expectEverythingUnder(store, keys);
        const second = await rotate(store);
        expect(second).toMatchObject({ kekId: keys.currentId, dataKeys: 2 * vaultIds.length, leftToDo: undefined });
        expect(await linesOf(kekFile)).toHaveLength(1);
        await expectEverythingUnder(store, await keysInFile());
      }
    }
  });

  it('before anything was recorded goes on with the key that is in the file', async () => {
    const store = new InMemoryEventStore();
    await start(store);
    await furnish(store, await keysInFile());
    const [old] = await linesOf(kekFile);
    await writeFile(kekFile, `${hex(2)}\n${old}\n`);
    expect(await rotate(store)).toMatchObject({ kekId: keysOf(2).currentId, leftToDo: undefined });
    expect(await linesOf(kekFile)).toEqual([hex(2)]);
  });
});

it('keeps each old key once, under its own id, however often it stands in the file', async () => {
  const store = new InMemoryEventStore();
  await start(store, { kek: hex(0xa1) });
  await start(store, { kek: `${hex(0xa2)},${hex(0xa1)}` });
  await furnish(store, keysOf(0xa2));
  const lines = [3, 0xa2, 3, 0xa2, 0xa1].map(hex);
  await writeFile(kekFile, [...lines, lines[1]!.toUpperCase()].join('\n'));
  expect(await rotate(store)).toMatchObject({ kekId: keysOf(3).currentId, leftToDo: undefined });
  const files = (await readdir(folder)).toSorted();
  const old = [0xa1, 0xa2].map((byte) => [`old-kek.${keysOf(byte).currentId}`, [hex(byte)]] as const);
  const held = await Promise.all(files.map(async (file) => [file, await linesOf(join(folder, file))] as const));
  expect(Object.fromEntries(held)).toEqual(Object.fromEntries([['kek', [hex(3)]] as const, ...old]));
});

describe('with keys in the environment', () => {
  it('it wraps under the first, and leaves the rest to the operator', async () => {
    const store = new InMemoryEventStore();
    await start(store, { kek: hex(1) });
    await furnish(store, keysOf(1));
    expect(await rotate(store, { kek: `${hex(2)},${hex(1)}` })).toEqual({
      kekId: keysOf(2).currentId,
      vaults: vaultIds.length,
      dataKeys: 2 * vaultIds.length,
      rewrapped: 2 * vaultIds.length,
      leftToDo: 'set KEK to its first key alone, and restart every coordinator',
    });
    await start(store, { kek: hex(2) });
    await expectEverythingUnder(store, keysOf(2));
    expect(await readdir(folder)).toEqual([]);
  });

  it('it asks for a new key if there is only one', async () => {
    const store = new InMemoryEventStore();
    await start(store, { kek: hex(1) });
    await expect(rotate(store, { kek: hex(1) })).rejects.toThrow(
      'KEK contains only one key: put a new one before it, as KEK=new,old',
    );
    expect(await recorded(store)).toHaveLength(1);
  });
});

describe('nothing is changed', () => {
  it('when a new key stands behind the one in use', async () => {
    const store = new InMemoryEventStore();
    await start(store, { kek: hex(1) });
    await writeFile(kekFile, `${hex(1)}\n${hex(2)}\n`);
    await expect(rotate(store)).rejects.toThrow(
      `key ${keysOf(2).currentId} in ${kekFile} was never used and is not the first: put the new key first, then the old one`,
    );
    expect(await linesOf(kekFile)).toEqual([hex(1), hex(2)]);
    expect(await recorded(store)).toHaveLength(1);
  });

  it('without the key that everything is sealed under', async () => {
    const store = new InMemoryEventStore();
    await start(store, { kek: hex(1) });
    await expect(rotate(store)).rejects.toThrow(`but ${kekFile} is missing`);
    await writeFile(kekFile, `${hex(3)}\n${hex(2)}\n`);
    await expect(rotate(store)).rejects.toThrow(`sealed under key-encryption key ${keysOf(1).currentId}`);
    expect(await linesOf(kekFile)).toEqual([hex(3), hex(2)]);
    expect(await recorded(store)).toHaveLength(1);
  });

  it('in a store that nothing was sealed in', async () => {
    await writeFile(kekFile, `${hex(1)}\n`);
    await expect(rotate(new InMemoryEventStore())).rejects.toThrow('start the coordinator on it first');
    expect(await linesOf(kekFile)).toEqual([hex(1)]);
  });
});

describe('the old key stays in the file', () => {
  it('as long as a coordinator still seals under it', async () => {
    const inner = new InMemoryEventStore();
    const store = new SteeredStore(inner);
    await start(store);
    const old = await keysInFile();
    await furnish(store, old);
    // Another coordinator knows nothing of the new key, and is quicker than the walk to its end.
    let isSealed = false;
    store.overtake = async (stream) => {
      if (isSealed || (await keysInFile()).knownIds.length < 2 || !stream.startsWith('vault-')) return;
      isSealed = true;
      await vaultOn(inner, old).seal('late', 'org', [{ name: 'key', secret: Buffer.from('late') }]);
    };
    await expect(rotate(store)).rejects.toThrow(
      /^not everything can be opened with the new key-encryption key \w+ alone \(.*\): keep the old key, give every coordinator both keys/,
    );
    expect(await linesOf(kekFile)).toHaveLength(2);
    expect(await rotate(store)).toMatchObject({ rewrapped: 1, dataKeys: 2 * vaultIds.length + 1 });
    expect(await linesOf(kekFile)).toHaveLength(1);
  });

  it('when one data key does not open, whatever the reason', async () => {
    const store = new SteeredStore();
    await start(store);
    await furnish(store, await keysInFile());
    await vaultOn(store, keysOf(9)).seal('foreign', 'org', [{ name: 'key', secret: Buffer.from('foreign') }]);
    await expect(rotate(store)).rejects.toThrow('which is not among the available ones');
    expect(await linesOf(kekFile)).toHaveLength(2);
    await expectEverythingUnder(store, await keysInFile());
  });
});

it('leaves a key file that it cannot replace to the operator, before and after', async () => {
  const store = new InMemoryEventStore();
  await start(store);
  await furnish(store, await keysInFile());
  const [old] = await linesOf(kekFile);
  // A folder in the place of the new file stops everybody, as a read-only mount does.
  await mkdir(`${kekFile}.new`);
  await expect(rotate(store)).rejects.toThrow(
    /kek cannot be replaced \(\w+\): put a new key into it as its first line, the old one second, and rotate again$/,
  );
  expect(await linesOf(kekFile)).toEqual([old]);
  await writeFile(kekFile, `${hex(2)}\n${old}\n`);
  const { leftToDo } = await rotate(store);
  expect(leftToDo).toMatch(/kek cannot be replaced \(\w+\): leave only its first line, and restart every coordinator$/);
  expect(await linesOf(kekFile)).toEqual([hex(2), old]);
  await expectEverythingUnder(store, keysOf(2));
});
