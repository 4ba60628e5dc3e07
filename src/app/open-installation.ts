import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import { readProxySecret } from '../config/proxy-secret.js';
import type { Founding } from '../decide/found-organization.js';
import type { EventStore } from '../ledger/event-store.js';
import { recordFormat } from '../ledger/store-format.js';
import { openEventStore, recordsFormat, warnOfLimit } from '../ledger/stores/open-event-store.js';
import type { Clock } from '../ports/clock.js';
import type { Health } from '../ports/health.js';
import type { Randomness } from '../ports/randomness.js';
import { closeToOthers, openToOthers, readKeys, type KekSource } from '../vault/kek-source.js';
import type { KeyEncryption } from '../vault/key-encryption.js';
import { provideKeyEncryption } from '../vault/provide-key-encryption.js';
import { lockDataFolder } from './data-folder.js';
import { install, isInstalled, refuseImported, RootFile } from './installation.js';
import { refuseTakenPort } from './listen.js';
import { makePrivate } from './private-files.js';
import { refuseLostEvents, StoreRecord } from './store-record.js';
import { systemClock, systemRandomness } from './world.js';

/** An installation whose store is open. */
export interface OpenInstallation {
  /** With the folder that is really used, and with the secret of auth proxies. */
  readonly config: Config;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly keyEncryption: KeyEncryption;
  readonly rootFile: RootFile;
  readonly founding: Founding;
  /** It was founded at this start. */
  readonly isNew: boolean;
}

/**
 * Opens the installation that the settings name. It is founded if there is none and nothing says that there was one; a founding that
 * was interrupted is continued. Everything that can be refused is, before anything is written.
 */
export async function openInstallation(
  input: Config,
  { logger, health }: { readonly logger: Logger; readonly health: Health },
): Promise<OpenInstallation> {
  const isTemporary = input.eventStore === 'memory:';
  const settings = isTemporary ? { ...input, dataDir: temporaryFolder() } : input;
  const { dataDir, eventStore } = settings;
  const rootFile = new RootFile(dataDir);
  // An unreadable one is to be known before it is needed.
  await rootFile.read();
  const record = new StoreRecord(settings);
  await record.refuseOtherKind();
  await refuseLostEvents(settings);
  const source = kekSource(settings);
  const keys = await readKeys(source);
  await refuseTakenPort(settings);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await makePrivate(dataDir);
  const store = await openEventStore(eventStore, dataDir, health);
  const world = { store, clock: systemClock, randomness: systemRandomness() };
  try {
    if (!(await isInstalled(store))) await refuseLostEvents(settings, store);
    await refuseImported(store);
    await record.refuseOtherInstallation(store);
    if (recordsFormat(eventStore)) await recordFormat(world);
    const keyEncryption = await provideKeyEncryption(world, source, keys, (file) =>
      logger.warn(
        { file },
        'created a new key-encryption key: move it off the data disk, set KEK_FILE, and keep a copy',
      ),
    );
    await warnOfOpenKey(source, logger);
    // The read models in it have one writer.
    if (!isTemporary) lockDataFolder(dataDir, health);
    if (eventStore.startsWith('esdb')) await warnOfLimit(store, (message) => logger.warn(message));
    const config = { ...settings, proxySecret: await readProxySecret(settings) };
    const installed = await install(config, { ...world, keyEncryption }, await rootFile.readFounding(), (root) =>
      rootFile.writeFounding(root),
    );
    const { organizationId } = installed.founding;
    await rootFile.adopt(organizationId);
    if (!isTemporary) await record.write(organizationId);
    return { config, ...world, keyEncryption, rootFile, ...installed };
  } catch (error) {
    // Merely ending the process would leave the store's files as after a crash.
    await store.close();
    throw error;
  }
}

/** For what a store in memory needs beside it; removed with the process. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-memory-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function kekSource({ kek, kekFile, eventStore }: Config): KekSource {
  // Temporary data needs no permanent key.
  return { kek, kekFile: eventStore === 'memory:' ? undefined : kekFile };
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
