import { join, resolve } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { continueFromRecorded } from './watch-clock.js';
import type { DeliveryReport } from '../delivery/delivery.js';
import { openDelivery } from '../delivery/open-delivery.js';
import { uuidV7 } from '../ledger/ids.js';
import { eventsFile } from '../ledger/stores/open-event-store.js';
import { logConditions } from '../logging/log-conditions.js';
import { createLogger } from '../logging/logger.js';
import type { Metrics } from '../metrics/metrics.js';
import { Health } from '../ports/health.js';
import { BootLog } from '../proofs/boot-log.js';
import { adoptBuilt } from '../read-models/build.js';
import { projectInMemory, projectIntoFile, type Projecting } from '../read-models/projecting.js';
import { freeBytes, sizesIn, watchDisk } from './watch-disk.js';
import { listen, tellCommandLine } from './listen.js';
import { openInstallation, type OpenInstallation } from './open-installation.js';

/** Undelivered messages are never lost silently; a report contains no code. */
function reported(report: DeliveryReport, logger: Logger): void {
  if (report.outcome === 'failed' || report.outcome === 'abandoned')
    logger.error(report, 'a message was not delivered');
  else if (report.outcome === 'retrying') logger.warn(report, 'a message could not be delivered yet');
}

/**
 * The read models of an installation.
 * @throws {Error} if they have seen events that the store does not have, unless RESTORED accepts that; it is recorded then
 */
async function openReadModels(
  { config, store, clock, randomness, founding }: OpenInstallation,
  logger: Logger,
): Promise<Projecting> {
  if (config.eventStore === 'memory:') return projectInMemory();
  const file = join(config.dataDir, 'read-models.db');
  const head = (await store.head()) ?? -1n;
  return projectIntoFile(file, { identity: founding.organizationId, head }, store, {
    damaged: (err) => logger.warn({ err, file }, 'the read models were damaged, and are rebuilt from the events'),
    adopt() {
      const outcome = adoptBuilt(file, founding.organizationId);
      if (outcome) logger.info({ file, outcome }, 'read models had been built for the next start');
      return outcome === 'adopted';
    },
    async behind({ stream, revision, position }) {
      if (!config.restored) {
        throw new Error(
          `the event store has lost events: its last one is at position ${head}, and \`${file}\` was built from one at position ` +
            `${position} (\`${stream}\`, revision ${revision}) that it does not have; restore a newer backup` +
            `${config.eventStore === 'sqlite:' ? ', with the events.db-wal saved with it,' : ''} ` +
            'or accept the loss by starting once with RESTORED=true (read-only), then without it',
        );
      }
      const log = new BootLog({ store, clock, newId: () => uuidV7(clock, randomness) });
      await log.restored({ seen: { stream, revision, position: String(position) }, head: String(head) });
      logger.warn({ position: String(position), head: String(head) }, 'the loss of events is accepted, and recorded');
    },
  });
}

/** A coordinator, with the auth proxy next to it if APP says so. */
export async function startCoordinator(input: Config): Promise<void> {
  const logger = createLogger(input.logLevel);
  // A restart is the recovery. What was acknowledged is on disk, so nothing is closed.
  const health = new Health(logConditions(logger), undefined, () => process.exit(1));
  const opened = await openInstallation(input, { logger, health });
  const { config, store, clock, randomness, keyEncryption, rootFile, founding, isNew } = opened;
  const world = { store, clock, randomness };
  // Loaded only once the settings and keys are known to be valid, so that a failing start reports it at once; and while the thread
  // of the read models loads its own modules.
  const loading = import('./create-coordinator.js');
  loading.catch(() => undefined);
  let projecting: Projecting | undefined;
  try {
    projecting = await openReadModels(opened, logger);
    await continueFromRecorded(clock, store, projecting.rows, logger);
  } catch (error) {
    await projecting?.close();
    await store.close();
    throw error;
  }
  const { createCoordinator } = await loading;
  // Messages can be sent before there is anything to count them.
  const counted: { metrics?: Metrics } = {};
  const { delivery, destinations, outboxFile } = openDelivery(config, (report) => {
    reported(report, logger);
    counted.metrics?.messageEnded(report.channel, report.outcome);
  });
  for (const [channel, destination] of Object.entries(destinations)) {
    if (!destination && !config.restored)
      logger.warn({ channel, outboxFile }, 'messages are not sent: they are written to the outbox');
  }
  const coordinator = await createCoordinator(config, {
    ...world,
    keyEncryption,
    delivery,
    logger,
    health,
    projecting,
    ...(config.eventStore === 'memory:'
      ? {}
      : { snapshotFolder: join(config.dataDir, 'snapshots'), stateFolder: join(config.dataDir, 'states') }),
  });
  const { Metrics: ownMetrics } = await import('../metrics/metrics.js');
  const metrics = coordinator.app.get(ownMetrics);
  counted.metrics = metrics;
  if (config.eventStore !== 'memory:') {
    metrics.measureDisk(
      () => sizesIn(config.dataDir),
      () => freeBytes(config.dataDir),
    );
  }
  // Now, and not at the first signature, which would have everyone wait for it.
  const { chosenSecp256k1 } = await import('../keyring/secp256k1.js');
  const { library, passedOver } = chosenSecp256k1();
  logger.info({ library: library.name, passedOver }, 'signs on secp256k1');
  if (config.eventStore !== 'memory:') await watchDisk(config.dataDir, config.minFreeDisk, health);
  await listen(coordinator, config, logger);

  const apiUrl = config.publicUrl ?? (await coordinator.app.getUrl()).replace('[::1]', 'localhost');
  const root = await rootFile.read();
  const authProxyUrl = config.authProxyUrl ?? (config.app === 'all' ? apiUrl : undefined);
  if (root && (root.apiUrl !== apiUrl || root.authProxyUrl !== authProxyUrl)) {
    const { authProxyUrl: _before, ...rest } = root;
    await rootFile.write({ ...rest, apiUrl, ...(authProxyUrl ? { authProxyUrl } : {}) });
  }
  const dataDir = resolve(config.dataDir);
  process.stdout.write(
    [
      `Countersign is up${isNew ? ', with a new root organization' : ''}${config.restored ? ', read-only (RESTORED)' : ''}.`,
      '',
      `  API            ${apiUrl}`,
      ...(authProxyUrl ? [`  Auth proxy     ${authProxyUrl}`] : []),
      `  Docs           ${apiUrl}/docs`,
      `  Health         ${apiUrl}/health/ready    metrics: ${apiUrl}/metrics`,
      `  Organization   ${founding.organizationId}`,
      `  Events         ${whereEventsAre(config)}`,
      `  Data           ${dataDir}${config.eventStore === 'memory:' ? ' (temporary, removed at the end)' : ''}`,
      root?.apiPrivateKey
        ? `  Root API key   ${join(dataDir, 'root.json')} (keep it secret)`
        : `  Root API key   ${founding.apiPublicKey} (the private key is not stored here)`,
      '',
      ...(isNew ? [`Take the tour:   ${tourCommand(config)}      (in a second terminal)`, ''] : []),
    ].join('\n'),
  );
  const { organizationId } = founding;
  tellCommandLine({ apiUrl, ...(authProxyUrl ? { authProxyUrl } : {}), organizationId, dataDir, isNew });
}

/** Describes this coordinator as it was started. */
function tourCommand({ dataDir, eventStore }: Config): string {
  const folder = resolve(dataDir) === resolve('data') ? '' : ` --data-dir ${dataDir}`;
  // The command line starts this process with a channel.
  if (!process.channel) return `npm run tour${eventStore === 'memory:' ? ` --${folder}` : ''}`;
  const countersign = process.env['npm_command'] === 'exec' ? 'npx countersign' : 'countersign';
  return `${countersign} tour${folder}`;
}

/** Never the connection string itself: it may contain a password. */
function whereEventsAre({ eventStore, dataDir }: Config): string {
  if (eventStore === 'memory:') return 'in memory, lost on exit';
  return eventStore === 'sqlite:' ? resolve(eventsFile(dataDir)) : 'EventStoreDB at EVENT_STORE';
}
