import type { EventStore } from '../event-store/event-store.js';
import type { KeyEncryption } from '../vault/key-encryption.js';
import { Vault } from '../vault/vault.js';
import { InstallationKeys } from './installation-keys.js';
import { Keyring } from './keyring.js';
import { LoginSecrets } from './login-secrets.js';
import { OauthSecrets } from './oauth-secret.js';
import { OnRampSecrets } from './on-ramp-secrets.js';
import { ProxyKeys } from './proxy-keys.js';
import { Tokens } from './tokens.js';

interface World {
  readonly store: EventStore;
  readonly keyEncryption: KeyEncryption;
  readonly clock: { now(): number };
  readonly randomness: { bytes(count: number): Uint8Array };
  /** Makes the id of a new vault. */
  readonly newId: () => string;
  /** Milliseconds since the epoch: until then contacts of the sandbox have a code that everybody knows. */
  readonly sandboxUntil?: number | undefined;
}

export interface OpenKeyring {
  readonly vault: Vault;
  readonly keys: InstallationKeys;
  readonly keyring: Keyring;
  readonly loginSecrets: LoginSecrets;
  readonly oauthSecrets: OauthSecrets;
  readonly onRampSecrets: OnRampSecrets;
  readonly proxyKeys: ProxyKeys;
  readonly tokens: Tokens;
}

/** The vault of a store and what works with its secrets. The installation's keys are made on the first start. */
export async function openKeyring(world: World): Promise<OpenKeyring> {
  const vault = new Vault(world);
  const keys = await InstallationKeys.provide(vault, world.randomness);
  const ports = { ...world, vault, keys };
  return {
    vault,
    keys,
    keyring: new Keyring(ports),
    loginSecrets: new LoginSecrets(ports),
    oauthSecrets: new OauthSecrets(ports),
    onRampSecrets: new OnRampSecrets(ports),
    proxyKeys: new ProxyKeys(ports),
    tokens: new Tokens(keys),
  };
}
