import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { threadError } from '../threads/thread-error.js';
import type { RecordedStamp } from './verify-vote.js';

/** Maximum stamps in progress: beyond that, the sender waits. */
const mostWaiting = 1_000;
/** Stamps sent together, because sending costs as much as a tenth of verifying. */
const together = 50;

interface Waiting {
  readonly stamp: RecordedStamp;
  readonly resolve: (problem: string | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Verifies recorded stamps in a separate thread: half the work of verifying a history. */
export class StampThread {
  private readonly worker = new Worker(new URL('./stamp-worker.js', import.meta.url), {
    name: 'stamps',
    execArgv: [],
  });
  private readonly gone: Promise<unknown>;
  private batch: Waiting[] = [];
  private readonly sent: Waiting[][] = [];
  private count = 0;

  constructor() {
    this.worker.on('message', (problems: readonly (string | undefined)[]) => {
      for (const [index, { resolve }] of (this.sent.shift() ?? []).entries()) resolve(problems[index]);
    });
    const lose = (error: Error) => {
      for (const { reject } of [...this.sent.splice(0).flat(), ...this.batch.splice(0)]) reject(error);
    };
    this.worker.once('error', (error) => lose(threadError(error)));
    this.gone = once(this.worker, 'exit').then(() => lose(new Error('the thread that verifies stamps has ended')));
    this.gone.catch(() => undefined);
  }

  /** What is wrong with a stamp; undefined if it is genuine. @throws {Error} if the thread has ended */
  async problemWith(stamp: RecordedStamp): Promise<string | undefined> {
    this.count++;
    try {
      return await new Promise((resolve, reject) => {
        this.batch.push({ stamp, resolve, reject });
        if (this.batch.length === 1) setImmediate(() => this.flush());
        if (this.batch.length >= together) this.flush();
      });
    } finally {
      this.count--;
    }
  }

  /** Whether the sender should wait before sending more. */
  get isBusy(): boolean {
    return this.count >= mostWaiting;
  }

  private flush(): void {
    if (this.batch.length === 0) return;
    const batch = this.batch;
    this.batch = [];
    this.sent.push(batch);
    this.worker.postMessage(batch.map(({ stamp }) => stamp));
  }

  async close(): Promise<void> {
    await this.worker.terminate();
    await this.gone.catch(() => undefined);
  }
}
