import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { activities } from '../activities/index.js';
import type { Config } from '../config/config.js';
import { REGISTRY, buildRegistry, type Registry } from '../decide/registry.js';
import { DeliveryModule } from '../delivery/delivery.module.js';
import { VoteNotices } from '../delivery/vote-notices.js';
import { mailVoteRequests } from '../delivery/vote-request-mails.js';
import { CONFIG } from '../config/config.token.js';
import { MetricsModule } from '../metrics/metrics.module.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { OidcModule } from '../oidc/oidc.module.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { KNOWN_ACTIVITIES, type KnownActivities } from '../ports/known-activities.js';
import { COUNTERS, type PasskeyCounters } from '../ports/passkeys.js';
import { PROOF_SIGNER, type ProofSigner } from '../ports/proof-signer.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { VaultDestroyer } from '../vault/destroy-vaults.js';
import { VaultModule } from '../vault/vault.module.js';
import { ActivityResponses } from './activity-responses.js';
import { CastVoteHandler } from './cast-vote.js';
import { Children } from './children.js';
import { DenialLog } from './denials.js';
import { Driver } from './execute-activity.js';
import type { CoordinatorPorts } from './pending-request.js';
import { OrganizationLookup } from './organization-lookup.js';
import { OrganizationsModule } from './organizations.module.js';
import { PreparationPorts } from './preparation-ports.js';
import { PrepareModule } from './prepare.module.js';
import { CoordinatorPool } from './coordinator-pool.js';
import { ReadingTasks } from './reading-tasks.js';
import { SubmitActivityHandler } from './submit-activity.js';

const VOTES_WANTED = Symbol('VotesWanted');

/** Decides requests and responds to them. */
@Module({
  imports: [
    CqrsModule.forRoot(),
    OrganizationsModule,
    ReadModelsModule,
    PrepareModule,
    OidcModule,
    DeliveryModule,
    VaultModule,
    MetricsModule,
  ],
  providers: [
    { provide: REGISTRY, useValue: buildRegistry(activities) },
    CoordinatorPool,
    ReadingTasks,
    DenialLog,
    {
      provide: VOTES_WANTED,
      inject: [CONFIG, VoteNotices, OrganizationLoader],
      useFactory: ({ voteNotices }: Config, notices: VoteNotices, loader: OrganizationLoader) =>
        voteNotices
          ? mailVoteRequests(notices, async (organization) => (await loader.parentOf(organization))?.organization)
          : undefined,
    },
    {
      provide: Driver,
      inject: [
        CONFIG,
        EVENT_STORE,
        OrganizationLoader,
        REGISTRY,
        KNOWN_ACTIVITIES,
        DenialLog,
        COUNTERS,
        CLOCK,
        RANDOMNESS,
        PROOF_SIGNER,
        PreparationPorts,
        Children,
        VaultDestroyer,
        VOTES_WANTED,
        ReadingTasks,
        DRIVER_METRICS,
      ],
      useFactory: (
        { passkeyOrigins, limits, restored }: Config,
        store: EventStore,
        loader: OrganizationLoader,
        registry: Registry,
        known: KnownActivities,
        denials: DenialLog,
        counters: PasskeyCounters,
        clock: Clock,
        randomness: Randomness,
        proofs: ProofSigner,
        preparation: PreparationPorts,
        children: Children,
        shredder: VaultDestroyer,
        votesWanted: CoordinatorPorts['votesWanted'],
        reading: ReadingTasks,
        metrics: DriverMetrics,
      ) =>
        new Driver({
          store,
          loader,
          registry,
          known,
          counters,
          denials,
          clock,
          randomness,
          proofs,
          passkeyOrigins,
          limits,
          prepare: (attempt) => preparation.for(attempt),
          children,
          shred: (vaultId) => shredder.shred(vaultId),
          ...(votesWanted ? { votesWanted } : {}),
          reading,
          metrics,
          isReadOnly: restored,
        }),
    },
    ActivityResponses,
    OrganizationLookup,
    SubmitActivityHandler,
    CastVoteHandler,
  ],
  exports: [REGISTRY, Driver, OrganizationLookup, CoordinatorPool],
})
export class CoordinatorModule {}
