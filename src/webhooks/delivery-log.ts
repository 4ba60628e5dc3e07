import { CoordinatorError } from '../domain/errors.js';
import { webhookDeliveryStream, type WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import { verifyChain, type EventMetadata } from '../ledger/chain.js';
import { WrongRevision, type EventStore } from '../ledger/event-store.js';
import { emptyTail, expectedAfter, seal, type Tail } from '../ledger/seal.js';
import type { Clock } from '../ports/clock.js';

/** Times an append is tried after another writer was first. */
const maxAttempts = 5;

/** Logs whose ends are kept in memory while nothing is written to them. */
const mostTails = 10_000;

/**
 * Writes what became of deliveries, for each organization into a stream of its own. Whoever writes later under a smaller
 * fencing token than it finds there has lost the lease, and is told so (docs/adr/0017).
 */
export class DeliveryLog {
  private readonly tails = new Map<string, Tail>();
  /** Appends to one stream go one after another. */
  private readonly queues = new Map<string, Promise<unknown>>();

  /** @param lastKnown revision of the last event of an organization's log that is known for sure; -1 for none */
  constructor(
    private readonly store: EventStore,
    private readonly clock: Clock,
    private readonly lastKnown: (organizationId: string) => number,
    private readonly token: number,
  ) {}

  /**
   * Resolves to the position of the event when it is durable.
   * @throws {CoordinatorError} ABORTED when somebody writes under a greater token
   * @throws {StoreUnavailable} when the store cannot say whether it has written
   */
  record(organizationId: string, correlationId: string, event: WebhookDeliveryEvent): Promise<bigint> {
    const before = this.queues.get(organizationId) ?? Promise.resolve();
    const written = before.then(() => this.write(organizationId, correlationId, event));
    const settled: Promise<unknown> = written
      .catch(() => this.tails.delete(organizationId))
      .finally(() => {
        if (this.queues.get(organizationId) !== settled) return;
        this.queues.delete(organizationId);
        // What is read again from the store needs no place here.
        for (const oldest of this.tails.keys()) {
          if (this.tails.size <= mostTails) break;
          if (!this.queues.has(oldest)) this.tails.delete(oldest);
        }
      });
    this.queues.set(organizationId, settled);
    return written;
  }

  private async write(organizationId: string, correlationId: string, { type, data }: WebhookDeliveryEvent) {
    const stream = webhookDeliveryStream(organizationId);
    for (let attempt = 1; ; attempt++) {
      const tail = this.tails.get(organizationId) ?? (await this.open(organizationId, stream));
      const metadata = { at: this.clock.now(), $correlationId: correlationId, $causationId: data.eventId };
      const { events, tail: after } = seal(stream, tail, [{ type, data, metadata }]);
      try {
        const { position } = await this.store.append(stream, events, expectedAfter(tail));
        this.tails.set(organizationId, after);
        return position;
      } catch (error) {
        this.tails.delete(organizationId);
        if (!(error instanceof WrongRevision) || attempt === maxAttempts) throw error;
      }
    }
  }

  /** Reads from the last event that is known: a log is long, and its beginning says nothing new. */
  private async open(organizationId: string, stream: string): Promise<Tail> {
    const from = Math.max(0, this.lastKnown(organizationId));
    let tail: Tail = emptyTail;
    for await (const event of this.store.read(stream, from)) {
      const isFirst = tail.revision < 0 && event.revision > 0;
      const hash = isFirst ? (event.metadata as EventMetadata).hash : verifyChain(tail.hash, event);
      tail = { revision: event.revision, hash };
      const { token = -1 } = event.data as { readonly token?: number };
      if (token > this.token) {
        throw new CoordinatorError('ABORTED', `another coordinator delivers webhooks, under token \`${token}\``);
      }
    }
    this.tails.set(organizationId, tail);
    return tail;
  }
}
