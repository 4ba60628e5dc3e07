import { Module } from '@nestjs/common';
import type { Logger } from 'pino';
import { LOGGER } from '../http/logger.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { ROWS } from '../read-models/define-query.js';
import { claimsModel, claimsRevision, dueClaims, firstClaim } from '../read-models/claims.js';
import type { Rows } from '../read-models/database.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { unnamedVaults } from '../read-models/unnamed-vaults.js';
import { Vault } from '../vault/vault.js';
import { VaultModule } from '../vault/vault.module.js';
import { ClaimRecorder } from './claim-recorder.js';
import { Driver } from './execute-activity.js';
import { EngineModule } from './engine.module.js';
import { OrphanedVaults } from './orphaned-vaults.js';

/** Work that follows the read models: the order of claims, and vaults that nothing names. */
@Module({
  imports: [EngineModule, ReadModelsModule, VaultModule],
  providers: [
    {
      provide: ClaimRecorder,
      inject: [EVENT_STORE, CLOCK, ROWS, ReadModelRunner, LOGGER],
      useFactory: (store: EventStore, clock: Clock, rows: Rows, runner: ReadModelRunner, logger: Logger) =>
        new ClaimRecorder({
          known: {
            due: (most) => dueClaims(rows, most),
            first: (parentId, identifier) => firstClaim(rows, parentId, identifier),
            revision: (parentId) => claimsRevision(rows, parentId),
          },
          store,
          clock,
          passed: (position) => runner.current(position, claimsModel),
          failed: (err) =>
            logger.warn({ err }, 'the order of claims was not recorded; the next event brings it up again'),
        }),
    },
    {
      provide: OrphanedVaults,
      inject: [EVENT_STORE, CLOCK, Driver, Vault, ROWS, LOGGER],
      useFactory: (store: EventStore, clock: Clock, driver: Driver, vault: Vault, rows: Rows, logger: Logger) =>
        new OrphanedVaults({
          store,
          clock,
          unnamed: (after, until) => unnamedVaults(rows, after, until),
          isLive: (vaultId) => driver.isLive(vaultId),
          vault,
          reports: {
            swept: (vaultId, organizationId) =>
              logger.warn(
                { vaultId, organizationId },
                'a vault that no decision names was left behind, and is shredded',
              ),
            failed: (vaultId, err) =>
              logger.error({ err, vaultId }, 'a vault that no decision names could not be looked at'),
            stopped: (err) => logger.error({ err }, 'not all vaults were looked at; the next sweep does so again'),
          },
        }),
    },
  ],
  exports: [ClaimRecorder, OrphanedVaults],
})
export class SweepsModule {}
