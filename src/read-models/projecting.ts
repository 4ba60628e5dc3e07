import { Worker } from 'node:worker_threads';
import { CoordinatorError } from '../domain/errors.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import { threadError } from '../threads/thread-error.js';
import { packEvents } from './packed-events.js';
import { isDamage, ReadModelDatabase, removeRows, type Rows } from './database.js';
import { readModels } from './index.js';
import { lastProjected, Projector, type EventSource, type LastProjected, type Progress } from './projector.js';

export const PROJECTING = Symbol('Projecting');

/** Where projections run, and the rows that queries read. */
export interface Projecting {
  readonly rows: Rows;
  progress(): readonly Progress[];
  /** Takes the next events; resolves once their rows can be read. @throws if they cannot be written for now */
  project(events: readonly RecordedEvent[]): Promise<void>;
  /** Calls back if every model has stopped although no events came: what read the rows has met damage. */
  onStopped?(tell: () => void): void;
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
 * the store does not have, such as those of another branch of a backup, are rebuilt; so is a damaged file, which `damaged`
 * is told. Where damage is met later, every model stops, and the file is removed at the end.
 */
export async function projectIntoFile(
  file: string,
  source: Omit<EventSource, 'isAnother'>,
  store: Pick<EventStore, 'read'>,
  damaged: (error: unknown) => void = () => undefined,
): Promise<Projecting> {
  try {
    return await openFile(file, source, store);
  } catch (error) {
    if (!isDamage(error)) throw error;
    damaged(error);
    removeRows(file);
    return openFile(file, source, store);
  }
}

async function openFile(
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
  const answers = new ThreadAnswers(worker, file);
  let progress = await answers.next().catch(async (error: unknown) => {
    await answers.ended;
    throw error;
  });
  const closeThread = async (): Promise<void> => {
    worker.postMessage('close');
    await answers.ended;
  };
  const rows = await opened(file, closeThread);
  let tellStopped = () => {};
  return {
    rows: trustedRows(rows, answers, (error) => {
      answers.lose(new DamagedFile(file, error));
      tellStopped();
    }),
    progress: () => (answers.lost ? stopped(progress, answers.lost) : progress),
    async project(events) {
      if (answers.lost) return;
      worker.postMessage(packEvents(events));
      try {
        progress = await answers.next();
      } catch (error) {
        // Without the thread, every model has stopped: trying again is of no use.
        if (!answers.lost) throw error;
      }
    },
    onStopped: (tell) => (tellStopped = tell),
    unref: () => worker.unref(),
    async close() {
      rows.close();
      await closeThread();
      // A start would not meet all damage again, but readers would.
      if (answers.lost instanceof DamagedFile) removeRows(file);
    },
  };
}

/** A file that cannot be opened here, where there are no more handles for one, is let go of by its thread too. */
async function opened(file: string, letGo: () => Promise<void>): Promise<ReadModelDatabase> {
  try {
    return new ReadModelDatabase(file);
  } catch (error) {
    await letGo();
    throw error;
  }
}

class DamagedFile extends Error {
  constructor(file: string, cause: Error) {
    super(
      `\`${file}\` is damaged (${cause.message}), and may be deleted, with its -wal and -shm, while the coordinator is stopped`,
      { cause },
    );
  }
}

/**
 * Rows until damage is met, by whomever: those that can still be read are not to be trusted either.
 * @throws {CoordinatorError} UNAVAILABLE from then on
 */
function trustedRows(rows: Rows, answers: ThreadAnswers, damaged: (error: Error) => void): Rows {
  const unlessDamaged = <T>(work: () => T): T => {
    try {
      if (!(answers.lost instanceof DamagedFile)) return work();
    } catch (error) {
      if (!(error instanceof Error && isDamage(error))) throw error;
      damaged(error);
    }
    throw new CoordinatorError('UNAVAILABLE', 'read models have stopped: see the log of the server', {
      cause: answers.lost,
    });
  };
  return {
    run: (...args) => unlessDamaged(() => rows.run(...args)),
    get: (...args) => unlessDamaged(() => rows.get(...args)),
    all: (...args) => unlessDamaged(() => rows.all(...args)),
    lost: (complaint) => unlessDamaged(() => rows.lost(complaint)),
  };
}

/** A message of the thread: how far it is, or why it could not take the last events. */
export type Answer = { readonly progress: readonly Progress[] } | { readonly fault: Error; readonly isDamage: boolean };

function stopped(progress: readonly Progress[], { message }: Error): readonly Progress[] {
  const reason = `${message}: restart the coordinator`;
  return progress.map(({ failure = reason, ...one }) => ({ ...one, failure }));
}

/** What the thread answers, one message to each request. A race of each with its end would be kept until that end. */
class ThreadAnswers {
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  /** Why there will be no more. */
  lost: Error | undefined;
  private waiting: { resolve(progress: readonly Progress[]): void; reject(reason: Error): void } | undefined;

  constructor(worker: Worker, file: string) {
    worker.on('message', (answer: Answer) => {
      if ('fault' in answer && answer.isDamage) this.lose(new DamagedFile(file, answer.fault));
      else if ('fault' in answer) this.waiting?.reject(answer.fault);
      else this.waiting?.resolve(answer.progress);
    });
    worker.once('error', (error) => this.lose(threadError(error)));
    this.ended = new Promise((resolve) =>
      worker.once('exit', (code) => {
        this.lose(new Error(`the thread of the read models ended with code ${code}`));
        resolve();
      }),
    );
  }

  next(): Promise<readonly Progress[]> {
    return new Promise((resolve, reject) => {
      if (this.lost) reject(this.lost);
      else this.waiting = { resolve, reject };
    });
  }

  lose(reason: Error): void {
    this.lost ??= reason;
    this.waiting?.reject(this.lost);
  }
}

/** Whether the last event that the rows of a file were built from is in the store, at its place. */
async function hasWhatWasProjected(store: Pick<EventStore, 'read'>, file: string): Promise<boolean> {
  const last = soundIn(file);
  if (!last) return false;
  for await (const { position, metadata } of store.read(last.stream, last.revision)) {
    return position === last.position && (metadata as Partial<EventMetadata> | null)?.hash === last.hash;
  }
  return false;
}

/**
 * The last event in a file.
 * @throws what `isDamage` takes for damage
 */
function soundIn(file: string): LastProjected | undefined {
  const rows = new ReadModelDatabase(file);
  try {
    const tables = new Set(rows.all('SELECT name FROM sqlite_schema').map(({ name }) => name));
    for (const { guards = [] } of readModels) for (const table of guards) if (tables.has(table)) rows.check(table);
    return lastProjected(rows);
  } finally {
    rows.close();
  }
}
