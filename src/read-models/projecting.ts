import type { Worker } from 'node:worker_threads';
import { CoordinatorError } from '../domain/errors.js';
import { GENESIS_HASH, linkOf, verifyChain } from '../ledger/chain.js';
import { UnreadableEvent, type EventStore, type RecordedEvent } from '../ledger/event-store.js';
import type { UnreadablePlace } from '../ledger/unreadable-organizations.js';
import { startThread } from '../threads/start-thread.js';
import { threadError } from '../threads/thread-error.js';
import { packEvents, type PackedEvents } from './packed-events.js';
import { isDamage, ReadModelDatabase, removeRows, type Rows } from './database.js';
import { readModels } from './index.js';
import {
  canBeRead,
  lastProjected,
  Projector,
  unreadableIn,
  type EventSource,
  type LastProjected,
  type Progress,
} from './projector.js';

export const PROJECTING = Symbol('Projecting');

/** Where projections run, and the rows that queries read. */
export interface Projecting {
  readonly rows: Rows;
  progress(): readonly Progress[];
  /** Events that were left out, because they cannot be read: the first of each stream, in the order in which they were met. */
  leftOut(): readonly UnreadablePlace[];
  /**
   * Takes the next events, for these models only, by default for all; resolves once their rows can be read. Not called again before.
   * @throws if they cannot be written for now
   */
  project(events: readonly RecordedEvent[], models?: readonly string[]): Promise<void>;
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
    leftOut: () => projector.leftOut(),
    project: (events, models) => Promise.resolve(void projector.project(events, models)),
    close: () => Promise.resolve(database.close()),
  };
}

/** What is done about a file of read models when it is opened. */
export interface ProjectingReports {
  /** The file is damaged, and is rebuilt. */
  readonly damaged?: (error: unknown) => void;
  /** Called with the last event that the rows were built from, if the store does not have it. */
  readonly behind?: (last: LastProjected) => Promise<void>;
  /** Called once the events of the rows are known to be there; returns whether other rows are in the file now. */
  readonly adopt?: () => boolean;
}

/**
 * In a separate thread, into a file: writing rows takes as long as deciding, and must not delay it. Rows of events that
 * the store does not have, such as those of another branch of a backup, are rebuilt unless `behind` throws; so is a damaged file.
 * Where damage is met later, every model stops, and the file is removed at the end.
 */
export async function projectIntoFile(
  file: string,
  source: Omit<EventSource, 'isAnother'>,
  store: Pick<EventStore, 'read'>,
  reports: ProjectingReports = {},
): Promise<Projecting> {
  try {
    return await openFile(file, source, store, reports);
  } catch (error) {
    if (!isDamage(error)) throw error;
    reports.damaged?.(error);
    removeRows(file);
    return openFile(file, source, store, reports);
  }
}

async function openFile(
  file: string,
  { identity, head }: Omit<EventSource, 'isAnother'>,
  store: Pick<EventStore, 'read'>,
  { behind, adopt }: ProjectingReports,
): Promise<Projecting> {
  const before = soundIn(file);
  const isLost = before !== undefined && !(await hasEvent(store, before));
  if (isLost) await behind?.(before);
  const last = adopt?.() ? soundIn(file) : before;
  const isAnother = !last || !(await hasEvent(store, last)) || (await isRepaired(store, file));
  const source: EventSource = { identity, head, isAnother };
  const answers = new ThreadAnswers(file, source);
  const worker = answers.thread;
  let answer = await answers.next().catch(async (error: unknown) => {
    await answers.hasEnded;
    throw error;
  });
  const closeThread = async (): Promise<void> => {
    worker.postMessage('close');
    await answers.hasEnded;
  };
  const rows = await opened(file, closeThread);
  let tellStopped = () => {};
  return {
    rows: trustedRows(rows, answers, (error) => {
      answers.lose(new DamagedFile(file, error));
      tellStopped();
    }),
    progress: () => (answers.lost ? stopped(answer.progress, answers.lost) : answer.progress),
    leftOut: () => answer.leftOut,
    async project(events, models) {
      if (answers.lost) return;
      worker.postMessage({ events: packEvents(events), models } satisfies Batch);
      try {
        answer = await answers.next();
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

/** A message to the thread: events to be projected, for these models only, if any are named. */
export interface Batch {
  readonly events: PackedEvents;
  readonly models: readonly string[] | undefined;
}

/** How far the thread is. */
interface Taken {
  readonly progress: readonly Progress[];
  readonly leftOut: readonly UnreadablePlace[];
}

/** A message of the thread: how far it is, or why it could not take the last events. */
export type Answer = Taken | { readonly fault: Error; readonly isDamage: boolean };

function stopped(progress: readonly Progress[], { message }: Error): readonly Progress[] {
  const reason = `${message}: restart the coordinator`;
  return progress.map(({ failure = reason, ...one }) => ({ ...one, failure }));
}

/** What the thread answers, one message to each request. A race of each with its end would be kept until that end. */
class ThreadAnswers {
  readonly thread: Worker;
  /** Resolves when the thread has ended. */
  readonly hasEnded: Promise<void>;
  /** Why there will be no more. */
  lost: Error | undefined;
  private waiting: { resolve(answer: Taken): void; reject(reason: Error): void } | undefined;

  constructor(file: string, source: EventSource) {
    const { thread, hasEnded } = startThread(new URL('./projector-worker.js', import.meta.url), {
      name: 'read-models',
      workerData: { file, source },
      hear: (answer: Answer) => {
        if ('fault' in answer && answer.isDamage) this.lose(new DamagedFile(file, answer.fault));
        else if ('fault' in answer) this.waiting?.reject(answer.fault);
        else this.waiting?.resolve(answer);
      },
      failed: (error) => this.lose(threadError(error)),
      ended: (code) => this.lose(new Error(`the thread of the read models ended with code ${code}`)),
    });
    [this.thread, this.hasEnded] = [thread, hasEnded];
  }

  next(): Promise<Taken> {
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

/** Whether the last event that rows were built from is in the store, at its place, be it damaged since. */
async function hasEvent(store: Pick<EventStore, 'read'>, last: LastProjected): Promise<boolean> {
  for await (const event of store.read(last.stream, last.revision)) {
    if (event.position !== last.position) return false;
    return linkOf(event) === last.hash || !(await isWhole(store, event));
  }
  return false;
}

/** Whether an event follows from the one before it. One of another history does; a damaged one does not. */
async function isWhole(store: Pick<EventStore, 'read'>, { stream, revision }: RecordedEvent): Promise<boolean> {
  let link: string | undefined = revision === 0 ? GENESIS_HASH : undefined;
  try {
    for await (const event of store.read(stream, Math.max(0, revision - 1))) {
      if (link !== undefined) verifyChain(link, event);
      if (event.revision === revision) return true;
      link = linkOf(event);
    }
  } catch (error) {
    if (!(error instanceof UnreadableEvent)) throw error;
  }
  return false;
}

/** Whether an event that was left out of the rows in a file can be read now: the rows lack it, and what follows from it. */
async function isRepaired(store: Pick<EventStore, 'read'>, file: string): Promise<boolean> {
  const rows = new ReadModelDatabase(file);
  const leftOut = unreadableIn(rows);
  rows.close();
  for (const { stream, revision } of leftOut) {
    let isThere = false;
    for await (const event of store.read(stream, revision)) {
      if (canBeRead(event) && (await isWhole(store, event))) return true;
      isThere = true;
      break;
    }
    if (!isThere) return true;
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
