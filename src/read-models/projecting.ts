import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { EventMetadata } from '../ledger/chain.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import { packEvents } from './packed-events.js';
import { ReadModelDatabase, type Rows } from './database.js';
import { readModels } from './index.js';
import { lastProjected, Projector, type EventSource, type Progress } from './projector.js';

export const PROJECTING = Symbol('Projecting');

/** Where projections run, and the rows that queries read. */
export interface Projecting {
  readonly rows: Rows;
  progress(): readonly Progress[];
  /** Takes the next events; resolves once their rows can be read. @throws if the rows cannot be written at all */
  project(events: readonly RecordedEvent[]): Promise<void>;
  /** From now on it does not keep the process alive; callers that wait for a response must do so themselves. */
  unref?(): void;
  close(): Promise<void>;
}

/** In this thread and in memory, for tests and short runs. */
export function projectInMemory(): Projecting {
  const database = new ReadModelDatabase(':memory:');
  const projector = new Projector(database, readModels, { identity: 'memory', head: -1n });
  return {
    rows: database,
    progress: () => projector.progress(),
    project: (events) => Promise.resolve(void projector.project(events)),
    close: () => Promise.resolve(database.close()),
  };
}

/**
 * In a separate thread, into a file: writing rows takes as long as deciding, and must not delay it. Rows of events that
 * the store does not have, such as those of another branch of a backup, are rebuilt.
 */
export async function projectIntoFile(
  file: string,
  { identity, head }: Omit<EventSource, 'isAnother'>,
  store: Pick<EventStore, 'read'>,
): Promise<Projecting> {
  const source: EventSource = { identity, head, isAnother: !(await hasWhatWasProjected(store, file)) };
  // Flags of the process such as --input-type are not meant for the thread, and some would stop it.
  const worker = new Worker(new URL('./projector-worker.js', import.meta.url), {
    workerData: { file, source },
    execArgv: [],
  });
  const gone = new Promise<never>((_resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread of the read models ended with code ${code}`)));
  });
  // Callers that wait for a response get the error; there may be none.
  gone.catch(() => undefined);
  const answer = async () => ((await Promise.race([once(worker, 'message'), gone])) as [readonly Progress[]])[0];
  let progress = await answer();
  const rows = new ReadModelDatabase(file);
  return {
    rows,
    progress: () => progress,
    async project(events) {
      worker.postMessage(packEvents(events));
      progress = await answer();
    },
    unref: () => worker.unref(),
    async close() {
      rows.close();
      worker.postMessage('close');
      await gone.catch(() => undefined);
    },
  };
}

/** Whether the last event that the rows of a file were built from is in the store, at its place. */
async function hasWhatWasProjected(store: Pick<EventStore, 'read'>, file: string): Promise<boolean> {
  const rows = new ReadModelDatabase(file);
  const last = lastProjected(rows);
  rows.close();
  if (!last) return false;
  for await (const { position, metadata } of store.read(last.stream, last.revision)) {
    return position === last.position && (metadata as Partial<EventMetadata> | null)?.hash === last.hash;
  }
  return false;
}
