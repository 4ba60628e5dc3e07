import { vaultIdOf } from '../domain/vault-streams.js';
import type { EventStore, RecordedEvent, Subscription } from '../ledger/event-store.js';
import { readKekRecord, recordKek, type KekFact } from './kek-record.js';
import { keepOldKey, placeOf, readKeys, replaceKeyFile, WrongKek, type KekSource } from './kek-source.js';
import { keyId, LocalKeyEncryption } from './key-encryption.js';
import { Vault } from './vault.js';

interface World {
  readonly store: EventStore;
  readonly clock: { now(): number };
  readonly randomness: { bytes(count: number): Uint8Array };
}

/** The result of a rotation. */
export interface Rotation {
  /** Id of the key that everything is now sealed under. */
  readonly kekId: string;
  readonly vaults: number;
  /** Data keys, each of which was verified to open under the new key. */
  readonly dataKeys: number;
  /** Number of them that were under another key. */
  readonly rewrapped: number;
  /** What the operator still has to do with the keys; undefined if the file holds only the new one. */
  readonly leftToDo: string | undefined;
}

/** Vaults processed in parallel: a store commits their appends together. */
const atOnce = 16;

/**
 * Wraps every data key of the store under a new key-encryption key. A key file gets the new key before anything is
 * wrapped under it, and loses the old one after everything was verified to open without it; keys in the environment are
 * the operator's to change. If it is interrupted, running it again continues: two keys in the file mean that a rotation
 * has begun.
 * @throws {WrongKek} if the keys at the source are not those of the store, or there is no new one
 */
export async function rotateKek(world: World, source: KekSource): Promise<Rotation> {
  const { store, randomness } = world;
  const known = await readKekRecord(store);
  if (!known) throw new WrongKek('nothing has been sealed in this store yet: start the coordinator on it first');
  const input = await readKeys(source);
  if (!input) {
    throw new WrongKek(
      `the vault of this store is sealed under key-encryption key ${known.kekId}, but ${placeOf(source)} is missing`,
    );
  }
  const { knownIds } = new LocalKeyEncryption(input, randomness);
  if (!knownIds.includes(known.kekId)) {
    throw new WrongKek(
      `the vault of this store is sealed under key-encryption key ${known.kekId}, but ${placeOf(source)} contains ` +
        `${knownIds.join(', ')}: put the right key there`,
    );
  }
  const unused = knownIds.slice(1).find((kekId) => !known.kekIds.has(kekId));
  if (unused !== undefined) {
    throw new WrongKek(
      `key ${unused} in ${placeOf(source)} was never used and is not the first: put the new key first, then the old one`,
    );
  }
  const keys = knownIds.length > 1 ? input : await addKey(source, input, randomness);
  const both = new LocalKeyEncryption(keys, randomness);
  const alone = new LocalKeyEncryption(keys.slice(0, 1), randomness);
  const kekId = both.currentId;

  // From here on, everyone who has the new key seals under it, so the walk may end here.
  const started = await recordNext(world, kekId);
  const vault = new Vault({ ...world, keyEncryption: both });
  const { vaults, total: rewrapped } = await eachVault(store, started, (vaultId) => vault.rewrap(vaultId));
  const done = await recordNext(world, kekId, { vaultCount: vaults, dataKeyCount: rewrapped });

  let dataKeys: number;
  const judge = new Vault({ ...world, keyEncryption: alone });
  try {
    ({ total: dataKeys } = await eachVault(store, done, (vaultId) => judge.verify(vaultId)));
  } catch (error) {
    throw new WrongKek(
      `not everything can be opened with the new key-encryption key ${kekId} alone (${(error as Error).message}): keep the ` +
        'old key, give every coordinator both keys with the new one first, and rotate again',
      { cause: error },
    );
  }
  return { kekId, vaults, dataKeys, rewrapped, leftToDo: await removeOldKeys(source, keys) };
}

/** Puts a new key before those in the file; one cannot be added to the environment. */
async function addKey(
  { kek, kekFile }: KekSource,
  input: readonly Uint8Array[],
  randomness: World['randomness'],
): Promise<readonly Uint8Array[]> {
  if (kek !== undefined || kekFile === undefined) {
    throw new WrongKek('KEK contains only one key: put a new one before it, as KEK=new,old');
  }
  const keys = [randomness.bytes(32), ...input];
  try {
    await replaceKeyFile(kekFile, keys);
  } catch (error) {
    if (!(error instanceof WrongKek)) throw error;
    throw new WrongKek(
      `${error.message}: put a new key into it as its first line, the old one second, and rotate again`,
    );
  }
  return keys;
}

/** Removes old keys from the file, each only once it is in a file of its own: older backups need them. */
async function removeOldKeys(
  { kek, kekFile }: KekSource,
  [current, ...old]: readonly Uint8Array[],
): Promise<string | undefined> {
  if (kek !== undefined || kekFile === undefined) {
    return 'set KEK to its first key alone, and restart every coordinator';
  }
  try {
    for (const key of old) await keepOldKey(kekFile, keyId(key), key);
    await replaceKeyFile(kekFile, [current!]);
    return undefined;
  } catch (error) {
    if (!(error instanceof WrongKek)) throw error;
    return `${error.message}: leave only its first line, and restart every coordinator`;
  }
}

/** Records the key that wraps from now on, or the number of data keys that were wrapped under it. */
async function recordNext(
  world: World,
  kekId: string,
  pass?: { readonly vaultCount: number; readonly dataKeyCount: number },
): Promise<bigint> {
  const fact: KekFact = pass
    ? { type: 'DataKeysRewrapped', data: { kekId, ...pass } }
    : { type: 'KeyEncryptionKeyActivated', data: { kekId } };
  // A coordinator that starts records its key as well.
  return (await recordKek(world, () => fact))!;
}

/** Processes every vault that begins before a position; returns how many there are, and the sum of the results. */
function eachVault(
  store: EventStore,
  until: bigint,
  work: (vaultId: string) => Promise<number>,
): Promise<{ readonly vaults: number; readonly total: number }> {
  return new Promise((resolve, reject) => {
    let vaults = 0;
    let total = 0;
    const onEvents = async (events: readonly RecordedEvent[]): Promise<void> => {
      const started = events.filter(({ revision }) => revision === 0).map(({ stream }) => vaultIdOf(stream));
      const vaultIds = started.filter((vaultId) => vaultId !== undefined);
      vaults += vaultIds.length;
      for (let at = 0; at < vaultIds.length; at += atOnce) {
        for (const count of await Promise.all(vaultIds.slice(at, at + atOnce).map(work))) total += count;
      }
      // Not awaited: it ends after this handler.
      if (events.some(({ position }) => position >= until)) {
        subscription.close().then(() => resolve({ vaults, total }), reject);
      }
    };
    const subscription: Subscription = store.subscribe({ after: 'start', onEvents, onError: reject });
  });
}
