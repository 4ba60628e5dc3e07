import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { CoordinatorError, limitExceeded } from '../domain/errors.js';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';
import { outcomeIn, type ThreadAnswer } from '../transactions/between-threads.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';
import { workerFile } from '../threads/worker-file.js';

interface Waiting {
  readonly job: ToRead;
  readonly path: QueuePath;
  readonly resolve: (outcome: ReadingOutcome) => void;
  readonly reject: (error: CoordinatorError) => void;
}

export interface ReadingThreadsOptions {
  /** Threads at most; one less than the machine has cores unless told, up to four. */
  readonly most?: number;
  /** Milliseconds until a thread that does not answer is ended. */
  readonly longestMs?: number;
  /** The worker's file; the one of this build unless told. */
  readonly file?: URL;
}

/** Readings that may wait: in all, and of one family of organizations. */
const mostWaiting = 256;
const mostOfFamily = 32;
/** What `decodingSteps` come to is a second; with the start of a thread, on a machine that does much else too. */
const usualLongestMs = 30_000;
/** Memory of one thread, in MiB; what does not fit ends the thread and not the process. */
const heapMib = 512;

/**
 * Threads that read what takes long, one thing each at a time. Families of organizations take turns, and none of them has
 * more than half of the threads while there are several. A thread that dies or does not answer is replaced: that it did is
 * no outcome, and its request may be sent again.
 */
export class ReadingThreads {
  readonly #waiting = new FairQueue<Waiting>();
  /** Readings of each family that wait or are on their way, and that are on their way. */
  readonly #families = new Map<string, { waiting: number; running: number }>();
  readonly #idle: Worker[] = [];
  readonly #threads = new Set<Worker>();
  readonly #most: number;
  readonly #longestMs: number;
  readonly #file: URL;
  #isClosed = false;

  constructor({
    most,
    longestMs = usualLongestMs,
    file = workerFile('../transactions/reading-worker.js', import.meta.url),
  }: ReadingThreadsOptions = {}) {
    this.#most = most ?? Math.max(1, Math.min(4, availableParallelism() - 1));
    this.#longestMs = longestMs;
    this.#file = file;
  }

  /**
   * What `read` would give or refuse. `path` is the organization's place in line.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED when too many wait; UNAVAILABLE when the thread was lost
   */
  read(job: ToRead, path: QueuePath): Promise<ReadingOutcome> {
    const family = this.#familyOf(path);
    if (this.#isClosed) return Promise.reject(unavailable('the coordinator is shutting down'));
    if (family.waiting >= mostOfFamily || this.#waiting.size >= mostWaiting) {
      const whose = family.waiting >= mostOfFamily ? `${mostOfFamily} for one organization` : `${mostWaiting} in all`;
      return Promise.reject(limitExceeded(`large transactions and interfaces waiting to be read: ${whose}`, 1));
    }
    return new Promise((resolve, reject) => {
      family.waiting += 1;
      this.#waiting.push(path, { job, path, resolve, reject });
      this.#start();
    });
  }

  /** Ends the threads; what is still to be read is refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (let one = this.#waiting.shift(); one; one = this.#waiting.shift()) {
      one.reject(unavailable('the coordinator is shutting down'));
    }
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
  }

  #start(): void {
    while (this.#idle.length > 0 || this.#threads.size < this.#most) {
      const next = this.#waiting.shift((path) => path.length !== 2 || this.#mayRun(path));
      if (!next) return;
      this.#run(next, this.#idle.pop() ?? this.#newThread());
    }
  }

  #mayRun(path: QueuePath): boolean {
    return this.#familyOf(path).running < Math.max(1, Math.floor(this.#most / 2));
  }

  #run({ job, path, resolve, reject }: Waiting, thread: Worker): void {
    const family = this.#familyOf(path);
    family.running += 1;
    let timer: NodeJS.Timeout | undefined = undefined;
    const end = (isAlive: boolean) => {
      clearTimeout(timer);
      // These alone: a worker listens to itself for what its thread says.
      thread.off('message', hear).off('error', fail).off('exit', exit);
      if (isAlive) this.#idle.push(thread);
      else {
        this.#threads.delete(thread);
        void thread.terminate();
      }
      family.running -= 1;
      family.waiting -= 1;
      if (family.waiting === 0) this.#families.delete(keyOf(path));
      this.#start();
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
    timer = setTimeout(() => lose(`it was not read within ${this.#longestMs / 1_000} s`), this.#longestMs);
    timer.unref();
    thread.postMessage(job);
  }

  #newThread(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: heapMib };
    // Flags of the process such as --input-type or --watch are not meant for the thread, and some would stop it.
    const thread = new Worker(this.#file, { name: 'reading', execArgv: [], resourceLimits });
    thread.unref();
    // Told of while it reads nothing, or late: neither must end the process.
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

  #familyOf(path: QueuePath): { waiting: number; running: number } {
    const key = keyOf(path);
    let family = this.#families.get(key);
    if (!family) this.#families.set(key, (family = { waiting: 0, running: 0 }));
    return family;
  }
}

function keyOf(path: QueuePath): string {
  return path.slice(0, 2).join(' ');
}

function unavailable(why: string): CoordinatorError {
  return new CoordinatorError('UNAVAILABLE', `${why}: send the same request again`, { retryAfterSeconds: 1 });
}
