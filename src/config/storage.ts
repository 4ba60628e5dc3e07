import { join } from 'node:path';
import { normalizePublicKey } from '../stamps/keys.js';
import { BadSetting } from './bad-setting.js';
import type { SettingValues } from './setting-values.js';
import type { SettingName } from './settings.js';
import { shownAddress } from './urls.js';

/** Where data is stored, what seals its secrets, and what the first start creates. */
export interface StorageSettings {
  /** Folder of everything stored on disk. */
  readonly dataDir: string;
  /**
   * Where events are stored: `sqlite:`, `memory:`, or the connection string of an EventStoreDB (may contain a
   * password).
   */
  readonly eventStore: string;
  /** Key-encryption keys as given: 64 hex characters each, separated by commas; undefined to use `kekFile`. */
  readonly kek: string | undefined;
  /** File of the key-encryption keys, one per line. */
  readonly kekFile: string;
  /** Hex of the compressed P-256 key of the root user; if set, no private key is created or written. */
  readonly rootApiPublicKey: string | undefined;
  /** Read-only, on whatever the store has: accepts that it may have lost events. */
  readonly restored: boolean;
  /** Bytes that must be free on the disk of `dataDir` for this instance to be ready. */
  readonly minFreeDisk: number;
}

/** @throws {BadSetting} */
export function readStorage(input: SettingValues): StorageSettings {
  const dataDir = input.text('DATA_DIR');
  return {
    dataDir,
    eventStore: eventStoreOf(input.text('EVENT_STORE')),
    kek: keksOf(input.optional('KEK')),
    kekFile: input.optional('KEK_FILE') ?? join(dataDir, 'kek'),
    rootApiPublicKey: input.read('ROOT_API_PUBLIC_KEY', rootApiPublicKeyOf),
    restored: input.flag('RESTORED'),
    minFreeDisk: bytes(input, 'MIN_FREE_DISK'),
  };
}

const eventStorePattern = /^(?:esdb|kurrentdb)(?:\+discover)?:\/\/\S+$/;

function eventStoreOf(value: string): string {
  if (value === 'sqlite:' || value === 'memory:' || eventStorePattern.test(value)) return value;
  const rule = 'must be sqlite:, memory: or a connection string such as esdb://host:2113';
  throw new BadSetting('EVENT_STORE', shownAddress(value), rule);
}

/** @throws {BadSetting} that never shows the value, which may be most of a key */
function keksOf(value: string | undefined): string | undefined {
  const wrong = value?.split(',').find((one) => !/^[0-9a-f]{64}$/i.test(one.trim()));
  if (wrong === undefined) return value;
  throw new BadSetting(
    'KEK',
    '…',
    `must be 64 hex characters, or several such keys separated by commas; one has ${wrong.trim().length}`,
  );
}

function rootApiPublicKeyOf(value: string): string {
  const key = value.toLowerCase();
  if (isCompressedKey(key)) return key;
  // It may be the private key by mistake, so it is not shown.
  throw new BadSetting(
    'ROOT_API_PUBLIC_KEY',
    '…',
    `must be a compressed P-256 key, 66 hex characters; it has ${key.length}`,
  );
}

/** A point of P-256 in its compressed form: with anything else as its key, the root user could never sign. */
function isCompressedKey(hex: string): boolean {
  try {
    return normalizePublicKey(hex, 'API_KEY_CURVE_P256') === hex;
  } catch {
    return false;
  }
}

const units = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 } as const;

function bytes(input: SettingValues, name: SettingName): number {
  const value = input.text(name);
  const [, count, unit = 'B'] = /^(\d{1,9})\s?(B|KiB|MiB|GiB|TiB)?$/.exec(value) ?? [];
  if (count !== undefined) return Number(count) * units[unit as keyof typeof units];
  throw new BadSetting(name, value, 'must be a size such as 256MiB or 2GiB');
}
