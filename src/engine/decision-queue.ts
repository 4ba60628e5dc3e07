import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';

/** Maximum requests of one organization per append. */
const mostTogether = 256;
/**
 * Maximum bytes of their bodies together, except a single larger one; by default an EventStoreDB accepts 1 MiB per
 * append.
 */
const mostBytesTogether = 256 * 1024;

/** What the queue needs to know about a request. */
interface Waiting {
  readonly request: { readonly body: Uint8Array; readonly from: QueuePath };
}

/**
 * Requests waiting to be decided in one organization. Senders take turns: strangers who come through the auth proxy,
 * all together, alternate with everyone else; within each group, addresses alternate; and within an address,
 * credentials.
 */
export class DecisionQueue<Job extends Waiting> {
  readonly #waiting = new FairQueue<Job>();
  /** It did not fit into the previous batch, and has had its turn. */
  #first: Job | undefined;

  get size(): number {
    return this.#waiting.size + (this.#first ? 1 : 0);
  }

  push(job: Job): void {
    this.#waiting.push(job.request.from, job);
  }

  /** Returns what was taken and not decided: it goes before anything else from the same sender. */
  putBack(jobs: readonly Job[]): void {
    for (const job of jobs.toReversed()) this.#waiting.putBack(job.request.from, job);
  }

  /** Takes the next append's requests, in order of turns. */
  batch(): Job[] {
    const batch: Job[] = [];
    let bytes = 0;
    while (batch.length < mostTogether) {
      const job = this.#first ?? this.#waiting.shift();
      this.#first = undefined;
      if (!job) break;
      bytes += job.request.body.length;
      if (batch.length > 0 && bytes > mostBytesTogether) {
        this.#first = job;
        break;
      }
      batch.push(job);
    }
    return batch;
  }
}
