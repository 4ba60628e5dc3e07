import { limitExceeded } from '../domain/errors.js';
import { FairQueue, organizationPath, type QueuePath } from './fair-queue.js';
import { Shares } from './shares.js';

/** Who asks for a task: an organization, of the family of a parent, which has the parent's id. */
export interface Whose {
  readonly family: string;
  readonly organizationId: string;
}

/**
 * Tasks of a family of organizations, a parent with its sub-organizations: one at a time, with few waiting.
 * Sub-organizations have half of the places together, because anyone may have one, and they must not keep the parent
 * from its own; and one of them has half of these, so that it does not keep out its siblings. Parent and sub-organizations
 * alternate, and these take turns among themselves.
 */
export class Families {
  private readonly shares: Shares;
  /** What waits, of each family that has a task running. */
  private readonly waiting = new Map<string, FairQueue<() => void>>();

  /** @param what the name of the tasks, in the refusal of one too many */
  constructor(
    most: number,
    private readonly what: string,
  ) {
    const strangers = Math.floor(most / 2);
    this.shares = new Shares({ family: most, strangers, one: Math.ceil(strangers / 2) });
  }

  /**
   * Runs the task once it is the organization's turn.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family, of its sub-organizations, or of this one, are
   * waiting
   */
  async inTurn<Made>({ family, organizationId }: Whose, work: () => Promise<Made>): Promise<Made> {
    const path = organizationPath(organizationId, organizationId === family ? undefined : family);
    const full = this.shares.full(path);
    if (full) throw limitExceeded(`${this.what}: ${this.shares.most[full]} ${whom[full]}`, 1);
    this.shares.take(path);
    try {
      await this.turn(family, path);
      return await work();
    } finally {
      this.shares.free(path);
      this.next(family);
    }
  }

  private async turn(family: string, path: QueuePath): Promise<void> {
    const waiting = this.waiting.get(family);
    if (waiting) return new Promise((begin) => waiting.push(path, begin));
    this.waiting.set(family, new FairQueue());
  }

  private next(family: string): void {
    const begin = this.waiting.get(family)?.shift();
    if (begin) begin();
    else this.waiting.delete(family);
  }
}

const whom = {
  family: 'for a parent and its sub-organizations',
  strangers: 'for the sub-organizations of a parent together',
  one: 'for one sub-organization',
} as const;
