import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';

/** Requests of one organization that go into one append at most. */
const mostTogether = 256;
/** Bytes of their bodies together, but for one that is larger alone; an EventStoreDB takes 1 MiB per append by default. */
const mostBytesTogether = 256 * 1024;

/** What is asked of a request that waits to be decided. */
interface Waiting {
  readonly request: { readonly body: Uint8Array; readonly from: QueuePath };
}

/**
 * Requests that wait to be decided on one organization. Whoever sends them takes turns: strangers who come through the auth
 * proxy, all together, with everybody else; among both, addresses; and among those of one address, credentials.
 */
export class DecisionQueue<Job extends Waiting> {
  readonly #waiting = new FairQueue<Job>();
  /** It did not fit into the batch before, and has had its turn. */
  #first: Job | undefined;

  get size(): number {
    return this.#waiting.size + (this.#first ? 1 : 0);
  }

  push(job: Job): void {
    this.#waiting.push(job.request.from, job);
  }

  /** Returns what was taken and not decided: it comes before whatever else its sender has sent. */
  putBack(jobs: readonly Job[]): void {
    for (const job of jobs.toReversed()) this.#waiting.putBack(job.request.from, job);
  }

  /** Takes what goes into the next append, in the order of turns. */
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
