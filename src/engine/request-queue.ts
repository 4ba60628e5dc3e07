import { setImmediate } from 'node:timers/promises';
import { DecisionQueue } from './decision-queue.js';
import type { Job } from './job.js';

/**
 * Requests of one organization wait for each other, and all pending ones form one batch; organizations do not wait for
 * each other.
 */
export class RequestQueue {
  private readonly queues = new Map<string, DecisionQueue<Job>>();
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly ports: {
      /** Resolves when the next batch of the organization may be decided. */
      readonly turn: (organizationId: string) => Promise<void>;
      /** Settles a batch; returns the requests that go into the next one. */
      readonly settle: (organizationId: string, batch: readonly Job[]) => Promise<readonly Job[]>;
    },
  ) {}

  add(organizationId: string, job: Job): void {
    const waiting = this.queues.get(organizationId) ?? new DecisionQueue<Job>();
    waiting.push(job);
    if (this.queues.has(organizationId)) return;
    this.queues.set(organizationId, waiting);
    this.keep(this.run(organizationId, waiting));
  }

  /** Work that `drain` waits for. */
  keep(work: Promise<void>): void {
    const kept = work.finally(() => this.running.delete(kept));
    this.running.add(kept);
  }

  /** Resolves once every accepted request has its response. */
  async drain(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async run(organizationId: string, waiting: DecisionQueue<Job>): Promise<void> {
    while (waiting.size > 0) {
      await this.ports.turn(organizationId);
      // Requests whose bytes have already arrived join: one append for many costs little more than one for each.
      await setImmediate();
      waiting.putBack(await this.ports.settle(organizationId, waiting.batch()));
    }
    this.queues.delete(organizationId);
  }
}
