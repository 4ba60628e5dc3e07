import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { QueuePath } from '../fairness/fair-queue.js';
import { FairSlots } from '../fairness/fair-slots.js';
import { shuttingDown, unavailable } from '../threads/unavailable.js';
import { outcomeIn, type ThreadAnswer } from '../transactions/between-threads.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';

export interface ReadingThreadsOptions {
  /** Maximum number of threads; by default one less than the machine has cores, up to four. */
  readonly most?: number;
  /** Milliseconds until an unresponsive thread is ended. */
  readonly longestMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

/** Maximum readings, running or waiting; so many more of organizations that have none. */
const mostWaiting = 256;
const mostEver = 1_024;
/** `decodingSteps` take a second; the rest is for starting a thread, on a busy machine. */
const usualLongestMs = 30_000;
/** Memory of one thread, in MiB; exceeding it ends the thread and not the process. */
const heapMib = 512;

/**
 * Threads for reading what takes long, one task each at a time. Families of organizations take turns, and none has more
 * than half of the threads while several are waiting. A thread that dies or stops responding is replaced; that is not
 * an outcome, and the request may be sent again.
 */
export class ReadingThreads {
  readonly #slots: FairSlots;
  readonly #idle: Worker[] = [];
  readonly #threads = new Set<Worker>();
  readonly #most: number;
  readonly #longestMs: number;
  readonly #file: URL;
  #isClosed = false;

  constructor({
    most,
    longestMs = usualLongestMs,
    file = new URL('../transactions/reading-worker.js', import.meta.url),
  }: ReadingThreadsOptions = {}) {
    this.#most = most ?? Math.max(1, Math.min(4, availableParallelism() - 1));
    this.#slots = new FairSlots({
      slots: this.#most,
      ofFamily: Math.max(1, Math.floor(this.#most / 2)),
      most: mostWaiting,
      mostEver,
      what: 'large transactions and interfaces waiting to be read',
    });
    this.#longestMs = longestMs;
    this.#file = file;
  }

  /**
   * What `read` would return or refuse. `path` is the organization's place in the queue.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many wait; UNAVAILABLE if the thread was lost
   */
  async read(job: ToRead, path: QueuePath): Promise<ReadingOutcome> {
    if (this.#isClosed) throw unavailable(shuttingDown);
    const slot = await this.#slots.enter(path);
    try {
      return await this.#run(job, this.#idle.pop() ?? this.#newThread());
    } finally {
      slot.leave();
    }
  }

  /** Ends the threads; pending readings are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#slots.close(unavailable(shuttingDown));
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
  }

  #run(job: ToRead, thread: Worker): Promise<ReadingOutcome> {
    return new Promise((resolve, reject) => {
      const end = (isAlive: boolean) => {
        clearTimeout(timer);
        // Only these: a worker itself listens to messages from its thread.
        thread.off('message', hear).off('error', fail).off('exit', exit);
        if (isAlive) this.#idle.push(thread);
        else {
          this.#threads.delete(thread);
          void thread.terminate();
        }
      };
      const lose = (why: string) => {
        end(false);
        reject(unavailable(why));
      };
      const hear = (answer: ThreadAnswer) => {
        end(true);
        resolve(outcomeIn(answer));
      };
      const fail = () => lose('the thread reading it failed');
      const exit = () => lose('the thread reading it ended');
      thread.once('message', hear).once('error', fail).once('exit', exit);
      const late = () => lose(`it was not read within ${this.#longestMs / 1_000} s`);
      const timer = setTimeout(late, this.#longestMs).unref();
      thread.postMessage(job);
    });
  }

  #newThread(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: heapMib };
    // Flags of the process such as --input-type or --watch are not meant for the thread, and some would stop it.
    const thread = new Worker(this.#file, { name: 'reading', execArgv: [], resourceLimits });
    thread.unref();
    // Errors while it reads nothing, or too late: neither may end the process.
    thread.on('error', () => undefined);
    thread.once('exit', () => this.#forget(thread));
    this.#threads.add(thread);
    return thread;
  }

  #forget(thread: Worker): void {
    this.#threads.delete(thread);
    const place = this.#idle.indexOf(thread);
    if (place !== -1) this.#idle.splice(place, 1);
  }
}
