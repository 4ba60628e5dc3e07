import { randomUUID } from 'node:crypto';
import { verifyChain } from '../ledger/chain.js';
import {
  StoreUnavailable,
  WrongRevision,
  type EventStore,
  type NewEvent,
  type RecordedEvent,
} from '../ledger/event-store.js';
import { emptyTail, seal } from '../ledger/seal.js';
import { readEvent } from '../ledger/read-event.js';
import type { Clock } from '../ports/clock.js';

/** The latest known term of a lease. */
export interface RecordedTerm {
  /** Id of the event that started it. */
  readonly id: string;
  /** Revision of that event in the stream of terms: increases from term to term, and never restarts. */
  readonly token: number;
  /** How long the holder keeps the term after a sign of life, in milliseconds, as set by the holder. */
  readonly ttlMs: number;
  /** Whether its holder has released it, or another has ended it: the next one may start. */
  readonly isOver: boolean;
}

/** An event for one place in a stream of the lease. It may be written again if the outcome was unknown. */
export interface Draft {
  readonly tail: Tail;
  readonly revision: number;
  readonly event: NewEvent;
  readonly hash: string;
}

/** How far a stream is known; revision -1 for an empty one. */
interface Tail {
  readonly stream: string;
  revision: number;
  hash: string;
}

/**
 * What is recorded of one lease, in two kinds of streams (docs/adr/0023). `lease-<name>` holds its terms and is
 * permanent. `renewals-<name>-<revision>` holds the renewals since the event at that revision of the first: there are
 * thousands, they mean nothing later, and they are deleted with their stream.
 *
 * INVARIANT: a term ends with an event at the end of its renewals, written at an expected revision, and the next begins
 * after that. So of a renewal and an end one is refused, and an end is always based on the last renewal.
 */
export class LeaseRecord {
  /** Increases with every event read or written, so a change shows that something has happened. */
  changes = 0;
  private readonly terms: Tail;
  private renewals: Tail | undefined;
  private latest: RecordedTerm | undefined;
  private sweptAt = -1;

  constructor(
    private readonly store: EventStore,
    private readonly clock: Clock,
    private readonly name: string,
  ) {
    this.terms = emptyTailOf(`lease-${name}`);
  }

  get term(): RecordedTerm | undefined {
    return this.latest;
  }

  /** Number of renewals in the current stream. */
  get renewalCount(): number {
    return (this.renewals?.revision ?? -1) + 1;
  }

  /**
   * Reads new events.
   * @throws {StoreUnavailable} if the store does not respond; what was read until then counts
   */
  async look(): Promise<void> {
    await this.readOn(this.terms);
    if (this.renewals) await this.readOn(this.renewals);
  }

  /**
   * Whether the term with this token is the latest in the store. Changes no state.
   * @throws {StoreUnavailable} if the store does not respond
   */
  async isLatest(token: number): Promise<boolean> {
    for await (const { type } of this.store.read(this.terms.stream, this.terms.revision + 1)) {
      if (type !== 'LeaseRenewalStreamOpened') return false;
    }
    return this.latest?.token === token;
  }

  /** The start of a term, after everything known. */
  begin(holder: string, ttlMs: number): Draft {
    return this.draft(this.terms, 'LeaseAcquired', { holder, ttlMs });
  }

  /** A sign of life in the current term. */
  renew(): Draft {
    return this.draft(this.present(), 'LeaseRenewed', {});
  }

  /** A sign of life that opens another stream for later renewals. */
  moveOn(): Draft {
    return this.draft(this.terms, 'LeaseRenewalStreamOpened', {});
  }

  /** The end of the current term, by its holder. */
  release(): Draft {
    return this.draft(this.present(), 'LeaseReleased', {});
  }

  /** The end of the current term, by someone who has seen no sign of life for too long. */
  expire(by: string): Draft {
    return this.draft(this.present(), 'LeaseExpired', { expiredBy: by });
  }

  /**
   * Writes a draft. Returns false if something else is recorded in its place, and then knows it.
   * @throws {StoreUnavailable} if the outcome is unknown; writing the same draft again is safe
   */
  async write({ tail, revision, event, hash }: Draft): Promise<boolean> {
    const before = this.changes;
    try {
      await this.store.append(tail.stream, [event], revision === 0 ? 'no-stream' : revision - 1);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      await this.look();
      // The other possible refusal: the renewals were deleted because another term has begun.
      if (error instanceof WrongRevision || this.changes !== before) return false;
      throw error;
    }
    this.take(tail, { ...event, revision }, hash);
    return true;
  }

  /**
   * Deletes the renewals before the current ones, once per stream. Goes back a few streams, because a holder may have
   * crashed before it deleted its own.
   * @throws {StoreUnavailable} if the store does not respond; the next holder tries again
   */
  async sweep(): Promise<void> {
    const { revision } = this.terms;
    if (this.sweptAt === revision) return;
    this.sweptAt = revision;
    for (let before = Math.max(0, revision - sweptBack); before < revision; before++) {
      await this.store.delete(renewalsStream(this.name, before));
    }
  }

  private async readOn(tail: Tail): Promise<void> {
    for await (const event of this.store.read(tail.stream, tail.revision + 1)) {
      const hash = verifyChain(tail.hash, event);
      this.take(tail, { ...event, ...readEvent(event) }, hash);
    }
  }

  private take(tail: Tail, { id, type, data, revision }: NewEvent & Pick<RecordedEvent, 'revision'>, hash: string) {
    switch (type) {
      case 'LeaseAcquired': {
        const { ttlMs } = data as { readonly ttlMs: number };
        this.latest = { id, token: revision, ttlMs, isOver: false };
        this.renewals = emptyTailOf(renewalsStream(this.name, revision));
        break;
      }
      case 'LeaseRenewalStreamOpened':
        this.renewals = emptyTailOf(renewalsStream(this.name, revision));
        // Whoever ended the earlier renewals was too late: this was recorded first.
        this.latest = { ...this.latest!, isOver: false };
        break;
      case 'LeaseRenewed':
        break;
      case 'LeaseReleased':
      case 'LeaseExpired':
        this.latest = { ...this.latest!, isOver: true };
        break;
      default:
        throw new Error(
          `the event \`${type}\` at revision ${revision} of stream \`${tail.stream}\` is unknown: start the release that wrote it, or a newer one`,
        );
    }
    tail.revision = revision;
    tail.hash = hash;
    this.changes += 1;
  }

  private draft(tail: Tail, type: string, data: object): Draft {
    // INVARIANT: nobody else has this id. A store treats equal ids as a repeated append, and would tell two candidates in
    // the same millisecond under the same name that each has the lease; so the id does not derive from the content.
    const id = randomUUID();
    const $correlationId = type === 'LeaseAcquired' ? id : (this.latest?.id ?? id);
    const metadata = { at: this.clock.now(), $correlationId, $causationId: this.latest?.id ?? id };
    const { events, tail: after } = seal(tail.stream, tail, [{ id, type, data, metadata }]);
    return { tail, event: events[0]!, ...after };
  }

  private present(): Tail {
    if (!this.renewals) throw new Error(`the lease \`${this.name}\` has no term yet: begin one`);
    return this.renewals;
  }
}

/** Maximum number of leftover streams of renewals before the current ones. */
const sweptBack = 3;

function emptyTailOf(stream: string): Tail {
  return { stream, ...emptyTail };
}

function renewalsStream(name: string, revision: number): string {
  return `renewals-${name}-${revision}`;
}
