import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { activities } from '../activities/index.js';
import type { Config } from '../config/config.js';
import { REGISTRY, buildRegistry, type Registry } from '../decide/registry.js';
import { DeliveryModule } from '../delivery/delivery.module.js';
import { VoteNotices } from '../delivery/vote-notices.js';
import { mailVoteRequests } from '../delivery/vote-request-mails.js';
import { CONFIG } from '../http/config.token.js';
import { MetricsModule } from '../http/metrics.module.js';
import { KEYRING, type OpenKeyring } from '../keyring/open-keyring.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { HISTORY, type HistoryOptions } from '../ledger/history-options.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { OidcModule } from '../oidc/oidc.module.js';
import { CLAIMS, type Claims } from '../ports/claims.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { DRIVER_METRICS, type DriverMetrics } from '../ports/driver-metrics.js';
import { ROWS } from '../read-models/define-query.js';
import { KNOWN_ACTIVITIES, type KnownActivities } from '../ports/known-activities.js';
import { OIDC, type OidcPort } from '../ports/oidc.js';
import { COUNTERS, type PasskeyCounters } from '../ports/passkeys.js';
import { PROOF_SIGNER, type ProofSigner } from '../ports/proof-signer.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import type { Rows } from '../read-models/database.js';
import { denialsRevision } from '../read-models/denials.js';
import { ReadModelsModule } from '../read-models/read-models.module.js';
import { TaskPool } from '../threads/task-pool.js';
import { VaultDestroyer } from '../vault/destroy-vaults.js';
import { VaultModule } from '../vault/vault.module.js';
import { ActivityResponses } from './activity-responses.js';
import { CastVoteHandler } from './cast-vote.js';
import { Children } from './children.js';
import { ChildrenModule } from './children.module.js';
import { DenialLog } from './denials.js';
import { Driver } from './execute-activity.js';
import type { CoordinatorPorts } from './pending-request.js';
import { OrganizationLookup } from './organization-lookup.js';
import { PREPARE, PrepareModule } from './prepare.module.js';
import { QueryReaders } from './query-readers.js';
import { coordinatorTasks, QueryTasks, type CoordinatorPool } from './query-tasks.js';
import { ReadSessions } from './read-sessions.js';
import { ReadingTasks } from './reading-tasks.js';
import { LIMITS, RunQueryHandler } from './run-query.js';
import { SubmitActivityHandler } from './submit-activity.js';

const VOTES_WANTED = Symbol('VotesWanted');

/** Decides requests and responds to them. */
@Module({
  imports: [
    CqrsModule.forRoot(),
    LedgerModule,
    ReadModelsModule,
    ChildrenModule,
    PrepareModule,
    OidcModule,
    DeliveryModule,
    VaultModule,
    MetricsModule,
  ],
  providers: [
    { provide: REGISTRY, useFactory: () => buildRegistry(activities) },
    { provide: LIMITS, inject: [CONFIG], useFactory: ({ limits }: Config) => limits },
    { provide: TaskPool, useFactory: (): CoordinatorPool => new TaskPool(coordinatorTasks) },
    { provide: ReadingTasks, inject: [TaskPool], useFactory: (pool: CoordinatorPool) => new ReadingTasks(pool) },
    {
      provide: QueryTasks,
      inject: [TaskPool, EVENT_STORE, ROWS, HISTORY],
      useFactory: (pool: CoordinatorPool, store: EventStore, rows: Rows, { stateFolder }: HistoryOptions) =>
        new QueryTasks(pool, { store, rows, ...(stateFolder === undefined ? {} : { stateFolder }) }),
    },
    {
      provide: DenialLog,
      inject: [EVENT_STORE, CLOCK, ROWS],
      useFactory: (store: EventStore, clock: Clock, rows: Rows) =>
        new DenialLog(store, clock, (organizationId) => denialsRevision(rows, organizationId)),
    },
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
        PREPARE,
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
        prepare: CoordinatorPorts['prepare'],
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
          prepare,
          children,
          shred: (vaultId) => shredder.shred(vaultId),
          ...(votesWanted ? { votesWanted } : {}),
          reading,
          metrics,
          isReadOnly: restored,
        }),
    },
    {
      provide: ActivityResponses,
      inject: [Driver, KNOWN_ACTIVITIES, REGISTRY, KEYRING, CLOCK, DRIVER_METRICS],
      useFactory: (
        driver: Driver,
        known: KnownActivities,
        registry: Registry,
        { tokens }: OpenKeyring,
        clock: Clock,
        metrics: DriverMetrics,
      ) => new ActivityResponses(driver, known, registry, { tokens, clock, metrics }),
    },
    {
      provide: OrganizationLookup,
      inject: [OrganizationLoader, CLAIMS, KEYRING, OIDC, CLOCK],
      useFactory: (loader: OrganizationLoader, claims: Claims, { tokens }: OpenKeyring, oidc: OidcPort, clock: Clock) =>
        new OrganizationLookup({ loader, claims, tokens, oidc, clock }),
    },
    {
      provide: QueryReaders,
      inject: [CONFIG, OrganizationLoader, OrganizationLookup, KEYRING, COUNTERS, CLOCK],
      useFactory: (
        { passkeyOrigins }: Config,
        loader: OrganizationLoader,
        lookup: OrganizationLookup,
        { tokens }: OpenKeyring,
        counters: PasskeyCounters,
        clock: Clock,
      ) => {
        const sessions = new ReadSessions({ loader, tokens, clock });
        return new QueryReaders({ loader, lookup, sessions, clock, counters, passkeyOrigins });
      },
    },
    SubmitActivityHandler,
    CastVoteHandler,
    RunQueryHandler,
  ],
  exports: [REGISTRY, Driver, TaskPool],
})
export class EngineModule {}
