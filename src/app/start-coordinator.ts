import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { checkClock } from './check-clock.js';
import { systemClock, systemRandomness } from './world.js';
import type { DeliveryReport } from '../delivery/delivery.js';
import { openDelivery } from '../delivery/open-delivery.js';
import { lockDataFolder } from './data-folder.js';
import type { EventStore } from '../ledger/event-store.js';
import { eventsFile, openEventStore, warnOfLimit } from '../ledger/stores/open-event-store.js';
import { createLogger } from '../http/logger.js';
import { projectInMemory, projectIntoFile } from '../read-models/projecting.js';
import { readProxySecret } from '../config/proxy-secret.js';
import { install, isInstalled, refuseImported, RootFile } from './installation.js';
import { makePrivate } from './private-files.js';
import { closeToOthers, openToOthers, readKeys, type KekSource } from '../vault/kek-source.js';
import { provideKeyEncryption } from '../vault/provide-key-encryption.js';
import { listen, tellCommandLine } from './listen.js';

function kekSource({ kek, kekFile, eventStore }: Config): KekSource {
  // Temporary data needs no permanent key.
  return { kek, kekFile: eventStore === 'memory:' ? undefined : kekFile };
}

/** Undelivered messages are never lost silently; a report contains no code. */
function reported(report: DeliveryReport, logger: Logger): void {
  if (report.outcome === 'failed' || report.outcome === 'abandoned')
    logger.error(report, 'a message was not delivered');
  else if (report.outcome === 'retrying') logger.warn(report, 'a message could not be delivered yet');
}

/** Refuses to start from nothing if data was expected, before anything is created. */
async function checkData({ requireData, eventStore, dataDir }: Config, store: EventStore | undefined): Promise<void> {
  if (!requireData) return;
  const where = eventStore === 'sqlite:' ? resolve(eventsFile(dataDir)) : 'EVENT_STORE';
  const isThere = store
    ? await isInstalled(store)
    : eventStore === 'sqlite:'
      ? existsSync(eventsFile(dataDir))
      : eventStore !== 'memory:';
  if (isThere) return;
  throw new Error(
    `REQUIRE_DATA is true, but there is no installation in ${where}: set DATA_DIR or EVENT_STORE to the right one, or ` +
      'start without REQUIRE_DATA to create a new one',
  );
}

/** Not refused: a mounted secret may be readable by a group on purpose. */
async function warnOfOpenKey(source: KekSource, logger: Logger): Promise<void> {
  const mode = await openToOthers(source);
  const { kekFile: file } = source;
  if (mode === undefined || file === undefined) return;
  logger.warn(
    { file, mode: mode.toString(8) },
    `others may read or write the key-encryption key: ${closeToOthers(file)}`,
  );
}

/** A coordinator, with the auth proxy next to it if APP says so. */
export async function startCoordinator(given: Config): Promise<void> {
  await checkData(given, undefined);
  const source = kekSource(given);
  // Before anything is created: with the wrong key, nothing must be written.
  const keys = await readKeys(source);
  await mkdir(given.dataDir, { recursive: true, mode: 0o700 });
  await makePrivate(given.dataDir);
  const logger = createLogger(given.logLevel);
  const world = {
    store: await openEventStore(given.eventStore, given.dataDir),
    clock: systemClock,
    randomness: systemRandomness(),
  };
  const madeKey = (file: string): void =>
    logger.warn({ file }, 'created a new key-encryption key: move it off the data disk, set KEK_FILE, and keep a copy');
  const opening = checkData(given, world.store)
    .then(() => refuseImported(world.store))
    .then(() => provideKeyEncryption(world, source, keys, madeKey));
  const keyEncryption = await opening.catch(async (error: unknown) => {
    // Merely ending the process would leave the store's files as after a crash.
    await world.store.close();
    throw error;
  });
  await warnOfOpenKey(source, logger);
  try {
    // The read models in it have one writer.
    if (given.eventStore !== 'memory:') lockDataFolder(given.dataDir);
  } catch (error) {
    await world.store.close();
    throw error;
  }
  if (given.eventStore.startsWith('esdb')) await warnOfLimit(world.store, (message) => logger.warn(message));
  const config = { ...given, proxySecret: await readProxySecret(given) };
  const rootFile = new RootFile(config.dataDir);
  const remembered = await rootFile.read();
  const { founding, isNew } = await install(config, { ...world, keyEncryption }, remembered, (root) =>
    rootFile.write(root),
  );
  // Loaded only once the settings and keys are known to be valid, so that a failing start reports it at once; and while the thread
  // of the read models loads its own modules.
  const readModelsFile = join(config.dataDir, 'read-models.db');
  const [projecting, { createCoordinator }] = await Promise.all([
    config.eventStore === 'memory:'
      ? projectInMemory()
      : projectIntoFile(
          readModelsFile,
          { identity: founding.organizationId, head: (await world.store.head()) ?? -1n },
          world.store,
          (err) =>
            logger.warn({ err, file: readModelsFile }, 'the read models were damaged, and are rebuilt from the events'),
        ),
    import('./create-coordinator.js'),
  ]);
  if (!config.clockWasAhead) {
    await checkClock(world.clock, world.store, projecting.rows).catch(async (error: unknown) => {
      await projecting.close();
      await world.store.close();
      throw error;
    });
  }
  const { delivery, destinations, outboxFile } = openDelivery(config, (report) => reported(report, logger));
  for (const [channel, destination] of Object.entries(destinations)) {
    if (!destination && !config.restored)
      logger.warn({ channel, outboxFile }, 'messages are not sent: they are written to the outbox');
  }
  const coordinator = await createCoordinator(config, {
    ...world,
    keyEncryption,
    delivery,
    logger,
    projecting,
    ...(config.eventStore === 'memory:'
      ? {}
      : { snapshotFolder: join(config.dataDir, 'snapshots'), stateFolder: join(config.dataDir, 'states') }),
  });
  const { makeCurvesReady } = await import('../keyring/make-curves-ready.js');
  for (const { curve, library, passedOver } of makeCurvesReady()) {
    logger.info({ library, ...(passedOver.length > 0 ? { passedOver } : {}) }, `signs on ${curve}`);
  }
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
      `Countersign is up${isNew ? ', with a new root organization' : ''}.`,
      '',
      `  API            ${apiUrl}`,
      ...(authProxyUrl ? [`  Auth proxy     ${authProxyUrl}`] : []),
      `  Docs           ${apiUrl}/docs`,
      `  Health         ${apiUrl}/health/ready    metrics: ${apiUrl}/metrics`,
      `  Organization   ${founding.organizationId}`,
      `  Events         ${whereEventsAre(config)}`,
      `  Data           ${dataDir}`,
      root?.apiPrivateKey
        ? `  Root API key   ${join(dataDir, 'root.json')} (keep it secret)`
        : `  Root API key   ${founding.apiPublicKey} (the private key is not stored here)`,
      '',
      `Take the tour:   ${tourCommand(given)}      (in a second terminal)`,
      '',
    ].join('\n'),
  );
  const { organizationId } = founding;
  tellCommandLine({ apiUrl, ...(authProxyUrl ? { authProxyUrl } : {}), organizationId, dataDir, isNew });
}

/** Describes this coordinator as it was started. */
function tourCommand({ dataDir }: Config): string {
  // The command line starts this process with a channel.
  if (!process.channel) return 'npm run tour';
  const countersign = process.env['npm_command'] === 'exec' ? 'npx countersign' : 'countersign';
  return `${countersign} tour${resolve(dataDir) === resolve('data') ? '' : ` --data-dir ${dataDir}`}`;
}

/** Never the connection string itself: it may contain a password. */
function whereEventsAre({ eventStore, dataDir }: Config): string {
  if (eventStore === 'memory:') return 'in memory, lost on exit';
  return eventStore === 'sqlite:' ? resolve(eventsFile(dataDir)) : 'EventStoreDB at EVENT_STORE';
}
