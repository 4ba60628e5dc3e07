import { randomBytes } from 'node:crypto';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { release } from '../config/release.js';
import type { Delivery } from '../delivery/delivery.js';
import { VoteNotices } from '../delivery/vote-notices.js';
import { ClaimRecorder } from '../coordinator/claim-recorder.js';
import { Driver } from '../coordinator/execute-activity.js';
import { OrphanedVaults } from '../coordinator/orphaned-vaults.js';
import { CoordinatorPool } from '../coordinator/coordinator-pool.js';
import { allowOrigins } from '../http/cors.js';
import { Freshness } from '../http/freshness.js';
import { logConditions } from '../logging/log-conditions.js';
import { OutboundHttp } from '../http-client/outbound-http.js';
import { listeningAddress } from '../http/listening-address.js';
import { nestLogger } from '../logging/logger.js';
import { Metrics } from '../metrics/metrics.js';
import { closeServer, measure, newAdapter, prepareServer, refuseAfterFailure, type Server } from '../http/server.js';
import { Shutdown } from '../http/shutdown.js';
import { StoreDeadline } from '../http/store-deadline.js';
import { uuidV7 } from '../ledger/ids.js';
import { openKeyring } from '../keyring/open-keyring.js';
import type { EventStore } from '../ledger/event-store.js';
import type { HistoryOptions } from '../ledger/history-options.js';
import { OrganizationLoader } from '../ledger/load-organization.js';
import { SNAPSHOTS, type Snapshots } from '../ledger/snapshots.js';
import type { Clock } from '../ports/clock.js';
import { Health } from '../ports/health.js';
import type { Randomness } from '../ports/randomness.js';
import { recordBoot } from '../proofs/boot.js';
import { BootLog } from '../proofs/boot-log.js';
import { EphemeralKey } from '../proofs/ephemeral-key.js';
import { openSoftwareAttestor } from '../proofs/software-attestor.js';
import { endedVaults } from '../read-models/destroyed-vaults.js';
import type { Projecting } from '../read-models/projecting.js';
import { ReadModelRunner } from '../read-models/runner.js';
import { pendingDeliveries } from '../read-models/webhooks.js';
import type { KeyEncryption } from '../vault/key-encryption.js';
import { VaultDestroyer } from '../vault/destroy-vaults.js';
import { WebhookDispatcher } from '../webhooks/dispatcher.js';
import { AppModule } from './app.module.js';
import { closeInOrder } from './close-in-order.js';
import { runStartupChecks } from './startup-checks.js';
import { warnOfSettings } from './warn-of-settings.js';
import { watchClock } from './watch-clock.js';

/** The adapters that a process chooses; everything else is built from them. */
export interface Adapters extends HistoryOptions {
  readonly store: EventStore;
  /** The read models; closed with the coordinator. */
  readonly projecting: Projecting;
  readonly clock: Clock;
  readonly randomness: Randomness;
  /** Opens the secrets in the vault. */
  readonly keyEncryption: KeyEncryption;
  /** Delivery of messages to people; closed with the coordinator. */
  readonly delivery: Delivery & { readonly open?: number; close(): Promise<void> };
  readonly logger: Logger;
  /** False for a copy on which nothing may leave the process; true by default. */
  readonly deliversWebhooks?: boolean;
  /** Where the store reports what it notices. A fatal failure of it refuses every later request. */
  readonly health?: Health;
}

/** Longest time that startup waits for the read models, in milliseconds. */
const startupWaitMs = 1_000;

/** An assembled coordinator, ready to listen. */
export interface Coordinator extends Server {
  /** Finishes accepted work, then releases everything, including the store. */
  close(): Promise<void>;
}

/** Assembles the parts. From here on, the read models follow the store. */
export async function createCoordinator(config: Config, adapters: Adapters): Promise<Coordinator> {
  const adapter = newAdapter(config);
  const { server } = adapter.getInstance();
  const shutdown = new Shutdown();
  const { clock, randomness, logger, store, health = new Health(logConditions(logger)) } = adapters;
  warnOfSettings(config, { clock, logger });
  const newId = () => uuidV7(clock, randomness);
  // Nothing is folded before the app exists.
  const later: { loader?: OrganizationLoader } = {};
  const familyOf = (organizationId: string) => later.loader?.familyOf(organizationId) ?? organizationId;
  const keyring = await openKeyring({ ...adapters, sandboxUntil: config.sandboxUntil, newId, familyOf });
  const log = new BootLog({ ...adapters, newId });
  const attestor = await openSoftwareAttestor({ keys: keyring.keys, log, clock });
  const proofs = EphemeralKey.make(randomness);
  await recordBoot(config, proofs, { attestor, log });
  const own = () => listeningAddress(server);
  const told = () => config.publicUrl ?? own();
  const invitations = () => config.invitationUrl ?? `${told()}/invitations/accept`;
  const addresses = { own, told, invitations };
  const proxySecret = config.proxySecret ?? (config.app === 'all' ? randomBytes(32).toString('base64url') : undefined);
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.forRoot({ ...adapters, health, shutdown, config, keyring, attestor, proofs, addresses, proxySecret }),
    adapter,
    { logger: nestLogger(logger), bodyParser: false, abortOnError: false },
  );
  const loader = app.get(OrganizationLoader);
  later.loader = loader;

  allowOrigins(adapter.getInstance());
  prepareServer(adapter, { proxySecret, logger, shutdown, servesProxy: config.app === 'all' });
  refuseAfterFailure(adapter, health);
  // Not beside a store of this process, which always responds: one interceptor sends every request through RxJS.
  if (store.remote) app.useGlobalInterceptors(new StoreDeadline(store.remote));
  const metrics = app.get(Metrics);
  metrics.measureOpenMessages(() => adapters.delivery.open ?? 0);
  metrics.describeBuild({ version: release(), commit: config.buildCommit, node: process.version });
  measure(adapter, metrics);
  await app.init();
  const runner = app.get(ReadModelRunner);
  runner.watch((event) => loader.follow(event));
  runner.start();
  // Responses from before a restart reflected everything recorded; readers must not fall behind them.
  const head = (await store.head()) ?? -1n;
  app.get(Freshness).begin(head);
  // Usually takes a moment; a long rebuild continues while the server is up, and `health/ready` reports it.
  await runner.passed(head, startupWaitMs).catch(() => undefined);

  const { rows } = adapters.projecting;
  // What is read-only delivers nothing, and leaves what an earlier run did not finish.
  const isReadOnly = config.restored;
  const isSilent = isReadOnly || adapters.deliversWebhooks === false || adapters.takesImported === true;
  const webhooks = isSilent ? undefined : app.get(WebhookDispatcher);
  if (webhooks) metrics.measureWaitingDeliveries(() => pendingDeliveries(rows));
  webhooks?.start();
  const claims = app.get(ClaimRecorder);
  const caughtUp = (signal: AbortSignal) => runner.caughtUp(head, signal);
  const shredder = app.get(VaultDestroyer);
  const lostVaults = app.get(OrphanedVaults);
  if (!isReadOnly) {
    runner.follow(() => claims.look());
    claims.look();
    shredder.sweep(caughtUp, () => endedVaults(rows));
    lostVaults.start(caughtUp);
  }
  const looks = isReadOnly ? undefined : runStartupChecks(app, caughtUp, { rows, logger });
  const endWatch = watchClock(clock, { health, logger });

  return {
    app,
    shutdown,
    /** What takes requests, then the work that they started, then the stores. */
    close: () =>
      closeInOrder({
        'the HTTP server': async () => {
          const cutOff = await closeServer({ app, shutdown });
          if (cutOff > 0)
            logger.warn({ cutOff }, 'requests took too long to finish, and their connections were closed');
          endWatch();
        },
        'webhook deliveries': () => webhooks?.close(),
        'requests in progress': () => app.get(Driver).drain(),
        'outbound requests': () => app.get(OutboundHttp).close(),
        'worker threads': () => app.get(CoordinatorPool).close(),
        'the signing thread': () => keyring.close(),
        'the order of claims': () => claims.close(),
        'the key of app proofs': () => proofs.close(),
        'the destruction of vaults': () => shredder.close(),
        'the search for lost vaults': () => lostVaults.close(),
        'startup checks': () => looks?.close(),
        'notices of votes': () => app.get(VoteNotices).close(),
        'message delivery': () => adapters.delivery.close(),
        'the read models': () => runner.close(),
        snapshots: () => app.get<Snapshots | undefined>(SNAPSHOTS)?.settled(),
        'the rows': () => adapters.projecting.close(),
        'the event store': () => store.close(),
      }),
  };
}
