import { rm } from 'node:fs/promises';
import { removeCopiesOf } from '../files/private-file.js';
import type { EventStore } from '../ledger/event-store.js';
import { readKekRecord, recordKek } from './kek-record.js';
import { makeKeyFile, placeOf, WrongKek, type KekSource } from './kek-source.js';
import { LocalKeyEncryption, type KeyEncryption } from './key-encryption.js';

interface World {
  readonly store: EventStore;
  readonly clock: { now(): number };
  readonly randomness: { bytes(count: number): Uint8Array };
}

const keyLength = 32;

/**
 * The key-encryption keys of this installation, from those that `readKeys` found at the source. On the first start of a
 * store, a key is created if none is given; on every later one, the key that the vault is sealed under must be
 * available, or nothing starts and nothing is written. `given` is wiped. `onCreated` is called with the file of a new
 * key.
 * @throws {WrongKek} that says which key is missing, and where it was looked for
 */
export async function provideKeyEncryption(
  world: World,
  source: KekSource,
  input: readonly Uint8Array[] | undefined,
  onCreated: (kekFile: string) => void,
): Promise<KeyEncryption> {
  const { store, randomness } = world;
  const known = await readKekRecord(store);
  if (!input && known) {
    throw new WrongKek(
      `the vault of this store is sealed under key-encryption key ${known.kekId}, but ${placeOf(source)} is missing: ` +
        `put the key back, or set KEK or KEK_FILE`,
    );
  }
  const { keys, isNew } = input ? { keys: input, isNew: false } : await makeKey(source, randomness);
  const keyEncryption = new LocalKeyEncryption(keys, randomness);
  for (const key of keys) key.fill(0);
  const { kekFile } = source;
  // Before the event that names it: a key that seals nothing is harmless, a lost one is not.
  if (isNew && kekFile !== undefined) onCreated(kekFile);
  try {
    await take(world, source, keyEncryption);
  } catch (error) {
    // Another key is in force, so nothing can be sealed under ours.
    if (isNew && kekFile !== undefined && error instanceof WrongKek) await rm(kekFile, { force: true });
    throw error;
  }
  if (source.kek === undefined && kekFile !== undefined) await removeCopiesOf(kekFile);
  return keyEncryption;
}

async function makeKey(
  { kekFile }: KekSource,
  randomness: World['randomness'],
): Promise<{ readonly keys: readonly Uint8Array[]; readonly isNew: boolean }> {
  const key = randomness.bytes(keyLength);
  if (kekFile === undefined) return { keys: [key], isNew: true };
  const ofAnother = await makeKeyFile(kekFile, key);
  return ofAnother ? { keys: ofAnother, isNew: false } : { keys: [key], isNew: true };
}

/** Ensures that the keys are those of the store, and that the current one is on record. */
async function take(world: World, source: KekSource, { knownIds, currentId }: KeyEncryption): Promise<void> {
  await recordKek(world, (known) => {
    if (known && !knownIds.includes(known.kekId)) {
      throw new WrongKek(
        `the vault of this store is sealed under key-encryption key ${known.kekId}, but ${placeOf(source)} contains ` +
          `${knownIds.join(', ')}: put the right key there, the same one for every coordinator`,
      );
    }
    // Another instance may have been first: the same key is fine, another key is not.
    return known?.kekId === currentId ? undefined : { type: 'KeyEncryptionKeyActivated', data: { kekId: currentId } };
  });
}
