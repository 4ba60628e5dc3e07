import { CoordinatorError } from '../domain/errors.js';
import { webhookDeliveryStream, type WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import { verifyChain, type EventMetadata } from '../ledger/chain.js';
import { appendWithRetry } from '../ledger/append-with-retry.js';
import type { EventStore } from '../ledger/event-store.js';
import { emptyTail, type Tail } from '../ledger/seal.js';
import type { Clock } from '../ports/clock.js';

/** Attempts at an append after another writer was first. */
const maxAttempts = 5;

/** Outcomes in one append. */
const mostTogether = 64;

/** Logs whose ends are cached while nothing is written to them. */
const mostTails = 10_000;

/** An outcome that waits to be recorded. */
interface Entry {
  readonly correlationId: string;
  readonly event: WebhookDeliveryEvent;
  readonly recorded: (position: bigint) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Records outcomes of deliveries, in a separate stream for each organization; what comes while an append is under way is
 * in the next one together. A writer with a smaller fencing token
 * than it finds there has lost the lease, and gets an error (docs/adr/0023).
 */
export class DeliveryLog {
  private readonly tails = new Map<string, Tail>();
  /** What waits, by organization, while appends to its stream run one after the other. */
  private readonly queues = new Map<string, Entry[]>();

  /** @param lastKnown revision of the last event of an organization's log known for certain; -1 for none */
  constructor(
    private readonly store: EventStore,
    private readonly clock: Clock,
    private readonly lastKnown: (organizationId: string) => number,
    private readonly token: number,
  ) {}

  /**
   * Resolves once the event is durable, to its position or a later one of the same append.
   * @throws {CoordinatorError} ABORTED if someone writes under a greater token
   * @throws {StoreUnavailable} if the outcome of the append is unknown
   */
  record(organizationId: string, correlationId: string, event: WebhookDeliveryEvent): Promise<bigint> {
    return new Promise((recorded, failed) => {
      const entry = { correlationId, event, recorded, failed };
      const waiting = this.queues.get(organizationId);
      if (waiting) {
        waiting.push(entry);
        return;
      }
      const queue = [entry];
      this.queues.set(organizationId, queue);
      void this.drain(organizationId, queue);
    });
  }

  private async drain(organizationId: string, queue: Entry[]): Promise<void> {
    while (queue.length > 0) {
      const together = queue.splice(0, mostTogether);
      try {
        const position = await this.write(organizationId, together);
        for (const { recorded } of together) recorded(position);
      } catch (error) {
        for (const { failed } of together) failed(error);
      }
    }
    this.queues.delete(organizationId);
    // What can be read again from the store needs no place here.
    for (const oldest of this.tails.keys()) {
      if (this.tails.size <= mostTails) break;
      if (!this.queues.has(oldest)) this.tails.delete(oldest);
    }
  }

  private async write(organizationId: string, together: readonly Entry[]): Promise<bigint> {
    const stream = webhookDeliveryStream(organizationId);
    const decide = async () => {
      const tail = this.tails.get(organizationId) ?? (await this.open(organizationId, stream));
      // Until this is known to be recorded, the log has to be read again before the next.
      this.tails.delete(organizationId);
      const at = this.clock.now();
      const facts = together.map(({ correlationId, event: { type, data } }) => ({
        type,
        data,
        metadata: { at, $correlationId: correlationId, $causationId: data.eventId },
      }));
      return { tail, facts };
    };
    const added = await appendWithRetry(this.store, stream, decide, { attempts: maxAttempts });
    this.tails.set(organizationId, added!.tail);
    return added!.position;
  }

  /** Reads from the last known event: a log is long, and its beginning says nothing new. */
  private async open(organizationId: string, stream: string): Promise<Tail> {
    const from = Math.max(0, this.lastKnown(organizationId));
    let tail: Tail = emptyTail;
    for await (const event of this.store.read(stream, from)) {
      const isFirst = tail.revision < 0 && event.revision > 0;
      const hash = isFirst ? (event.metadata as EventMetadata).hash : verifyChain(tail.hash, event);
      tail = { revision: event.revision, hash };
      const { fencingToken = -1 } = event.data as { readonly fencingToken?: number };
      if (fencingToken > this.token) {
        throw new CoordinatorError('ABORTED', `another coordinator delivers webhooks, under token \`${fencingToken}\``);
      }
    }
    return tail;
  }
}
