import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { replacePrivateFile, syncFolderOf } from '../files/private-file.js';
import { authProxyIds, foundOrganization, isFounded, type Founding } from '../decide/found-organization.js';
import { derivedId, uuidV7 } from '../ledger/ids.js';
import type { Clock } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';
import { installationStream as stream } from '../ledger/installation-stream.js';
import { emptyTail, seal } from '../ledger/seal.js';
import { WrongRevision, type EventStore } from '../ledger/event-store.js';
import { ProxyKeys } from '../keyring/proxy-keys.js';
import { apiKeyPairFromPrivate, generateApiKeyPair } from '../stamps/sign.js';
import type { KeyEncryption } from '../vault/key-encryption.js';
import { Vault } from '../vault/vault.js';

/** What a newcomer needs for the first request; stored in `DATA_DIR/root.json`, readable only by its owner. */
export interface RootCredentials {
  readonly apiUrl: string;
  readonly organizationId: string;
  readonly userId: string;
  /** Compressed P-256 key, hex. */
  readonly apiPublicKey: string;
  /** 32 bytes, hex; absent if the key was given with ROOT_API_PUBLIC_KEY. */
  readonly apiPrivateKey?: string;
  /** The URL of the auth proxy; absent if this server runs none and knows of none. */
  readonly authProxyUrl?: string;
  /** The X-Auth-Proxy-Config-Id for callers of the auth proxy. */
  readonly authProxyConfigId?: string;
}

interface World {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Seals the key of the root organization's initial auth proxy; if absent, there is none. */
  readonly keyEncryption?: KeyEncryption;
  /** Only a test harness may continue an imported history: the holder of its test keys can be anyone. */
  readonly takesImported?: boolean;
}

/** A store that a test harness has filled with another installation's history: no coordinator starts on it. */
export class ImportedHistory extends Error {
  constructor() {
    super(
      'this store contains a history imported for tests, whose users have test keys and whose wallets have substitute ' +
        'seeds: start on another store',
    );
    this.name = 'ImportedHistory';
  }
}

/** What an installation needs to know before it listens. */
type Remembered = Omit<RootCredentials, 'apiUrl' | 'authProxyUrl'>;

/**
 * Creates the root organization on the first start, and finds it on every later one. Safe to interrupt: the credentials
 * are on disk before the event that names them is recorded, and every step can be repeated.
 * @throws {ImportedHistory}
 */
export async function install(
  { rootApiPublicKey }: Pick<Config, 'rootApiPublicKey'>,
  world: World,
  remembered: Partial<RootCredentials> | undefined,
  remember: (root: Remembered | undefined) => Promise<void>,
): Promise<{ readonly founding: Founding; readonly isNew: boolean }> {
  const { store, clock, randomness, keyEncryption } = world;
  const known = await recordedFounding(store);
  if (known) {
    if (known.imported && !world.takesImported) throw new ImportedHistory();
    await found(world, known);
    return { founding: known, isNew: false };
  }
  const pair =
    rootApiPublicKey === undefined
      ? remembered?.apiPrivateKey
        ? apiKeyPairFromPrivate(remembered.apiPrivateKey)
        : generateApiKeyPair((count) => randomness.bytes(count))
      : undefined;
  const organizationId = remembered?.organizationId ?? uuidV7(clock, randomness);
  const founding: Founding = {
    organizationId,
    organizationName: 'Root organization',
    userId: remembered?.userId ?? derivedId(organizationId, 'root-user'),
    userName: 'Root user',
    apiPublicKey: pair?.publicKey ?? rootApiPublicKey!,
    curve: 'API_KEY_CURVE_P256',
    at: clock.now(),
  };
  await remember({
    organizationId,
    userId: founding.userId,
    apiPublicKey: founding.apiPublicKey,
    ...(pair ? { apiPrivateKey: pair.privateKey } : {}),
    ...(keyEncryption ? { authProxyConfigId: authProxyIds(organizationId).configId } : {}),
  });
  const id = derivedId(stream, organizationId);
  const metadata = { at: founding.at, $correlationId: organizationId, $causationId: organizationId };
  const { events } = seal(stream, emptyTail, [{ id, type: 'CoordinatorInstalled', data: founding, metadata }]);
  try {
    await store.append(stream, events, 'no-stream');
  } catch (error) {
    if (!(error instanceof WrongRevision)) throw error;
    // Another instance installed at the same moment: its root organization counts, and our key belongs to nobody.
    if (!remembered) await remember(undefined);
    return install({ rootApiPublicKey }, world, remembered, remember);
  }
  await found(world, founding);
  return { founding, isNew: true };
}

/** Seals first and records second: repeating it, or doing it at the same moment, finds the same key. */
async function found({ store, clock, randomness, keyEncryption }: World, founding: Founding): Promise<void> {
  const { organizationId } = founding;
  if (await isFounded(store, organizationId)) return;
  if (!keyEncryption) return foundOrganization(store, founding);
  const vaultId = derivedId(organizationId, 'auth-proxy-vault');
  const vault = new Vault({ store, keyEncryption, randomness, clock });
  const keys = new ProxyKeys({ vault, randomness, newId: () => vaultId });
  await foundOrganization(store, founding, await keys.create(organizationId));
}

/** Called before anything is written. @throws {ImportedHistory} if the store is that of a test harness */
export async function refuseImported(store: EventStore): Promise<void> {
  if ((await recordedFounding(store))?.imported) throw new ImportedHistory();
}

/** Whether a store has an installation. */
export async function isInstalled(store: EventStore): Promise<boolean> {
  return (await recordedFounding(store)) !== undefined;
}

/** What the store says of its installation; undefined if it has none. */
export async function recordedFounding(store: Pick<EventStore, 'read'>): Promise<Founding | undefined> {
  for await (const { data } of store.read(stream)) return data as Founding;
  return undefined;
}

/**
 * `DATA_DIR/root.json`. Until the event that names its key is recorded, the credentials are in `root.json.founding`: a `root.json`
 * is always that of an installation.
 */
export class RootFile {
  private readonly file: string;
  private readonly founding: string;

  constructor(private readonly dataDir: string) {
    this.file = join(dataDir, 'root.json');
    this.founding = `${this.file}.founding`;
  }

  read(): Promise<Partial<RootCredentials> | undefined> {
    return readCredentials(this.file);
  }

  /** Credentials of a founding that was interrupted. */
  readFounding(): Promise<Partial<RootCredentials> | undefined> {
    return readCredentials(this.founding);
  }

  /** Replaces the file, on disk once this resolves. */
  write(root: Partial<RootCredentials>): Promise<void> {
    return this.replace(this.file, root);
  }

  /** The same before the event is recorded; without credentials, the file is removed. */
  async writeFounding(root: Partial<RootCredentials> | undefined): Promise<void> {
    if (root === undefined) return rm(this.founding, { force: true });
    await this.replace(this.founding, root);
  }

  /** This organization is recorded: credentials that were made for it become `root.json`, others open nothing and are removed. */
  async adopt(organizationId: string): Promise<void> {
    const made = await this.readFounding();
    if (!made) return;
    if (made.organizationId !== organizationId) return rm(this.founding, { force: true });
    await rename(this.founding, this.file);
    await syncFolderOf(this.file);
  }

  private async replace(file: string, root: Partial<RootCredentials>): Promise<void> {
    await mkdir(this.dataDir, { recursive: true, mode: 0o700 });
    try {
      await replacePrivateFile(file, `${JSON.stringify(root, null, 2)}\n`);
    } catch (error) {
      throw new Error(`${file} cannot be written (${String(error)})`, { cause: error });
    }
  }
}

async function readCredentials(file: string): Promise<Partial<RootCredentials> | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Partial<RootCredentials>;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw new Error(`${file} cannot be read (${String(error)}): repair it, or move it away`, { cause: error });
  }
}
