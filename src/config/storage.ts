import { join } from 'node:path';
import { normalizePublicKey } from '../stamps/keys.js';
import { BadSetting } from './bad-setting.js';
import type { Given } from './given.js';
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
  /** This is a copy for inspection, which sends nothing. */
  readonly restored: boolean;
  /** Refuses to start without an existing installation. */
  readonly requireData: boolean;
  /** Starts although the clock is behind what was recorded. */
  readonly clockWasAhead: boolean;
}

/** @throws {BadSetting} */
export function readStorage(given: Given): StorageSettings {
  const dataDir = given.text('DATA_DIR');
  return {
    dataDir,
    eventStore: eventStoreOf(given.text('EVENT_STORE')),
    kek: keksOf(given.optional('KEK')),
    kekFile: given.optional('KEK_FILE') ?? join(dataDir, 'kek'),
    rootApiPublicKey: given.read('ROOT_API_PUBLIC_KEY', rootApiPublicKeyOf),
    restored: given.flag('RESTORED'),
    requireData: given.flag('REQUIRE_DATA'),
    clockWasAhead: given.flag('CLOCK_WAS_AHEAD'),
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
