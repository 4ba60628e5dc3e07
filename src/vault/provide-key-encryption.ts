import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { chainEvent, GENESIS_HASH, verifyChain, type EventMetadata } from '../event-store/chain.js';
import { WrongRevision, type EventStore } from '../event-store/event-store.js';
import { LocalKeyEncryption, type KeyEncryption } from './key-encryption.js';

/** Where the key-encryption keys come from. */
export interface KekSource {
  /** 64 hex characters each, separated by commas, the current one first; undefined to use the file. */
  readonly kek: string | undefined;
  /** One key a line, the current one first. Undefined when nothing is kept on disk: a key is then made and forgotten. */
  readonly kekFile: string | undefined;
}

interface World {
  readonly store: EventStore;
  readonly clock: { now(): number };
  readonly randomness: { bytes(count: number): Uint8Array };
}

/** The keys cannot be used with this store; the message is the one line that the operator sees. */
export class WrongKek extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'WrongKek';
  }
}

const stream = 'installation-kek';
const keyLength = 32;

const kekPattern = /^[0-9a-f]{64}$/i;

/**
 * The key-encryption keys of this installation. On the first start of a store a key is made, if none is given; on every
 * later one the key that the vault is sealed under must be there, or nothing starts and nothing is written.
 * `onCreated` is told the file that a new key was written to.
 * @throws {WrongKek} that says which key is missing, and where it was looked for
 */
export async function provideKeyEncryption(
  world: World,
  source: KekSource,
  onCreated: (kekFile: string) => void,
): Promise<KeyEncryption> {
  const { store, randomness } = world;
  const known = await recordedKek(store);
  const given = await readKeys(source);
  if (given) {
    const keys = new LocalKeyEncryption(given, randomness);
    if (known && !keys.knownIds.includes(known.kekId)) {
      throw new WrongKek(
        `the vault of this store is sealed under key-encryption key ${known.kekId}, and ${placeOf(source)} holds ` +
          `${keys.knownIds.join(', ')}: put the right key there`,
      );
    }
    if (known?.kekId !== keys.currentId) await recordKek(world, known, keys.currentId, source);
    return keys;
  }
  if (known) {
    throw new WrongKek(
      `the vault of this store is sealed under key-encryption key ${known.kekId}, and ${placeOf(source)} is not there: ` +
        `put the key back, or set KEK or KEK_FILE`,
    );
  }
  const key = Buffer.from(randomness.bytes(keyLength));
  const keys = new LocalKeyEncryption([key], randomness);
  const { kekFile } = source;
  if (kekFile !== undefined) {
    // Before the fact that names it: a key that nothing is sealed under is harmless, a lost one is not.
    await writeKeys(kekFile, [key]);
    onCreated(kekFile);
  }
  try {
    await recordKek(world, undefined, keys.currentId, source);
  } catch (error) {
    if (kekFile !== undefined && error instanceof WrongKek) await rm(kekFile, { force: true });
    throw error;
  }
  return keys;
}

/** The keys of the source, the current one first; undefined when there are none yet. @throws {WrongKek} for text that is no key */
export async function readKeys({ kek, kekFile }: KekSource): Promise<Buffer[] | undefined> {
  if (kek !== undefined) return parseKeys(kek.split(','), 'KEK');
  if (kekFile === undefined) return undefined;
  let text: string;
  try {
    text = await readFile(kekFile, 'utf8');
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw new WrongKek(`the key-encryption key in ${kekFile} cannot be read (${String(error)})`);
  }
  return parseKeys(
    text.split('\n').filter((line) => line.trim() !== ''),
    kekFile,
  );
}

/** Replaces the file, readable by its owner only. */
export async function writeKeys(kekFile: string, keys: readonly Uint8Array[]): Promise<void> {
  const text = keys.map((key) => `${Buffer.from(key).toString('hex')}\n`).join('');
  await writeFile(kekFile, text, { mode: 0o600, flush: true });
  await chmod(kekFile, 0o600);
}

function parseKeys(texts: readonly string[], place: string): Buffer[] {
  const keys = texts.map((text) => text.trim());
  const wrong = keys.findIndex((text) => !kekPattern.test(text));
  if (keys.length === 0) throw new WrongKek(`${place} is empty: it must hold 64 hex characters`);
  // Never the value: it may be most of a key.
  if (wrong >= 0)
    throw new WrongKek(`key ${wrong + 1} in ${place} is not 64 hex characters, it has ${keys[wrong]!.length}`);
  return keys.map((text) => Buffer.from(text, 'hex'));
}

const placeOf = ({ kek, kekFile }: KekSource): string => (kek === undefined ? (kekFile ?? 'memory') : 'KEK');

interface RecordedKek {
  readonly kekId: string;
  readonly revision: number;
  readonly hash: string;
}

async function recordedKek(store: EventStore): Promise<RecordedKek | undefined> {
  let known: RecordedKek | undefined;
  for await (const event of store.read(stream)) {
    const hash = verifyChain(known?.hash ?? GENESIS_HASH, event);
    known = { kekId: (event.data as { kekId: string }).kekId, revision: event.revision, hash };
  }
  return known;
}

/** Records which key wraps from now on, so that a later start knows the right one from a wrong one. */
async function recordKek(
  { store, clock }: World,
  known: RecordedKek | undefined,
  kekId: string,
  source: KekSource,
): Promise<void> {
  const revision = (known?.revision ?? -1) + 1;
  const previous = known?.hash ?? GENESIS_HASH;
  const metadata: Omit<EventMetadata, 'hash'> = {
    at: clock.now(),
    schemaVersion: 1,
    $correlationId: kekId,
    $causationId: kekId,
  };
  const event = { id: eventId(previous, kekId), type: 'KeyEncryptionKeyTaken', data: { kekId }, metadata };
  const hash = chainEvent(previous, { stream, revision, ...event });
  try {
    await store.append(
      stream,
      [{ ...event, metadata: { ...metadata, hash } }],
      known === undefined ? 'no-stream' : known.revision,
    );
  } catch (error) {
    if (!(error instanceof WrongRevision)) throw error;
    // Another instance was first: the same key is no quarrel, another key is.
    const winner = await recordedKek(store);
    if (winner?.kekId === kekId) return;
    throw new WrongKek(
      `another coordinator has just sealed the vault of this store under key-encryption key ${winner?.kekId}: ` +
        `give every coordinator the same key, in ${placeOf(source)}`,
    );
  }
}

function eventId(previousHash: string, kekId: string): string {
  const hex = createHash('sha256').update(`${stream}\0${previousHash}\0${kekId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
