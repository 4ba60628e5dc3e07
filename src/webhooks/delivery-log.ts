import { CoordinatorError } from '../domain/errors.js';
import { webhookDeliveryStream, type WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import { verifyChain, type EventMetadata } from '../ledger/chain.js';
import { WrongRevision, type EventStore } from '../ledger/event-store.js';
import { emptyTail, expectedAfter, seal, type Tail } from '../ledger/seal.js';
import type { Clock } from '../ports/clock.js';

/** Attempts at an append after another writer was first. */
const maxAttempts = 5;

/** Logs whose ends are cached while nothing is written to them. */
const mostTails = 10_000;

/**
 * Records outcomes of deliveries, in a separate stream for each organization. A writer with a smaller fencing token
 * than it finds there has lost the lease, and gets an error (docs/adr/0017).
 */
export class DeliveryLog {
  private readonly tails = new Map<string, Tail>();
  /** Appends to one stream run one after the other. */
  private readonly queues = new Map<string, Promise<unknown>>();

  /** @param lastKnown revision of the last event of an organization's log known for certain; -1 for none */
  constructor(
    private readonly store: EventStore,
    private readonly clock: Clock,
    private readonly lastKnown: (organizationId: string) => number,
    private readonly token: number,
  ) {}

  /**
   * Resolves to the position of the event once it is durable.
   * @throws {CoordinatorError} ABORTED if someone writes under a greater token
   * @throws {StoreUnavailable} if the outcome of the append is unknown
   */
  record(organizationId: string, correlationId: string, event: WebhookDeliveryEvent): Promise<bigint> {
    const before = this.queues.get(organizationId) ?? Promise.resolve();
    const written = before.then(() => this.write(organizationId, correlationId, event));
    const settled: Promise<unknown> = written
      .catch(() => this.tails.delete(organizationId))
      .finally(() => {
        if (this.queues.get(organizationId) !== settled) return;
        this.queues.delete(organizationId);
        // What can be read again from the store needs no place here.
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

  /** Reads from the last known event: a log is long, and its beginning says nothing new. */
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
