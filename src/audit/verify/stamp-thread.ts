import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Piscina } from 'piscina';
import { threadError } from '../../threads/thread-error.js';
import type { problemsWith, RecordedStamp } from './verify-vote.js';

/** Maximum stamps in progress: beyond that, the sender waits. */
const mostWaiting = 1_000;
/** Stamps sent together, because sending costs as much as a tenth of verifying. */
const together = 50;

type Problem = string | undefined;

interface Batch {
  readonly stamps: RecordedStamp[];
  readonly problems: Promise<readonly Problem[]>;
}

/** Verifies recorded stamps in a separate thread: half the work of verifying a history. */
export class StampThread {
  private readonly pool = newPool();
  private batch: Batch | undefined;
  private count = 0;

  /** What is wrong with a stamp; undefined if it is genuine. @throws {Error} if the thread has ended */
  async problemWith(stamp: RecordedStamp): Promise<Problem> {
    this.count++;
    try {
      const { stamps, problems } = (this.batch ??= this.newBatch());
      const at = stamps.push(stamp) - 1;
      if (stamps.length === together) this.batch = undefined;
      return (await problems)[at];
    } finally {
      this.count--;
    }
  }

  /** Whether the sender should wait before sending more. */
  get isBusy(): boolean {
    return this.count >= mostWaiting;
  }

  async close(): Promise<void> {
    await (await this.pool).destroy();
  }

  /** Stamps that are sent together, soon. */
  private newBatch(): Batch {
    const stamps: RecordedStamp[] = [];
    const problems = nextTurn().then(() => {
      if (this.batch?.stamps === stamps) this.batch = undefined;
      return this.verify(stamps);
    });
    return { stamps, problems };
  }

  private async verify(stamps: readonly RecordedStamp[]): Promise<readonly Problem[]> {
    try {
      return await (await this.pool).run(stamps, task);
    } catch (error) {
      throw threadError(error);
    }
  }
}

const task = { filename: fileURLToPath(new URL('./verify-vote.js', import.meta.url)), name: 'problemsWith' };

/** One thread, which has several lists at a time: it need not wait for the main thread between two of them. */
async function newPool(): Promise<
  Piscina<Parameters<typeof problemsWith>[0], Awaited<ReturnType<typeof problemsWith>>>
> {
  const { Piscina } = await import('piscina');
  const options = { minThreads: 1, maxThreads: 1, concurrentTasksPerWorker: mostWaiting, recordTiming: false };
  return new Piscina({ ...options, execArgv: [] }).on('error', () => undefined);
}
