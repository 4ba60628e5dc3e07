import { Inject, Injectable } from '@nestjs/common';
import { CoordinatorError } from '../domain/errors.js';
import { FairQueue, strangersOf, type QueuePath } from '../fairness/fair-queue.js';
import { LOGGER, type Log } from '../logging/logger.js';
import type { AskedMessage } from '../ports/delivery.js';
import { ContactLimits } from './contact-limits.js';
import { DELIVERY, type Delivery } from './delivery.js';
import { consensusEmail } from './templates.js';

/** An activity that has started waiting for votes. */
interface Wanted {
  readonly organizationName: string;
  readonly activityType: string;
  readonly activityId: string;
  /** Absent if it may contain anything: in a sub-organization. */
  readonly submitterName?: string;
  /** What it would sign, decoded; without any text that a caller could have chosen. */
  readonly wouldSign?: readonly { readonly name: string; readonly value: string }[];
  /** E-mail addresses of those who may approve it. */
  readonly approvers: readonly AskedMessage[];
}

interface Notice {
  readonly to: AskedMessage;
  readonly activityId: string;
  readonly mail: ReturnType<typeof consensusEmail>;
  readonly from: QueuePath;
}

/** Maximum notices waiting to be counted: beyond it, they are dropped. */
const mostWaiting = 1_000;

/**
 * Mails people that their vote is wanted. This is only a hint: it grants nothing, is not repeated, and is lost if the
 * process dies before it was sent.
 */
@Injectable()
export class VoteNotices {
  private waiting = new FairQueue<Notice>();
  private working: Promise<void> | undefined;

  constructor(
    @Inject(DELIVERY) private readonly delivery: Pick<Delivery, 'enqueue'>,
    @Inject(ContactLimits) private readonly limits: Pick<ContactLimits, 'countNotice'>,
    @Inject(LOGGER) private readonly logger: Pick<Log, 'warn'>,
  ) {}

  /** A notice could not even be started. The line contains no address. */
  failed(activityId: string, err: unknown): void {
    this.logger.warn({ activityId, err }, 'approvers could not be told of an activity that waits for them');
  }

  /**
   * Returns at once, and never fails the submit. Waiting notices take turns, and strangers of one parent have half of
   * the slots together.
   */
  send({ approvers, ...wanted }: Wanted, from: QueuePath): void {
    const mail = consensusEmail(wanted);
    for (const to of approvers.slice(0, this.roomFor(from))) {
      this.waiting.push(from, { to, activityId: wanted.activityId, mail, from });
    }
    // With nothing to do, it would have ended before it is noted.
    if (this.waiting.size > 0) this.working ??= this.work();
  }

  /** Whether none is waiting or being handed to delivery. */
  get isIdle(): boolean {
    return this.working === undefined;
  }

  /** Drops what waits; resolves once nothing is being handed to delivery. */
  async close(): Promise<void> {
    this.waiting = new FairQueue();
    await this.working;
  }

  private roomFor(from: QueuePath): number {
    const left = mostWaiting - this.waiting.size;
    const family = strangersOf(from);
    if (family === undefined) return left;
    const ofFamily = [...this.waiting].filter((notice) => strangersOf(notice.from) === family).length;
    return Math.max(0, Math.min(left, mostWaiting / 2 - ofFamily));
  }

  /** One after the other: each is counted before the next is checked. */
  private async work(): Promise<void> {
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) await this.tell(next);
    this.working = undefined;
  }

  private async tell({ to, activityId, mail, from }: Notice): Promise<void> {
    try {
      await this.limits.countNotice(to);
      this.delivery.enqueue({ channel: 'email', to: to.contact, ...mail }, from);
    } catch (error) {
      // Too many: the approvers know by now.
      if (error instanceof CoordinatorError && error.code === 'RESOURCE_EXHAUSTED') return;
      this.failed(activityId, error);
    }
  }
}
