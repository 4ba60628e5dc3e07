import type { QueuePath } from '../fairness/fair-queue.js';
import type { VaultAttempt } from '../domain/vault-attempt.js';
import type { Vault } from './vault.js';

/** The little of a vault that key material is made with. */
export type SecretVault = Pick<Vault, 'seal' | 'open'>;

/** A run of `prepare`, which names the vaults that it makes. */
export interface VaultMaker {
  readonly said: VaultAttempt;
  /** Whose turns it takes. */
  readonly path: QueuePath;
  newVaultId(): string;
}

/** The vaults of a store for one run of `prepare`: those that it makes say of which run they are. */
export function vaultWithin(vault: SecretVault, { said }: VaultMaker): SecretVault {
  return {
    seal: (vaultId, organizationId, secrets) => vault.seal(vaultId, organizationId, secrets, said),
    open: (ref, use) => vault.open(ref, use),
  };
}
