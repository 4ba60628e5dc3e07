import { setImmediate } from 'node:timers/promises';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';

/** Maximum requests of one organization per append. */
const mostTogether = 256;
/**
 * Maximum bytes of their bodies together, except a single larger one; by default an EventStoreDB accepts 1 MiB per
 * append.
 */
const mostBytesTogether = 256 * 1024;

/** What the queue needs to know about a request. */
interface Queued {
  readonly request: { readonly body: Uint8Array; readonly from: QueuePath };
}

/**
 * Requests of one organization wait for each other, and all pending ones form one batch; organizations do not wait for
 * each other.
 */
export class OrganizationQueues<Request extends Queued> {
  private readonly queues = new Map<string, OrganizationQueue<Request>>();
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly ports: {
      /** Resolves when the next batch of the organization may be decided. */
      readonly turn: (organizationId: string) => Promise<void>;
      /** Settles a batch; returns the requests that go into the next one. */
      readonly settle: (organizationId: string, batch: readonly Request[]) => Promise<readonly Request[]>;
    },
  ) {}

  add(organizationId: string, request: Request): void {
    const queue = this.queues.get(organizationId) ?? new OrganizationQueue<Request>();
    queue.push(request);
    if (this.queues.has(organizationId)) return;
    this.queues.set(organizationId, queue);
    this.keep(this.run(organizationId, queue));
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

  private async run(organizationId: string, queue: OrganizationQueue<Request>): Promise<void> {
    while (queue.size > 0) {
      await this.ports.turn(organizationId);
      // Requests whose bytes have already arrived join: one append for many costs little more than one for each.
      await setImmediate();
      queue.putBack(await this.ports.settle(organizationId, queue.batch()));
    }
    this.queues.delete(organizationId);
  }
}

/**
 * Requests waiting to be decided in one organization. Senders take turns: strangers who come through the auth proxy,
 * all together, alternate with everyone else; within each group, addresses alternate; and within an address,
 * credentials.
 */
export class OrganizationQueue<Request extends Queued> {
  readonly #waiting = new FairQueue<Request>();
  /** It did not fit into the previous batch, and has had its turn. */
  #first: Request | undefined;

  get size(): number {
    return this.#waiting.size + (this.#first ? 1 : 0);
  }

  push(request: Request): void {
    this.#waiting.push(request.request.from, request);
  }

  /** Returns what was taken and not decided: it goes before anything else from the same sender. */
  putBack(requests: readonly Request[]): void {
    for (const request of requests.toReversed()) this.#waiting.putBack(request.request.from, request);
  }

  /** Takes the next append's requests, in order of turns. */
  batch(): Request[] {
    const batch: Request[] = [];
    let bytes = 0;
    while (batch.length < mostTogether) {
      const next = this.#first ?? this.#waiting.shift();
      this.#first = undefined;
      if (!next) break;
      bytes += next.request.body.length;
      if (batch.length > 0 && bytes > mostBytesTogether) {
        this.#first = next;
        break;
      }
      batch.push(next);
    }
    return batch;
  }
}
