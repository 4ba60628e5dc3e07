import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../config/config.js';
import { shownStore } from '../config/urls.js';
import { replacePrivateFile } from '../files/private-file.js';
import type { EventStore } from '../ledger/event-store.js';
import { eventsFile } from '../ledger/stores/open-event-store.js';
import { ReadModelDatabase } from '../read-models/database.js';
import { lastProjected } from '../read-models/projector.js';
import { recordedFounding } from './installation.js';

type Settings = Pick<Config, 'dataDir' | 'eventStore'>;

interface Recorded {
  /** `sqlite:`, or the address of a server without credentials. */
  readonly eventStore: string;
  readonly organizationId: string;
}

/** `DATA_DIR/store.json`: which event store the folder belongs to, so that it is not started with another one by mistake. */
export class StoreRecord {
  private readonly file: string;

  constructor(private readonly settings: Settings) {
    this.file = join(settings.dataDir, 'store.json');
  }

  /** @throws {Error} if the folder was used with SQLite and is started with a server, or the reverse */
  async refuseOtherKind(): Promise<void> {
    const { dataDir, eventStore } = this.settings;
    if (eventStore === 'memory:') return;
    const recorded = await this.read();
    const known = recorded?.eventStore ?? ((await sizeOf(eventsFile(dataDir))) > 0 ? 'sqlite:' : undefined);
    if (known === undefined || isFile(known) === isFile(eventStore)) return;
    throw new Error(
      `the data folder \`${resolve(dataDir)}\` belongs to EVENT_STORE=${known}, but EVENT_STORE is ${shownStore(eventStore)}; ` +
        `start it with ${known}, or set DATA_DIR to the folder of the other store`,
    );
  }

  /** @throws {Error} if the folder was used with another installation of this kind of store */
  async refuseOtherInstallation(store: Pick<EventStore, 'read'>): Promise<void> {
    const recorded = await this.read();
    const installed = await recordedFounding(store);
    if (!recorded || !installed || recorded.organizationId === installed.organizationId) return;
    const { dataDir, eventStore } = this.settings;
    throw new Error(
      `the data folder \`${resolve(dataDir)}\` belongs to organization ${recorded.organizationId} at ` +
        `EVENT_STORE=${recorded.eventStore}, but EVENT_STORE=${shownStore(eventStore)} contains organization ` +
        `${installed.organizationId}; set EVENT_STORE to the store of this folder, or DATA_DIR to another folder`,
    );
  }

  /** On disk once this resolves. */
  async write(organizationId: string): Promise<void> {
    const recorded: Recorded = { eventStore: shownStore(this.settings.eventStore), organizationId };
    const text = `${JSON.stringify(recorded)}\n`;
    if ((await readFile(this.file, 'utf8').catch(() => undefined)) !== text) await replacePrivateFile(this.file, text);
  }

  private async read(): Promise<Recorded | undefined> {
    const text = await readFile(this.file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as Recorded;
    } catch (error) {
      throw new Error(`${this.file} is not JSON: delete it, if EVENT_STORE is the store of this folder`, {
        cause: error,
      });
    }
  }
}

const isFile = (eventStore: string): boolean => eventStore === 'sqlite:';

/**
 * Refuses to begin anew in a folder that an installation has used: its events are lost, or elsewhere. Without a store, only a file
 * that is missing or empty is noticed, before anything is created.
 * @throws {Error} that says what is there, how to restore, and how to begin anew
 */
export async function refuseLostEvents({ dataDir, eventStore }: Settings, store?: EventStore): Promise<void> {
  if (eventStore === 'memory:') return;
  const file = eventsFile(dataDir);
  if (!store && (!isFile(eventStore) || (await sizeOf(file)) > 0)) return;
  const traces = await tracesIn(dataDir);
  if (traces.length === 0) return;
  const [where, restore] = isFile(eventStore)
    ? [`\`${resolve(file)}\``, 'put events.db back from a backup, with the events.db-wal saved with it']
    : [shownStore(eventStore), 'restore the event store from a backup'];
  throw new Error(
    `there are no events in ${where}, but an installation has used the folder \`${resolve(dataDir)}\` (${traces.join(', ')}): ` +
      `${restore}, or set DATA_DIR or EVENT_STORE to the right one; to begin anew on purpose, use an empty folder, or move ` +
      'root.json, store.json, read-models.db* and events.db* out of this one',
  );
}

/** What only a founded installation leaves in its folder. A key does not count: operators put it there first. */
async function tracesIn(dataDir: string): Promise<readonly string[]> {
  const traces: string[] = [];
  for (const name of ['root.json', 'store.json']) if ((await sizeOf(join(dataDir, name))) > 0) traces.push(name);
  const log = 'events.db-wal';
  if ((await sizeOf(eventsFile(dataDir))) === 0 && (await sizeOf(join(dataDir, log))) > 0) traces.push(log);
  const rows = join(dataDir, 'read-models.db');
  if ((await sizeOf(rows)) > 0) {
    const seen = seenBy(rows);
    if (seen !== undefined) traces.push(`read-models.db, ${seen}`);
  }
  return traces;
}

function seenBy(file: string): string | undefined {
  let rows: ReadModelDatabase | undefined;
  try {
    rows = new ReadModelDatabase(file);
    const last = lastProjected(rows);
    return last && `which was built from events up to position ${last.position}`;
  } catch {
    return 'which cannot be read';
  } finally {
    rows?.close();
  }
}

/** In bytes; 0 if there is no such file. */
async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  return found?.size ?? 0;
}
