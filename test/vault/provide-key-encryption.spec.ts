import { chmod, link, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrokenChain, GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import type { EventStore } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import type { KeyEncryption } from '../../src/vault/key-encryption.js';
import { readKeys, replaceKeyFile, type KekSource } from '../../src/vault/kek-source.js';
import { provideKeyEncryption } from '../../src/vault/provide-key-encryption.js';
import { tellFlushed } from '../files/flushed.js';
import { saidWithoutRoom } from '../files/without-room.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { eventsOf, kekOf, keysOf } from './world.js';

const hex = (byte: number): string => kekOf(byte).toString('hex');

let folder: string;
let kekFile: string;
let made: string[];
let starts = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-kek-'));
  kekFile = join(folder, 'kek');
  made = [];
});

afterEach(async () => {
  await chmod(folder, 0o700);
  await rm(folder, { recursive: true, force: true });
});

/** What a process does with the settings at its start. */
async function start(store: EventStore, source: Partial<KekSource>): Promise<KeyEncryption> {
  const from = { kek: undefined, kekFile, ...source };
  const given = await readKeys(from);
  const world = { store, clock: new ManualClock(0), randomness: new SeededRandomness(`start ${starts++}`) };
  return provideKeyEncryption(world, from, given, (file) => made.push(file));
}

const recorded = async (store: EventStore) =>
  (await eventsOf(store, 'installation-kek')).map(({ type, data }) => [type, (data as { kekId: string }).kekId]);

describe('the first start', () => {
  it('creates a key that only its owner can read, and records its id', async () => {
    const store = new InMemoryEventStore();
    const keys = await start(store, {});
    expect(await readFile(kekFile, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect((await stat(kekFile)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['kek']);
    expect(made).toEqual([kekFile]);
    expect(await recorded(store)).toEqual([['KeyEncryptionKeyActivated', keys.currentId]]);
    let hash = GENESIS_HASH;
    for (const event of await eventsOf(store, 'installation-kek')) hash = verifyChain(hash, event);
    const again = await start(store, {});
    expect(again.knownIds).toEqual(keys.knownIds);
    expect(made).toEqual([kekFile]);
    expect(await recorded(store)).toHaveLength(1);
  });

  it('creates another key each time', async () => {
    const texts = new Set<string>();
    for (let count = 0; count < 3; count++) {
      await start(new InMemoryEventStore(), {});
      texts.add(await readFile(kekFile, 'utf8'));
      await rm(kekFile);
    }
    expect(texts.size).toBe(3);
  });

  it('uses the keys of the environment, in any letter case, and creates no file', async () => {
    const store = new InMemoryEventStore();
    const keys = await start(store, { kek: `${hex(0xab).toUpperCase()}, ${hex(1)}` });
    expect(keys.knownIds).toEqual(keysOf(0xab, 1).knownIds);
    expect([made, await readdir(folder)]).toEqual([[], []]);
  });

  it('uses an existing file, with or without spaces and empty lines', async () => {
    await writeFile(kekFile, `\n  ${hex(2)}\r\n\n${hex(1)}`);
    expect((await start(new InMemoryEventStore(), {})).knownIds).toEqual(keysOf(2, 1).knownIds);
    expect(made).toEqual([]);
  });

  it('keeps no key if nothing is stored', async () => {
    const keys = await start(new InMemoryEventStore(), { kekFile: undefined });
    expect(keys.currentId).toMatch(/^[0-9a-f]{16}$/);
    expect([made, await readdir(folder)]).toEqual([[], []]);
  });

  it('writes the key before the event, and finds it after a crash between the two', async () => {
    const store = new SteeredStore();
    store.failTwice(0, 'unavailable-before');
    await expect(start(store, {})).rejects.toThrow('nothing written');
    const text = await readFile(kekFile, 'utf8');
    store.failTwice(2, 'unavailable-after');
    await expect(start(store, {})).rejects.toThrow('everything written');
    const keys = await start(store, {});
    expect(await readFile(kekFile, 'utf8')).toBe(text);
    expect(await recorded(store)).toEqual([['KeyEncryptionKeyActivated', keys.currentId]]);
  });

  it('says in one line where the key cannot be kept', async () => {
    const nowhere = join(folder, 'missing', 'kek');
    const store = new InMemoryEventStore();
    await expect(start(store, { kekFile: nowhere })).rejects.toMatchObject({
      name: 'WrongKek',
      message: `the key-encryption key cannot be written to ${nowhere} (ENOENT): create its folder, make room, allow this user to write there, or set KEK or KEK_FILE`,
    });
    expect(await recorded(store)).toEqual([]);
  });

  it('leaves no file where there is no room for the key, and says so in one line', async () => {
    const said = saidWithoutRoom(
      'vault/kek-source.js',
      'tried.makeKeyFile(process.argv[1], Buffer.alloc(32, 1))',
      kekFile,
    );
    expect(said).toBe(
      `the key-encryption key cannot be written to ${kekFile} (EFBIG): create its folder, make room, allow this user to write there, or set KEK or KEK_FILE`,
    );
    expect(await readdir(folder)).toEqual([]);
    await start(new InMemoryEventStore(), {});
    expect(made).toEqual([kekFile]);
  });

  it('is followed by one that removes the copy of the key that a crash has left', async () => {
    const store = new InMemoryEventStore();
    await start(store, {});
    await link(kekFile, `${kekFile}.0123456789ab.new`);
    await start(store, {});
    expect(await readdir(folder)).toEqual(['kek']);
  });

  it('has the key on the disk before the file has its name, and then the name', async () => {
    const flushed: string[] = [];
    await tellFlushed(
      folder,
      (one) => flushed.push(one),
      () => start(new InMemoryEventStore(), {}),
    );
    expect(flushed).toEqual(['kek.new', 'folder with kek']);
  });
});

describe('a later start is refused, and nothing is written,', () => {
  let store: EventStore;
  let id: string;

  beforeEach(async () => {
    store = new InMemoryEventStore();
    id = (await start(store, { kek: hex(1) })).currentId;
  });

  afterEach(async () => {
    expect(await recorded(store)).toEqual([['KeyEncryptionKeyActivated', id]]);
    expect(made).toEqual([]);
  });

  it('without the key', async () => {
    await expect(start(store, {})).rejects.toMatchObject({
      name: 'WrongKek',
      message: `the vault of this store is sealed under key-encryption key ${id}, but ${kekFile} is missing: put the key back, or set KEK or KEK_FILE`,
    });
    await expect(start(store, { kekFile: undefined })).rejects.toThrow('but memory is missing');
    expect(await readdir(folder)).toEqual([]);
  });

  it('with other keys, which it does not tell', async () => {
    const held = keysOf(2, 3).knownIds.join(', ');
    await expect(start(store, { kek: `${hex(2)},${hex(3)}` })).rejects.toMatchObject({
      name: 'WrongKek',
      message: `the vault of this store is sealed under key-encryption key ${id}, but KEK contains ${held}: put the right key there, the same one for every coordinator`,
    });
    await writeFile(kekFile, hex(2));
    await expect(start(store, {})).rejects.toThrow(`but ${kekFile} contains`);
    expect(await readFile(kekFile, 'utf8')).toBe(hex(2));
  });

  it('with text that is no key, which it does not tell', async () => {
    const texts = ['', '\n\n', hex(1).slice(1), `${hex(1)}\n${hex(2)}0`, `${hex(1).slice(1)}g`, `${hex(1)} ${hex(2)}`];
    for (const text of texts) {
      await writeFile(kekFile, text);
      const error = await start(store, {}).then(
        () => undefined,
        (reason: Error) => reason,
      );
      expect(error).toMatchObject({ name: 'WrongKek', message: expect.stringContaining(kekFile) as string });
      expect(error!.message).not.toMatch(/01010101|02020202/);
    }
    await rm(kekFile);
  });

  it('with a file that cannot be read', async () => {
    await rm(kekFile, { force: true });
    await symlink(kekFile, kekFile);
    await expect(start(store, {})).rejects.toThrow(`in ${kekFile} cannot be read (ELOOP)`);
  });

  it('with a record that was tampered with', async () => {
    const steered = new SteeredStore(store);
    steered.tamper = (event) => ({ ...event, data: { kekId: keysOf(2).currentId } });
    await expect(start(steered, { kek: hex(2) })).rejects.toBeInstanceOf(BrokenChain);
  });
});

describe('coordinators that start at once', () => {
  it('with the same key agree', async () => {
    const store = new InMemoryEventStore();
    const all = await Promise.all(Array.from({ length: 4 }, () => start(store, { kek: hex(1) })));
    expect(await recorded(store)).toEqual([['KeyEncryptionKeyActivated', all[0]!.currentId]]);
  });

  it('with one key file that is not there yet come to the same key', async () => {
    const store = new InMemoryEventStore();
    const all = await Promise.all(Array.from({ length: 6 }, () => start(store, {})));
    expect(new Set(all.map(({ currentId }) => currentId)).size).toBe(1);
    expect(made).toEqual([kekFile]);
    expect((await start(store, {})).currentId).toBe(all[0]!.currentId);
    expect(await recorded(store)).toHaveLength(1);
  });

  it('with files of their own: one makes the key, the others are refused and keep none', async () => {
    const store = new InMemoryEventStore();
    const files = ['a', 'b', 'c'].map((name) => join(folder, name));
    const outcomes = await Promise.allSettled(files.map((file) => start(store, { kekFile: file })));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused).toHaveLength(2);
    for (const { reason } of refused) expect(String(reason)).toMatch(/the same one for every coordinator$/);
    const left = await readdir(folder);
    expect(left).toHaveLength(1);
    const [[, id]] = (await recorded(store)) as [[string, string]];
    expect((await start(store, { kekFile: join(folder, left[0]!) })).currentId).toBe(id);
  });

  it('with different keys: one is refused', async () => {
    const store = new InMemoryEventStore();
    const outcomes = await Promise.allSettled([1, 2].map((byte) => start(store, { kek: hex(byte) })));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await recorded(store)).toHaveLength(1);
  });

  it('use the key of a file that another has made in the meantime', async () => {
    const store = new InMemoryEventStore();
    const from = { kek: undefined, kekFile };
    const given = await readKeys(from);
    await writeFile(kekFile, `${hex(1)}\n`);
    const world = { store, clock: new ManualClock(0), randomness: new SeededRandomness('late') };
    const { knownIds } = await provideKeyEncryption(world, from, given, (file) => made.push(file));
    expect(knownIds).toEqual(keysOf(1).knownIds);
    expect(made).toEqual([]);
    expect(await readdir(folder)).toEqual(['kek']);
  });
});

it('a key that is put first is recorded as the one that wraps, and the earlier one still opens', async () => {
  const store = new InMemoryEventStore();
  await start(store, { kek: hex(1) });
  const both = await start(store, { kek: `${hex(2)},${hex(1)}` });
  expect(both.currentId).toBe(keysOf(2).currentId);
  expect(await recorded(store)).toEqual([1, 2].map((byte) => ['KeyEncryptionKeyActivated', keysOf(byte).currentId]));
  await expect(start(store, { kek: hex(1) })).rejects.toThrow(`sealed under key-encryption key ${both.currentId}`);
  expect((await start(store, { kek: hex(2) })).currentId).toBe(both.currentId);
});

describe('a key file that is replaced', () => {
  it('keeps its mode, and what links to it', async () => {
    const target = join(folder, 'elsewhere');
    await writeFile(target, `${hex(1)}\n`, { mode: 0o640 });
    await chmod(target, 0o640);
    await symlink(target, kekFile);
    await replaceKeyFile(kekFile, [kekOf(2), kekOf(1)]);
    expect(await readFile(target, 'utf8')).toBe(`${hex(2)}\n${hex(1)}\n`);
    expect((await stat(target)).mode & 0o777).toBe(0o640);
    expect((await readdir(folder)).sort()).toEqual(['elsewhere', 'kek']);
  });

  it('goes past what a crash has left', async () => {
    await writeFile(kekFile, `${hex(1)}\n`, { mode: 0o600 });
    await writeFile(`${kekFile}.new`, 'half a k', { mode: 0o644 });
    await replaceKeyFile(kekFile, [kekOf(2)]);
    expect(await readFile(kekFile, 'utf8')).toBe(`${hex(2)}\n`);
    expect((await stat(kekFile)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['kek']);
  });
});
