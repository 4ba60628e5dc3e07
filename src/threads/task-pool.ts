import { fileURLToPath } from 'node:url';
import type { Transferable } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import type { QueuePath } from '../fairness/fair-queue.js';
import { FairSlots } from '../fairness/fair-slots.js';
import type { Outcome, Task } from './task.js';
import { unpackError } from './thread-error.js';
import { shuttingDown, unavailable } from './unavailable.js';

interface TaskPoolOptions {
  /** The module that exports the tasks by name. */
  readonly file: URL;
  /** Memory of each thread, in MiB; a thread that exceeds it ends, the process does not. */
  readonly heapMib: number;
  /**
   * Tasks that a thread has at the same time, by default one. With more it need not wait for the main thread between two, and
   * they are lost together.
   */
  readonly atOnce?: number;
  /** Maximum duration of any task, in milliseconds, if shorter than that of its kind. */
  readonly longestMs?: number;
}

export interface Kind {
  /** Tasks in progress at the same time. */
  readonly most: number;
  /** Those of one family of organizations; all of them unless given. */
  readonly ofFamily?: number;
  /** Tasks in progress or waiting. */
  readonly mostWaiting?: number;
  /** Maximum duration, in milliseconds. */
  readonly longestMs: number;
  /** What one task makes, and what several are, for refusals. */
  readonly noun: { readonly one: string; readonly many: string };
}

type InputOf<Each> = Each extends Task<infer Input, unknown> ? Input : never;
type OutputOf<Each> = Each extends (input: never) => Promise<Outcome<infer Output>> ? Output : never;

/**
 * Runs a task once it is its turn. `path` is the place in the queue of whoever asks for it; what the thread is sent is made when it is
 * needed.
 */
export type RunTask<Input, Output> = (
  path: QueuePath,
  input: () => Input,
  transfer?: readonly Transferable[],
) => Promise<Output>;

const usuallyWaiting = 256;
/** So many times as many may be in progress or wait where each organization has one. */
const timesEver = 4;
/** Milliseconds until an idle thread is ended: starting one and loading its modules takes up to a second. */
const idleMs = 300_000;

/**
 * Threads for tasks that take long, one task each at a time, started on demand (docs/adr/0026). Each kind of task has its own
 * queue, in which organizations take turns, and the pool has a thread for every task that leaves a queue: no kind waits for another. A
 * thread that dies or takes too long ends with its task only, and is replaced.
 */
export class TaskPool<Table> {
  readonly #options: TaskPoolOptions;
  readonly #queues: FairSlots[] = [];
  /** Tasks of all kinds in progress at the same time. */
  #most = 0;
  #started: Promise<Piscina> | undefined;
  #isClosed = false;

  constructor(options: TaskPoolOptions) {
    this.#options = options;
  }

  /**
   * What runs tasks of one kind. It throws what the task throws; otherwise {CoordinatorError} RESOURCE_EXHAUSTED if too many wait,
   * UNAVAILABLE if the thread was lost.
   */
  kind<Name extends keyof Table & string>(
    name: Name,
    kind: Kind,
  ): RunTask<InputOf<Table[Name]>, OutputOf<Table[Name]>> {
    const { most, ofFamily = most, mostWaiting = usuallyWaiting, noun } = kind;
    this.#most += most;
    const what = `${noun.many} in progress or waiting`;
    const queue = new FairSlots({ slots: most, ofFamily, most: mostWaiting, mostEver: timesEver * mostWaiting, what });
    this.#queues.push(queue);
    return async (path, input, transfer = []) => {
      if (this.#isClosed) throw unavailable(shuttingDown);
      const slot = await queue.enter(path);
      try {
        return await this.#run<OutputOf<Table[Name]>>(name, kind, input, transfer);
      } finally {
        slot.leave();
      }
    };
  }

  /** Ends the threads; tasks that run or wait are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const queue of this.#queues) queue.close(unavailable(shuttingDown));
    await (await this.#started)?.destroy();
  }

  async #run<Output>(
    name: string,
    { longestMs, noun }: Kind,
    input: () => unknown,
    transfer: readonly Transferable[],
  ): Promise<Output> {
    const started = (this.#started ??= this.#start());
    const pool = await started;
    if (this.#isClosed) throw unavailable(shuttingDown);
    const { file, atOnce = 1, longestMs: ofAll = longestMs } = this.#options;
    const mostMs = Math.min(longestMs, ofAll);
    const late = new AbortController();
    const { signal } = late;
    // Of a task with a signal, piscina ends the thread, and gives such a thread no other task.
    if (atOnce > 1) signal.addEventListener('abort', () => void this.#replace(started));
    const timer = setTimeout(() => late.abort(), mostMs).unref();
    let outcome: Outcome<Output>;
    try {
      // The file is named here: a thread that could not load it as it starts would leave its task waiting.
      const options = { filename: fileURLToPath(file), name, transferList: [...transfer] };
      outcome = (await pool.run(input(), atOnce > 1 ? options : { ...options, signal })) as Outcome<Output>;
    } catch {
      // Whatever the pool says about a lost thread may quote what the task was about.
      if (this.#isClosed) throw unavailable(shuttingDown);
      throw unavailable(
        signal.aborted
          ? `${noun.one} was not available within ${mostMs / 1_000} s`
          : `the thread that made ${noun.one} has ended`,
      );
    } finally {
      clearTimeout(timer);
    }
    if ('error' in outcome) throw unpackError(outcome.error);
    return outcome.value;
  }

  /** Ends all threads of a pool, with what they do; later tasks have another. */
  async #replace(started: Promise<Piscina>): Promise<void> {
    if (this.#started === started) this.#started = undefined;
    await (await started).destroy();
  }

  async #start(): Promise<Piscina> {
    const { atOnce = 1, heapMib } = this.#options;
    // Loaded by whatever first needs a thread: a start does not.
    const { Piscina } = await import('piscina');
    const pool = new Piscina({
      minThreads: 0,
      maxThreads: Math.ceil(this.#most / atOnce),
      concurrentTasksPerWorker: atOnce,
      idleTimeout: idleMs,
      recordTiming: false,
      // Flags of the process such as --input-type or --watch are not meant for threads, and some would stop them.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMib },
    });
    // Errors of a thread without a task: they may not end the process.
    pool.on('error', () => undefined);
    return pool;
  }
}
