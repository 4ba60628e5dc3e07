import type { QueuePath } from '../fairness/fair-queue.js';
import type { VaultAttempt } from '../domain/vault-attempt.js';
import type { Vault } from './vault.js';

/** The part of a vault that creating key material needs. */
export type SecretVault = Pick<Vault, 'seal' | 'open'>;

/** A run of `prepare`, which names the vaults that it creates. */
export interface VaultMaker {
  readonly said: VaultAttempt;
  /** The sender whose turns it takes. */
  readonly path: QueuePath;
  newVaultId(): string;
}

/** The vaults of a store for one run of `prepare`: those that it creates are marked with the run. */
export function vaultWithin(vault: SecretVault, { said }: VaultMaker): SecretVault {
  return {
    seal: (vaultId, organizationId, secrets) => vault.seal(vaultId, organizationId, secrets, said),
    open: (ref, use) => vault.open(ref, use),
  };
}
