import { Inject, Injectable, Optional } from '@nestjs/common';
import { mailboxOf } from '../domain/contact-key.js';
import { CoordinatorError, limitExceeded } from '../domain/errors.js';
import { longestLeadMs } from '../domain/organization/clock-mends.js';
import type { DomainEvent } from '../domain/organization/event.js';
import { LatestEntries } from '../fairness/latest-entries.js';
import { appendWithRetry, type Addition } from '../ledger/append-with-retry.js';
import { GENESIS_HASH, verifyChain, type EventMetadata } from '../ledger/chain.js';
import {
  sendsKept,
  StoreRefused,
  StoreUnavailable,
  WrongRevision,
  EVENT_STORE,
  type EventStore,
  type RecordedEvent,
} from '../ledger/event-store.js';
import { emptyTail } from '../ledger/seal.js';
import { uuidV7 } from '../ledger/ids.js';
import { SendDigest } from '../keyring/send-digest.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import type { AskedMessage } from '../ports/delivery.js';

/** What is recorded of one message: who requested it. */
interface MessageCounted {
  readonly sender: AskedMessage['sender'];
  /** Digest of the organization of strangers that requested it. */
  readonly caller?: string;
}

/** Contents of a `message-counts-…` stream. */
export type SendEvent = DomainEvent<'MessageCounted', MessageCounted>;

interface Limit {
  readonly most: number;
  readonly windowMs: number;
  /** As the refused caller reads it. */
  readonly name: string;
  readonly counts: (message: MessageCounted) => boolean;
  /** Whose messages to count, if a stream has those of several. */
  readonly caller?: string;
}

/** A stream of messages, and its limits. */
interface Count {
  readonly stream: string;
  readonly limits: readonly Limit[];
  readonly message: MessageCounted;
}

const minute = 60_000;
const hour = 60 * minute;
const window = 3 * minute;

/** Messages to one contact over the whole installation. A part is reserved for the account and the parent. */
const perContact = { all: 30, strangers: 4 } as const;
/** Messages of one organization of strangers: to one contact, and in total within an hour. */
const perCaller = { toOneContact: 3, anHour: 60 } as const;
/** Notices to one address within an hour: submitters must not be able to flood approvers. */
const perApprover = { all: 20, strangers: 10 } as const;

const isStrangers = ({ sender }: MessageCounted): boolean => sender !== 'trusted';

const toContact: Limit = {
  most: perContact.all,
  windowMs: window,
  name: `${perContact.all} messages to one contact in three minutes`,
  counts: () => true,
};
const byStrangers: Limit = {
  most: perContact.strangers,
  windowMs: window,
  name: `${perContact.strangers} messages to one contact in three minutes that neither its account nor the parent requested`,
  counts: isStrangers,
};
const byCaller = (caller: string): Limit => ({
  most: perCaller.toOneContact,
  windowMs: window,
  name: `${perCaller.toOneContact} messages from one organization to one contact in three minutes`,
  counts: (message) => message.caller === caller,
  caller,
});
const ofCaller: Limit = {
  most: perCaller.anHour,
  windowMs: hour,
  name: `${perCaller.anHour} messages from one sub-organization in an hour to contacts that nobody there has verified`,
  counts: () => true,
};
const notices: Limit = {
  most: perApprover.all,
  windowMs: hour,
  name: `${perApprover.all} notices to one address in an hour`,
  counts: () => true,
};
const noticesOfStrangers: Limit = {
  most: perApprover.strangers,
  windowMs: hour,
  name: `${perApprover.strangers} notices to one address in an hour from organizations other than its own`,
  counts: isStrangers,
};

/** Each conflict means that another coordinator has counted a message, so a limit is reached long before. */
const mostTries = 2 * sendsKept;
/** About 200 bytes each. */
const usuallyFull = 10_000;

/**
 * How often a contact may be written to, whoever requests it (security rule R6). Messages are counted in the event
 * store before they are created, in one stream per contact, at the revision that was read: all coordinators share the
 * count, and a restart does not reset it (docs/adr/0018). What cannot be counted is not sent.
 */
@Injectable()
export class ContactLimits {
  /** Work in progress on a stream: messages of one process need not conflict. */
  private readonly turns = new Map<string, Promise<unknown>>();
  /** Limits known to be reached, and until when: reading again could only confirm it. */
  private readonly full: LatestEntries<{ readonly limit: Limit; readonly until: number }>;
  private readonly startedAt: number;

  /** @param mostFull maximum number of streams remembered as full for a while */
  constructor(
    @Inject(EVENT_STORE) private readonly store: Pick<EventStore, 'append' | 'last'>,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOMNESS) private readonly randomness: Randomness,
    @Inject(SendDigest) private readonly digest: Pick<SendDigest, 'of'>,
    @Optional() mostFull = usuallyFull,
  ) {
    // Evicting an entry permits nothing: the stream is read again.
    this.full = new LatestEntries(mostFull);
    this.startedAt = clock.now();
  }

  /**
   * Counts a message before it is created.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED RATE_LIMIT_EXCEEDED for too many, and then nothing is counted;
   * UNAVAILABLE if it cannot be counted
   */
  async count(requested: AskedMessage): Promise<void> {
    const { contact, ofSender } = await this.countsOf(requested);
    if (ofSender) await this.check(ofSender);
    await this.take(contact);
    if (ofSender) await this.take(ofSender);
  }

  /** Counts a notice that a vote is wanted, which also counts as a message. @throws {CoordinatorError} as `count` */
  async countNotice(requested: AskedMessage): Promise<void> {
    const { sender } = requested;
    const notice: Count = {
      stream: await this.stream('notices', mailboxOf(requested.contact)),
      limits: isStrangers({ sender }) ? [noticesOfStrangers, notices] : [notices],
      message: { sender },
    };
    // Checked first, so that notices cannot use up the limit of codes.
    await this.check(notice);
    await this.count(requested);
    await this.take(notice);
  }

  private async countsOf(requested: AskedMessage): Promise<{ readonly contact: Count; readonly ofSender?: Count }> {
    const { sender, organizationId } = requested;
    const stream = await this.stream('contact', mailboxOf(requested.contact));
    // The proxy counts its own clients.
    if (sender !== 'untrusted') {
      const limits = sender === 'trusted' ? [toContact] : [byStrangers, toContact];
      return { contact: { stream, limits, message: { sender } } };
    }
    const caller = await this.digest.of(`caller\0${organizationId}`);
    return {
      contact: { stream, limits: [byCaller(caller), byStrangers, toContact], message: { sender, caller } },
      ofSender: { stream: `message-counts-${caller}`, limits: [ofCaller], message: { sender } },
    };
  }

  private async stream(kind: string, name: string): Promise<string> {
    return `message-counts-${await this.digest.of(`${kind}\0${name}`)}`;
  }

  /** Refuses what `take` would refuse, without counting. */
  private async check(count: Count): Promise<void> {
    this.refuseFull(count);
    const tail = await this.read(count.stream);
    this.refuseMore(count, tail, this.timeAfter(tail));
  }

  private take(count: Count): Promise<void> {
    return this.inTurn(count.stream, async () => {
      this.refuseFull(count);
      const decide = async () => {
        const tail = await this.read(count.stream);
        const now = this.timeAfter(tail);
        this.refuseMore(count, tail, now);
        return this.addition(count, tail.at(-1), now);
      };
      await appendWithRetry(this.store, count.stream, decide, { attempts: mostTries }).catch(asUncounted);
    });
  }

  private refuseFull({ stream, limits }: Count): void {
    for (const limit of limits) {
      const known = this.full.get(keyOf(stream, limit));
      if (known) refuse(known.limit, known.until, this.clock.now());
    }
  }

  /** @throws {CoordinatorError} RESOURCE_EXHAUSTED if the stream has reached one of its limits */
  private refuseMore({ stream, limits }: Count, tail: readonly RecordedEvent[], now: number): void {
    for (const limit of limits) {
      const { most, windowMs } = limit;
      const counted = tail.filter(
        (event) => this.sentAt(event, now) > now - windowMs && limit.counts(event.data as MessageCounted),
      );
      const leaving = counted.at(-most);
      if (!leaving) continue;
      const until = this.sentAt(leaving, now) + windowMs;
      this.full.set(keyOf(stream, limit), { limit, until });
      refuse(limit, until, now);
    }
  }

  private async read(stream: string): Promise<readonly RecordedEvent[]> {
    const tail = await this.store.last(stream, sendsKept).catch(asUncounted);
    let before = tail[0]?.revision === 0 ? GENESIS_HASH : undefined;
    for (const event of tail) {
      if (before !== undefined) verifyChain(before, event);
      before = hashOf(event);
    }
    return tail;
  }

  private addition({ message }: Count, last: RecordedEvent | undefined, at: number): Addition {
    // INVARIANT: nobody else has this id, or the store would treat two messages as one.
    const id = uuidV7(this.clock, this.randomness);
    const type: SendEvent['type'] = 'MessageCounted';
    const tail = last ? { revision: last.revision, hash: hashOf(last) } : emptyTail;
    const metadata = { at, $correlationId: id, $causationId: id };
    return { tail, facts: [{ id, type, data: message, metadata }] };
  }

  /**
   * Time does not run backwards in a stream (security rule R8), unless its last message was counted with a clock that was far ahead:
   * nothing is decided by these times but how often a contact is written to.
   */
  private timeAfter(tail: readonly RecordedEvent[]): number {
    const { clock } = this;
    const last = tail.at(-1);
    if (!last) return clock.now();
    const isFar = timeOf(last) - clock.now() > longestLeadMs;
    if (!isFar && timeOf(last) > clock.now()) clock.follow?.(timeOf(last));
    return isFar ? clock.now() : Math.max(clock.now(), timeOf(last));
  }

  /** Messages that were counted with a clock that was far ahead count as if sent when this process started: none counts for longer. */
  private sentAt(event: RecordedEvent, now: number): number {
    return timeOf(event) - now > longestLeadMs ? this.startedAt : timeOf(event);
  }

  private async inTurn<Result>(stream: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.turns.get(stream) ?? Promise.resolve();
    const running = before.then(work, work);
    this.turns.set(stream, running);
    try {
      return await running;
    } finally {
      if (this.turns.get(stream) === running) this.turns.delete(stream);
    }
  }
}

const keyOf = (stream: string, { name, caller = '' }: Limit): string => `${stream} ${caller} ${name}`;
const timeOf = ({ metadata }: RecordedEvent): number => (metadata as EventMetadata).at;
const hashOf = ({ metadata }: RecordedEvent): string => (metadata as EventMetadata).hash;

function refuse({ name }: Limit, until: number, now: number): void {
  if (until > now) throw limitExceeded(name, Math.max(1, Math.ceil((until - now) / 1_000)));
}

function asUncounted(error: unknown): never {
  if (error instanceof WrongRevision) throw uncounted('too many messages are being counted at the same time', error);
  if (error instanceof StoreRefused) {
    throw uncounted('the event store refuses access, which its operator must fix', error);
  }
  if (error instanceof StoreUnavailable) throw uncounted('the event store did not respond', error);
  throw error;
}

function uncounted(why: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `nothing was sent, because the messages to this contact could not be counted: ${why}; send the same request again later`,
    { cause },
  );
}
