import type { QueuePath } from '../fairness/fair-queue.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';

/** Reads what takes long without making others wait (see `reading-tasks.ts`). */
export interface ReadingPort {
  /** @throws {CoordinatorError} if it was not read at all, which is not an outcome */
  read(job: ToRead, path: QueuePath): Promise<ReadingOutcome>;
}
