import { availableParallelism } from 'node:os';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { CoordinatorError } from '../domain/errors.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { unavailable } from '../threads/unavailable.js';
import { outcomeIn } from '../transactions/between-threads.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';
import { CoordinatorPool, type PoolOfTasks } from './coordinator-pool.js';

/** `decodingSteps` take a second; the rest is for starting a thread, on a busy machine. */
const longestMs = 30_000;
const usualThreads = Math.max(1, Math.min(4, availableParallelism() - 1));

/**
 * Reads what takes long in threads. Families of organizations take turns, and none has more than half of the threads while several
 * are waiting. A thread that was lost is not an outcome, and the request may be sent again.
 */
@Injectable()
export class ReadingTasks {
  readonly #run;

  /** @param threads by default one less than the machine has cores, up to four */
  constructor(@Inject(CoordinatorPool) pool: PoolOfTasks, @Optional() threads = usualThreads) {
    const noun = { one: 'the decoded input', many: 'large transactions and interfaces' };
    this.#run = pool.kind('read', { most: threads, ofFamily: Math.max(1, Math.floor(threads / 2)), longestMs, noun });
  }

  /**
   * What `read` would return or refuse. `path` is the organization's place in the queue.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many wait; UNAVAILABLE if the thread was lost
   */
  async read(job: ToRead, path: QueuePath): Promise<ReadingOutcome> {
    try {
      return outcomeIn(await this.#run(path, () => job));
    } catch (error) {
      // A mistake of ours in a decoder: whoever sent this may not keep others from theirs.
      throw error instanceof CoordinatorError ? error : unavailable('the thread that read it failed');
    }
  }
}
