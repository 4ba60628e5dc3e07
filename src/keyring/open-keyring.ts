import type { EventStore } from '../ledger/event-store.js';
import type { Randomness } from '../ports/randomness.js';
import type { KeyEncryption } from '../vault/key-encryption.js';
import { vaultWithin, type VaultMaker } from '../vault/attempt-vault.js';
import { Vault } from '../vault/vault.js';
import { InstallationKeys } from './installation-keys.js';
import { Keyring } from './keyring.js';
import { LoginSecrets } from './login-secrets.js';
import { OauthSecrets } from './oauth-secret.js';
import { OnRampSecrets } from './on-ramp-secrets.js';
import { ProxyKeys } from './proxy-keys.js';
import { SigningThread } from './signing-thread.js';
import { Tokens } from './tokens.js';

interface World {
  readonly store: EventStore;
  readonly keyEncryption: KeyEncryption;
  readonly clock: { now(): number };
  readonly randomness: Randomness;
  /** Whose share of the cache an organization's sealed secrets use. */
  readonly familyOf?: (organizationId: string) => string;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
  /** Milliseconds since the epoch: until then, contacts of the sandbox have a publicly known code. */
  readonly sandboxUntil?: number | undefined;
}

/** Everything that creates or uses secrets. */
interface SecretMakers {
  readonly keyring: Keyring;
  readonly loginSecrets: LoginSecrets;
  readonly oauthSecrets: OauthSecrets;
  readonly onRampSecrets: OnRampSecrets;
  readonly proxyKeys: ProxyKeys;
}

export interface OpenKeyring extends SecretMakers {
  readonly vault: Vault;
  readonly keys: InstallationKeys;
  readonly tokens: Tokens;
  /**
   * The same for one run of `prepare`: vaults that it creates are marked, and destroyed unless a decision names them.
   */
  within(attempt: VaultMaker): SecretMakers;
  /** Ends its thread: what is being signed there is refused. */
  close(): Promise<void>;
}

/** The vault of a store, and what works with its secrets. The installation's keys are created on the first start. */
export async function openKeyring(world: World): Promise<OpenKeyring> {
  const vault = new Vault(world);
  const keys = await InstallationKeys.open(vault, world);
  const signingThread = new SigningThread();
  const ports = { ...world, vault, keys, signingThread };
  return {
    vault,
    keys,
    ...makersWith(ports),
    tokens: new Tokens(keys),
    within: (attempt) =>
      makersWith({
        ...ports,
        vault: vaultWithin(vault, attempt),
        newId: () => attempt.newVaultId(),
        path: attempt.path,
      }),
    close: () => signingThread.close(),
  };
}

function makersWith(
  ports: ConstructorParameters<typeof LoginSecrets>[0] & ConstructorParameters<typeof Keyring>[0],
): SecretMakers {
  return {
    keyring: new Keyring(ports),
    loginSecrets: new LoginSecrets(ports),
    oauthSecrets: new OauthSecrets(ports),
    onRampSecrets: new OnRampSecrets(ports),
    proxyKeys: new ProxyKeys(ports),
  };
}
