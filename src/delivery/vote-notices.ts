import { KeyedLimit } from '../rate-limits/keyed-limit.js';
import type { Delivery, MessageOwner } from './delivery.js';
import { consensusEmail } from './templates.js';

/** An activity that has begun to wait for votes. */
interface Wanted {
  readonly organizationName: string;
  readonly activityType: string;
  readonly activityId: string;
  /** Absent where it may hold anything: in a sub-organization. */
  readonly submitterName?: string;
  /** E-mail addresses of those who may approve it. */
  readonly approvers: readonly string[];
}

/** Notices to one address within an hour, at most: whoever may submit must not be able to flood whoever may approve. */
const perHour = 20;

/**
 * Tells people by mail that their vote is wanted. A hint and no more: it grants nothing, is not repeated, and is lost with a
 * process that dies before it was sent.
 */
export class VoteNotices {
  private readonly limit = new KeyedLimit({ most: perHour, windowMs: 3_600_000, name: `${perHour} notices an hour` });

  /** @param failed told of a notice that could not even be begun; holds no address */
  constructor(
    private readonly delivery: Pick<Delivery, 'enqueue'>,
    private readonly failed: (activityId: string, error: unknown) => void,
  ) {}

  /** Takes no time, and never fails whoever has submitted. */
  send({ approvers, ...wanted }: Wanted, owner: MessageOwner): void {
    const mail = consensusEmail(wanted);
    for (const to of approvers) this.enqueue(to, mail, wanted.activityId, owner);
  }

  private enqueue(to: string, mail: ReturnType<typeof consensusEmail>, activityId: string, owner: MessageOwner): void {
    try {
      this.limit.take(to.toLowerCase(), { trusted: true });
    } catch {
      // Too many: they know by now that they are wanted.
      return;
    }
    try {
      this.delivery.enqueue({ channel: 'email', to, ...mail }, owner);
    } catch (error) {
      this.failed(activityId, error);
    }
  }
}
