import { CoordinatorError } from '../domain/errors.js';
import { FairQueue, strangersOf, type QueuePath } from '../fairness/fair-queue.js';
import type { AskedMessage } from '../ports/delivery.js';
import type { ContactLimits } from './contact-limits.js';
import type { Delivery } from './delivery.js';
import { consensusEmail } from './templates.js';

/** An activity that has begun to wait for votes. */
interface Wanted {
  readonly organizationName: string;
  readonly activityType: string;
  readonly activityId: string;
  /** Absent where it may hold anything: in a sub-organization. */
  readonly submitterName?: string;
  /** What it would sign, decoded; nothing that a caller could have worded. */
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

/** Notices that wait to be counted, at most: beyond it they are left out. */
const mostWaiting = 1_000;

/**
 * Tells people by mail that their vote is wanted. A hint and no more: it grants nothing, is not repeated, and is lost with a
 * process that dies before it was sent.
 */
export class VoteNotices {
  private waiting = new FairQueue<Notice>();
  private working: Promise<void> | undefined;

  /** @param failed told of a notice that could not even be begun; holds no address */
  constructor(
    private readonly delivery: Pick<Delivery, 'enqueue'>,
    private readonly limits: Pick<ContactLimits, 'countNotice'>,
    readonly failed: (activityId: string, error: unknown) => void,
  ) {}

  /**
   * Takes no time, and never fails whoever has submitted. Whoever waits takes turns, and strangers of one parent have half of
   * the places together.
   */
  send({ approvers, ...wanted }: Wanted, from: QueuePath): void {
    const mail = consensusEmail(wanted);
    for (const to of approvers.slice(0, this.roomFor(from))) {
      this.waiting.push(from, { to, activityId: wanted.activityId, mail, from });
    }
    // With nothing to do it would have ended before it is noted.
    if (this.waiting.size > 0) this.working ??= this.work();
  }

  /** Whether none waits or is on its way to the delivery. */
  get isIdle(): boolean {
    return this.working === undefined;
  }

  /** Leaves out what waits; resolves when nothing is on its way to the delivery any more. */
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

  /** One after the other: each is counted before the next is looked at. */
  private async work(): Promise<void> {
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) await this.tell(next);
    this.working = undefined;
  }

  private async tell({ to, activityId, mail, from }: Notice): Promise<void> {
    try {
      await this.limits.countNotice(to);
      this.delivery.enqueue({ channel: 'email', to: to.contact, ...mail }, from);
    } catch (error) {
      // Too many: they know by now that they are wanted.
      if (error instanceof CoordinatorError && error.code === 'RESOURCE_EXHAUSTED') return;
      this.failed(activityId, error);
    }
  }
}
