import { setTimeout as pause } from 'node:timers/promises';
import type { EventStore } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { InstallationKeys } from '../../src/keyring/installation-keys.js';
import { SeededRandomness } from '../../src/testing/deterministic.js';
import { LocalKeyEncryption, type KeyEncryption } from '../../src/vault/key-encryption.js';
import { Vault } from '../../src/vault/vault.js';
import { SteeredStore } from '../ledger/steered-store.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { eventsOf, forge, kekOf, keysOf, reveal, stores, vaultOn } from './world.js';
import { until } from '../e2e/until.js';

const secret = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
const seal = (vault: Vault, vaultId: string, names: readonly string[], text = secret, organizationId = 'org') =>
  vault.seal(
    vaultId,
    organizationId,
    names.map((name) => ({ name, secret: Buffer.from(text) })),
  );

describe.each(Object.entries(stores))('a vault %s', (_kind, make) => {
  let store: EventStore;
  let end: () => Promise<void>;

  beforeEach(async () => {
    ({ store, end } = await make());
  });

  afterEach(() => end());

  it('returns what was sealed, to every coordinator of the store', async () => {
    await seal(vaultOn(store), 'v', ['mnemonic']);
    expect(await reveal(vaultOn(store), 'org', 'v', 'mnemonic')).toBe(secret);
    expect(await vaultOn(store).names('v')).toEqual(['mnemonic']);
  });

  it('stores nothing that contains the secret or the data key', async () => {
    await seal(vaultOn(store), 'v', ['mnemonic']);
    const [event] = await eventsOf(store, 'vault-v');
    expect(Object.keys(event!.data as object).sort()).toEqual([
      'kekId',
      'name',
      'organizationId',
      'sealed',
      'wrappedKey',
    ]);
    const { sealed, wrappedKey } = event!.data as { sealed: string; wrappedKey: string };
    // nonce, text and tag; nonce, key and tag
    expect([Buffer.from(sealed, 'base64').length, Buffer.from(wrappedKey, 'base64').length]).toEqual([
      12 + secret.length + 16,
      12 + 32 + 16,
    ]);
    const text = JSON.stringify([event!.data, event!.metadata]);
    for (const encoding of ['utf8', 'hex', 'base64', 'base64url'] as const) {
      expect(text).not.toContain(Buffer.from(secret).toString(encoding).slice(0, 20));
    }
  });

  it('keeps the secret of a name that is there', async () => {
    const vault = vaultOn(store);
    await seal(vault, 'v', ['key']);
    await seal(vault, 'v', ['key', 'other'], 'another');
    expect(await reveal(vault, 'org', 'v', 'key')).toBe(secret);
    expect(await reveal(vault, 'org', 'v', 'other')).toBe('another');
    expect(await eventsOf(store, 'vault-v')).toHaveLength(2);
  });

  it('keeps one secret for a name that several coordinators seal at once', async () => {
    const vaults = Array.from({ length: 4 }, () => vaultOn(store));
    await Promise.all(vaults.map((vault, index) => seal(vault, 'v', ['key'], `secret ${index}`)));
    const seen = await Promise.all(vaults.map((vault) => reveal(vault, 'org', 'v', 'key')));
    expect(new Set(seen).size).toBe(1);
    expect(await eventsOf(store, 'vault-v')).toHaveLength(1);
  });

  it('keeps what several coordinators add to it at once', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `key ${index}`);
    await seal(vaultOn(store), 'v', ['seed']);
    const vaults = [vaultOn(store), vaultOn(store)];
    for (const [index, name] of names.entries()) {
      const text = `secret of ${name}`;
      await Promise.all(vaults.map((vault) => seal(vault, 'v', [name, `own ${index % 3}`], text)));
    }
    for (const vault of [...vaults, vaultOn(store)]) {
      for (const name of names) expect(await reveal(vault, 'org', 'v', name)).toBe(`secret of ${name}`);
    }
  });

  it('opens nothing that was moved to another vault, organization or name', async () => {
    await seal(vaultOn(store), 'v', ['key']);
    const [event] = await eventsOf(store, 'vault-v');
    const data = event!.data as { name: string; organizationId: string };
    const message = expect.stringMatching(/could not be opened.*changed or moved/) as string;
    const refused = { code: 'UNAVAILABLE', message };

    await forge(store, 'vault-copy', [{ type: 'SecretSealed', data }]);
    await expect(reveal(vaultOn(store), 'org', 'copy', 'key')).rejects.toMatchObject(refused);
    await forge(store, 'vault-renamed', [{ type: 'SecretSealed', data: { ...data, name: 'other' } }]);
    await expect(reveal(vaultOn(store), 'org', 'renamed', 'other')).rejects.toMatchObject(refused);
    await expect(reveal(vaultOn(store), 'another-org', 'v', 'key')).rejects.toMatchObject(refused);
    await forge(store, 'vault-given', [{ type: 'SecretSealed', data: { ...data, organizationId: 'another-org' } }]);
    await expect(reveal(vaultOn(store), 'another-org', 'given', 'key')).rejects.toMatchObject(refused);
    // Two secrets of one vault cannot change places either, not even with the data keys that belong to them.
    await seal(vaultOn(store), 'two', ['a', 'b']);
    const [a, b] = await eventsOf(store, 'vault-two');
    const swapped = [
      { type: 'SecretSealed', data: { ...(a!.data as object), name: 'b' } },
      { type: 'SecretSealed', data: { ...(b!.data as object), name: 'a' } },
    ];
    await forge(store, 'vault-swapped', swapped);
    await expect(reveal(vaultOn(store), 'org', 'swapped', 'a')).rejects.toMatchObject(refused);
  });

  it('opens nothing in which a bit was changed', async () => {
    await seal(vaultOn(store), 'v', ['key']);
    const [event] = await eventsOf(store, 'vault-v');
    const data = event!.data as { sealed: string; wrappedKey: string };
    for (const member of ['sealed', 'wrappedKey'] as const) {
      const bytes = Buffer.from(data[member], 'base64');
      for (const at of [0, 11, 12, 20, bytes.length - 17, bytes.length - 16, bytes.length - 1]) {
        const changed = Buffer.from(bytes);
        changed[at]! ^= 0x80;
        const vaultId = `${member}-${at}`;
        await forge(store, `vault-${vaultId}`, [
          { type: 'SecretSealed', data: { ...data, [member]: changed.toString('base64') } },
        ]);
        await expect(reveal(vaultOn(store), 'org', vaultId, 'key')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      }
    }
  });

  it('opens nothing without its key-encryption key, and names the key that is missing', async () => {
    const right = keysOf(1);
    await seal(vaultOn(store, right), 'v', ['key']);
    await expect(reveal(vaultOn(store, keysOf(2)), 'org', 'v', 'key')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: `a sealed secret could not be opened: sealed under key-encryption key \`${right.currentId}\`, which is not among the available ones (${keysOf(2).currentId})`,
    });
  });

  it('opens under the new key alone once it was rewrapped, and the sealed text stays as it was', async () => {
    await seal(vaultOn(store), 'v', ['a', 'b']);
    expect(await vaultOn(store, keysOf(2, 1)).rewrap('v')).toBe(2);
    expect(await vaultOn(store, keysOf(2, 1)).rewrap('v')).toBe(0);
    expect(await reveal(vaultOn(store, keysOf(2)), 'org', 'v', 'b')).toBe(secret);
    expect(await vaultOn(store, keysOf(2)).verify('v')).toBe(2);
    await expect(vaultOn(store, keysOf(1)).verify('v')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    const events = await eventsOf(store, 'vault-v');
    expect(events.map(({ type }) => type)).toEqual([
      'SecretSealed',
      'SecretSealed',
      'DataKeyRewrapped',
      'DataKeyRewrapped',
    ]);
    expect(Object.keys(events[2]!.data as object).sort()).toEqual(['kekId', 'name', 'wrappedKey']);
  });

  it('can be read all the while it is rewrapped, by coordinators that have both keys', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `key ${index}`);
    await seal(vaultOn(store), 'v', names);
    // The first has everything in memory, the second reads as it goes.
    const readers = [vaultOn(store, keysOf(1, 2)), vaultOn(store, keysOf(2, 1))];
    await reveal(readers[0]!, 'org', 'v', names[0]!);
    let isDone = false;
    const reading = readers.map(async (reader) => {
      let count = 0;
      while (!isDone) {
        expect(await reveal(reader, 'org', 'v', names[count++ % names.length]!)).toBe(secret);
        await pause(0);
      }
      return count;
    });
    for (const keys of [keysOf(2, 1), keysOf(1, 2), keysOf(2, 1)]) {
      expect(await vaultOn(store, keys).rewrap('v')).toBe(names.length);
    }
    isDone = true;
    for (const count of await Promise.all(reading)) expect(count).toBeGreaterThan(0);
    expect(await vaultOn(store, keysOf(2)).verify('v')).toBe(names.length);
  });

  it('is found rewrapped by a coordinator that was started with the new key and has the old wrapping in memory', async () => {
    await seal(vaultOn(store), 'v', ['key']);
    const keys = new KeysToLose(keysOf(2, 1));
    const reader = vaultOn(store, keys);
    await reveal(reader, 'org', 'v', 'key');
    await vaultOn(store, keysOf(2, 1)).rewrap('v');
    keys.inner = keysOf(2);
    expect(await reveal(reader, 'org', 'v', 'key')).toBe(secret);
  });

  it('loses nothing when it is rewrapped by two and added to by a third at once', async () => {
    await seal(vaultOn(store), 'v', ['a', 'b']);
    const [one, two, third] = [
      vaultOn(store, keysOf(2, 1)),
      vaultOn(store, keysOf(2, 1)),
      vaultOn(store, keysOf(1, 2)),
    ];
    await Promise.all([one.rewrap('v'), two.rewrap('v'), seal(third, 'v', ['c'])]);
    await one.rewrap('v');
    expect(await vaultOn(store, keysOf(2)).verify('v')).toBe(3);
  });

  it('is gone permanently once shredded, even twice', async () => {
    const vault = vaultOn(store);
    await seal(vault, 'v', ['key']);
    await reveal(vault, 'org', 'v', 'key');
    await vault.shred('v');
    await vault.shred('v');
    await vaultOn(store).shred('v');
    await vault.shred('that-never-was');
    expect(await eventsOf(store, 'vault-v')).toEqual([]);
    for (const one of [vault, vaultOn(store)]) {
      await expect(reveal(one, 'org', 'v', 'key')).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await expect(seal(one, 'v', ['key'])).rejects.toMatchObject({
        code: 'NOT_FOUND',
        message: 'vault `v` does not hold the secret: it was deleted in the meantime',
      });
      expect(await one.names('v')).toEqual([]);
      expect(await one.rewrap('v')).toBe(0);
    }
  });

  it('that another coordinator has shredded is not opened from memory for longer than a minute', async () => {
    const other = vaultOn(store);
    await seal(other, 'v', ['key']);
    await reveal(other, 'org', 'v', 'key');
    await vaultOn(store).shred('v');
    other.clock.advance('61s');
    await expect(reveal(other, 'org', 'v', 'key')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(seal(other, 'v', ['key'])).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('that is replaced by another under a running coordinator is noticed', async () => {
    const [vault, forged] = [vaultOn(store), new InMemoryEventStore()];
    await seal(vault, 'v', ['key']);
    const swap = new SteeredStore(store);
    const other = vaultOn(swap);
    await reveal(other, 'org', 'v', 'key');
    await seal(vaultOn(forged, keysOf(1)), 'v', ['key'], 'planted');
    const [planted] = await eventsOf(forged, 'vault-v');
    swap.tamper = (event) => ({ ...event, ...planted });
    other.clock.advance('61s');
    await expect(reveal(other, 'org', 'v', 'key')).rejects.toThrow(/hash chain .* is broken at revision 0/);
    await forged.close();
  });

  it('with an event of a newer release is not read at all', async () => {
    await seal(vaultOn(store), 'v', ['key']);
    const [event] = await eventsOf(store, 'vault-v');
    await forge(store, 'vault-newer', [
      { type: 'SecretSealed', data: event!.data },
      { type: 'SecretReplaced', data: { ...(event!.data as object), sealed: '' } },
    ]);
    await expect(vaultOn(store).names('newer')).rejects.toThrow(
      'stream `vault-newer` has an event `SecretReplaced` at revision 1, which this release does not know',
    );
  });
});

describe('what is opened', () => {
  const open = (vault: Vault, use: (secret: Buffer) => unknown) =>
    vault.open({ organizationId: 'org', vaultId: 'v', name: 'key' }, use);

  it('is wiped after its use, also when that fails', async () => {
    const vault = vaultOn(new InMemoryEventStore());
    await seal(vault, 'v', ['key']);
    const kept: Buffer[] = [];
    await open(vault, async (opened) => {
      kept.push(opened);
      await pause(1);
      expect(opened.toString()).toBe(secret);
    });
    const failing = open(vault, (opened) => {
      kept.push(opened);
      throw new Error('no use');
    });
    await expect(failing).rejects.toThrow('no use');
    expect(kept.map((buffer) => buffer.equals(Buffer.alloc(secret.length)))).toEqual([true, true]);
  });

  it('and its data key are wiped by the vault, at every step', async () => {
    const keys = new KeysToLose(keysOf(1));
    const vault = vaultOn(new InMemoryEventStore(), keys);
    await seal(vault, 'v', ['key']);
    await open(vault, () => undefined);
    keys.inner = keysOf(2, 1);
    await vault.rewrap('v');
    expect(keys.seen.length).toBeGreaterThanOrEqual(4);
    expect(keys.seen.filter((dataKey) => dataKey.some((byte) => byte !== 0))).toEqual([]);
  });
});

describe('when the store does not answer', () => {
  it('nothing is opened or sealed, everything goes on afterwards', async () => {
    const store = new SteeredStore();
    const vault = vaultOn(store);
    await seal(vault, 'v', ['key']);
    store.isUnreadable = true;
    const unreachable = { code: 'UNAVAILABLE', message: 'the vault cannot be reached: send the same request again' };
    await expect(reveal(vault, 'org', 'v', 'key')).rejects.toMatchObject(unreachable);
    await expect(seal(vault, 'w', ['key'])).rejects.toMatchObject(unreachable);
    store.isUnreadable = false;
    store.failTwice(store.asked.length, 'unavailable-after');
    await expect(seal(vault, 'w', ['key'])).rejects.toMatchObject(unreachable);
    await seal(vault, 'w', ['key'], 'too late');
    expect(await reveal(vault, 'org', 'w', 'key')).toBe(secret);
    expect(await reveal(vault, 'org', 'v', 'key')).toBe(secret);
  });

  it('what is in memory is opened for a minute, and not for longer', async () => {
    const store = new SteeredStore();
    const vault = vaultOn(store);
    await seal(vault, 'v', ['key']);
    await reveal(vault, 'org', 'v', 'key');
    store.isUnreadable = true;
    expect(await reveal(vault, 'org', 'v', 'key')).toBe(secret);
    vault.clock.advance('61s');
    await expect(reveal(vault, 'org', 'v', 'key')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    store.isUnreadable = false;
    expect(await reveal(vault, 'org', 'v', 'key')).toBe(secret);
  });
});

describe('between a read and an append', () => {
  it('another may move the vault on in memory: a name that is there then keeps its secret', async () => {
    const store = new SteeredStore();
    const keys = new KeysToHold(keysOf(1));
    const vault = vaultOn(store, keys);
    await seal(vault, 'v', ['seed']);
    await vault.names('v');
    keys.hold();
    const slow = seal(vault, 'v', ['key'], 'of the slow one');
    await keys.held();
    await seal(vaultOn(store.inner), 'v', ['key'], 'of the quick one');
    // A reader of the same coordinator takes the quick one's event into the same memory.
    expect(await vault.names('v')).toEqual(['seed', 'key']);
    keys.release();
    await slow;
    for (const one of [vault, vaultOn(store.inner)]) {
      expect(await reveal(one, 'org', 'v', 'key')).toBe('of the quick one');
    }
    expect(await eventsOf(store, 'vault-v')).toHaveLength(2);
  });

  it('a read that began before something was sealed does not hide it', async () => {
    const store = new SteeredStore();
    const vault = vaultOn(store);
    await seal(vault, 'v', ['seed']);
    store.holdReads();
    const early = vault.names('v');
    await until('the read is held', () => store.heldReads > 0);
    await seal(vaultOn(store.inner), 'v', ['key']);
    const late = reveal(vault, 'org', 'v', 'key');
    store.releaseReads();
    expect(await early).toEqual(['seed']);
    expect(await late).toBe(secret);
  });

  it('a vault that is shredded while somebody reads it does not stay in memory', async () => {
    const store = new SteeredStore();
    const vault = vaultOn(store);
    await seal(vault, 'v', ['key']);
    store.holdReads();
    const reading = vault.names('v');
    await until('the read is held', () => store.heldReads > 0);
    const shredding = vault.shred('v');
    store.releaseReads();
    await Promise.all([reading, shredding]);
    await expect(reveal(vault, 'org', 'v', 'key')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

it('keeps so many bytes of secrets in memory, and reads the others again', async () => {
  const store = new SteeredStore();
  const names = Array.from({ length: 100 }, (_, index) => `key ${index}`);
  await seal(vaultOn(store), 'v0', names, 'short');
  // The same events for many vaults: nothing of them is opened but what is theirs.
  const contents = (await eventsOf(store, 'vault-v0')).map(({ type, data }) => ({ type, data }));
  for (let count = 1; count <= 10; count++) await forge(store.inner, `vault-v${count}`, contents);
  const vault = vaultOn(store, keysOf(1), { cachedBytes: 600_000 });
  for (let count = 0; count <= 10; count++) expect(await vault.names(`v${count}`)).toHaveLength(100);
  let reads = 0;
  store.tamper = (event) => {
    reads += 1;
    return event;
  };
  // A vault in memory is asked for its last event only.
  await vault.names('v10');
  expect(reads).toBe(1);
  await vault.names('v0');
  expect(reads).toBe(101);
  // One has made room for that one, and all others are still there.
  for (let count = 2; count <= 10; count++) await vault.names(`v${count}`);
  expect(reads).toBe(110);
});

it('keeps 8 MiB of sealed secrets unless told otherwise', async () => {
  const store = new SteeredStore();
  await seal(vaultOn(store), 'one', ['long', 'short']);
  const [long, short] = (await eventsOf(store, 'vault-one')).map(({ type, data }) => ({ type, data: data as object }));
  const sealed = 'A'.repeat(512 * 1024);
  const vaultIds = Array.from({ length: 17 }, (_, index) => `v${index}`);
  for (const vaultId of vaultIds) {
    await forge(store.inner, `vault-${vaultId}`, [{ ...long!, data: { ...long!.data, sealed } }, short!]);
  }
  const vault = vaultOn(store);
  for (const vaultId of vaultIds) await vault.names(vaultId);
  let reads = 0;
  store.tamper = (event) => {
    reads += 1;
    return event;
  };
  // Of a vault in memory only the last event is read; there were 8.5 MiB.
  await vault.names('v16');
  expect(reads).toBe(1);
  await vault.names('v0');
  expect(reads).toBe(3);
});

it('counts how long secrets are: few long ones take the room of many short ones', async () => {
  const store = new SteeredStore();
  const writer = vaultOn(store);
  const long = 's'.repeat(8_192);
  for (const vaultId of ['a', 'b', 'c']) await seal(writer, vaultId, ['one'], long);
  const vault = vaultOn(store, keysOf(1), { cachedBytes: 25_000 });
  for (const vaultId of ['a', 'b', 'c']) await vault.names(vaultId);
  const reads: string[] = [];
  store.tamper = (event) => {
    reads.push(event.stream);
    return event;
  };
  for (const vaultId of ['a', 'c']) expect(await reveal(vault, 'org', vaultId, 'one')).toBe(long);
  // Two fit: the one that was asked for the longest ago is read from its store again.
  expect(reads).toEqual(['vault-a']);
});

it('makes room for the many vaults of a family first among its own', async () => {
  const store = new SteeredStore();
  const writer = vaultOn(store);
  await seal(writer, 'victim', ['one'], secret, 'victim');
  const strangers = Array.from({ length: 12 }, (_, index) => `stranger ${index}`);
  for (const vaultId of strangers) await seal(writer, vaultId, ['one'], secret, vaultId);
  // Sub-organizations of one parent.
  const familyOf = (organizationId: string) => (organizationId === 'victim' ? organizationId : 'parent of strangers');
  const vault = vaultOn(store, keysOf(1), { cachedBytes: 12_000, familyOf });
  await reveal(vault, 'victim', 'victim', 'one');
  for (const vaultId of strangers) await reveal(vault, vaultId, vaultId, 'one');
  const reads: string[] = [];
  store.tamper = (event) => {
    reads.push(event.stream);
    return event;
  };
  for (const vaultId of ['victim', ...strangers.slice(-2)]) await reveal(vault, vaultId, vaultId, 'one');
  expect(reads).toEqual([]);
  await reveal(vault, 'stranger 0', 'stranger 0', 'one');
  expect(reads).toEqual(['vault-stranger 0']);
});

it('is not opened from memory by a clock that was set back: it says nothing of how old that is', async () => {
  const store = new SteeredStore();
  let now = Date.UTC(2026, 0, 1);
  const randomness = new SeededRandomness('set back');
  const vault = new Vault({ store, keyEncryption: keysOf(1), randomness, clock: { now: () => now } });
  await seal(vault, 'v', ['key']);
  expect(await reveal(vault, 'org', 'v', 'key')).toBe(secret);
  await vaultOn(store).shred('v');
  now -= 3_600_000;
  await expect(reveal(vault, 'org', 'v', 'key')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

it('one that had to make room while somebody read it counts again once it was read', async () => {
  const store = new SteeredStore();
  const writer = vaultOn(store);
  for (const vaultId of ['a', 'b']) await seal(writer, vaultId, ['one', 'two']);
  let goOn = (): void => undefined;
  let slow: Promise<void> = Promise.resolve();
  const read: string[] = [];
  const { inner } = store;
  store.read = async function* (stream, from) {
    for await (const event of inner.read(stream, from)) {
      if (stream === 'vault-a') await slow;
      read.push(stream);
      yield event;
    }
  };
  // Room for one of them.
  const vault = vaultOn(store, keysOf(1), { cachedBytes: 1_500 });
  await vault.names('a');
  slow = new Promise((resolve) => (goOn = resolve));
  const reading = vault.names('a');
  await vault.names('b');
  goOn();
  await reading;
  read.length = 0;
  await vault.names('b');
  expect(read).toEqual(['vault-b', 'vault-b']);
});

describe('the keys of the installation', () => {
  it('are the same for coordinators that start at once, and after a restart', async () => {
    for (const make of Object.values(stores)) {
      const { store, end } = await make();
      const provide = (seed: string) =>
        InstallationKeys.open(vaultOn(store), { store, randomness: new SeededRandomness(seed) });
      const all = [...(await Promise.all(['a', 'b', 'c'].map(provide))), await provide('d')];
      const published = all.map((keys) => [
        keys.publicKey('signer', 'uncompressed'),
        keys.publicKey('notarizer', 'compressed'),
        keys.publicKey('webhook', 'compressed'),
      ]);
      expect(published).toEqual(all.map(() => published[0]));
      const codes = await Promise.all(all.map((keys) => keys.use('otp-code', (key) => key.toString('hex'))));
      expect(new Set(codes).size).toBe(1);
      await end();
    }
  });

  it('are completed when a newer release knows more of them', async () => {
    const store = new InMemoryEventStore();
    const vault = vaultOn(store);
    const signer = Buffer.alloc(32, 5);
    await vault.seal('installation', 'installation', [{ name: 'signer', secret: signer }]);
    const keys = await InstallationKeys.open(vaultOn(store), { store, randomness: new SeededRandomness('newer') });
    expect(await keys.use('signer', (key) => key.equals(signer))).toBe(true);
    expect(await keys.use('webhook', (key) => key.length)).toBe(32);
  });

  it('are made by a start that comes after one which was killed before it booted', async () => {
    for (const sealed of [['signer'], [] as string[]]) {
      const store = new InMemoryEventStore();
      if (sealed.length > 0) await seal(vaultOn(store), 'installation', sealed, secret.slice(0, 32), 'installation');
      const keys = await InstallationKeys.open(vaultOn(store), { store, randomness: new SeededRandomness('again') });
      expect(await keys.use('webhook', (key) => key.length)).toBe(32);
    }
  });

  it('are not made anew once the installation has booted: the start fails, and nothing is sealed', async () => {
    for (const make of Object.values(stores)) {
      const { store, end } = await make();
      await forge(store, 'installation-boots', [{ type: 'AttestationRootIssued', data: { certificate: '' } }]);
      const opened = () => InstallationKeys.open(vaultOn(store), { store, randomness: new SeededRandomness('new') });
      await expect(opened()).rejects.toThrow(
        /^this installation has booted before, but its keys are missing \(stream `vault-installation`\), .*: restore a backup of the store/,
      );
      expect(await eventsOf(store, 'vault-installation')).toEqual([]);
      // One that lacks single keys is of an earlier release.
      await seal(vaultOn(store), 'installation', ['signer'], secret.slice(0, 32), 'installation');
      expect(await (await opened()).use('message-counts', (key) => key.length)).toBe(32);
      await end();
    }
  });

  it('are those of another coordinator that makes them and boots while they are looked for', async () => {
    const store = new InMemoryEventStore();
    const first = { store, randomness: new SeededRandomness('first') };
    let isOther = false;
    class Steered extends InMemoryEventStore {
      // What is asked first is answered before the other one starts, and what is asked then is not.
      override async *read(stream: string, from?: number): AsyncGenerator<RecordedEvent> {
        yield* store.read(stream, from);
        if (isOther) return;
        isOther = true;
        await InstallationKeys.open(vaultOn(store), first);
        await forge(store, 'installation-boots', [{ type: 'AttestationRootIssued', data: { certificate: '' } }]);
      }
      override append(...appended: Parameters<InMemoryEventStore['append']>) {
        return store.append(...appended);
      }
    }
    const steered = new Steered();
    const second = { store: steered, randomness: new SeededRandomness('second') };
    const keys = await InstallationKeys.open(vaultOn(steered), second);
    const others = await InstallationKeys.open(vaultOn(store), first);
    expect(keys.publicKey('signer', 'compressed')).toBe(others.publicKey('signer', 'compressed'));
  });

  it('cannot be had under another key-encryption key: the start fails, and nothing is sealed', async () => {
    const store = new InMemoryEventStore();
    await InstallationKeys.open(vaultOn(store), { store, randomness: new SeededRandomness('first') });
    const before = await eventsOf(store, 'vault-installation');
    const attempt = InstallationKeys.open(vaultOn(store, keysOf(2)), {
      store,
      randomness: new SeededRandomness('second'),
    });
    await expect(attempt).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await eventsOf(store, 'vault-installation')).toEqual(before);
  });
});

/** Keys that can be exchanged for others while a vault uses them, and that remember the data keys they have seen. */
class KeysToLose implements KeyEncryption {
  readonly seen: Uint8Array[] = [];

  constructor(public inner: KeyEncryption) {}

  get currentId(): string {
    return this.inner.currentId;
  }

  get knownIds(): readonly string[] {
    return this.inner.knownIds;
  }

  wrap(dataKey: Uint8Array, context: string) {
    this.seen.push(dataKey);
    return this.inner.wrap(dataKey, context);
  }

  async unwrap(...args: Parameters<KeyEncryption['unwrap']>) {
    const dataKey = await this.inner.unwrap(...args);
    this.seen.push(dataKey);
    return dataKey;
  }
}

/** Keys that wrap when they are told to, like those of a service far away. */
class KeysToHold extends KeysToLose {
  private gate = Promise.resolve();
  private open = (): void => undefined;
  private waiting = 0;

  hold(): void {
    this.gate = new Promise((resolve) => (this.open = resolve));
  }

  async held(): Promise<void> {
    await until('a key is asked for', () => this.waiting > 0);
  }

  release(): void {
    this.open();
  }

  override async wrap(dataKey: Uint8Array, context: string) {
    this.waiting += 1;
    await this.gate;
    this.waiting -= 1;
    return super.wrap(dataKey, context);
  }
}

it('seals under what a caller passes as a key service of its own', async () => {
  const service = new KeysToLose(new LocalKeyEncryption([kekOf(9)], new SeededRandomness('service')));
  const store = new InMemoryEventStore();
  await seal(vaultOn(store, service), 'v', ['key']);
  expect(await reveal(vaultOn(store, service), 'org', 'v', 'key')).toBe(secret);
});
