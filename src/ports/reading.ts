import type { QueuePath } from '../fairness/fair-queue.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';

/** Reads what takes long where nobody else waits for it (see `reading-threads.ts`). */
export interface ReadingPort {
  /** @throws {CoordinatorError} when it was not read at all, which is no outcome */
  read(job: ToRead, path: QueuePath): Promise<ReadingOutcome>;
}
