import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { LOGGER } from '../http/logger.js';
import { KEYRING, type OpenKeyring } from '../keyring/open-keyring.js';
import { VaultDestroyer } from './destroy-vaults.js';
import { Vault } from './vault.js';

/** Sealed secrets, and shredding them. */
@Module({
  providers: [
    { provide: Vault, inject: [KEYRING], useFactory: ({ vault }: OpenKeyring) => vault },
    {
      provide: VaultDestroyer,
      inject: [Vault, LOGGER],
      useFactory: (vault: Vault, logger: Logger) =>
        new VaultDestroyer(vault, {
          failed: (vaultId, err) => logger.error({ err, vaultId }, 'an ended vault could not be shredded yet'),
          caughtUp: (vaultId) => logger.warn({ vaultId }, 'an ended vault was left behind, and is shredded now'),
          stopped: (err) => logger.error({ err }, 'not all ended vaults were looked at; the next start does so again'),
        }),
    },
  ],
  exports: [Vault, VaultDestroyer],
})
export class VaultModule {}
