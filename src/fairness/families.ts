import { organizationPath } from './fair-queue.js';
import { FairSlots } from './fair-slots.js';

/** Who asks for a task: an organization, of the family of a parent, which has the parent's id. */
export interface Whose {
  readonly family: string;
  readonly organizationId: string;
}

/** Organizations of one family that may have a task running or waiting, beyond the most of all tasks. */
const mostOrganizations = 32;

/**
 * Tasks of a family of organizations, a parent with its sub-organizations: one at a time, with few waiting. Each organization may
 * have one; of more, the latest of whoever has most makes room. Parent and sub-organizations alternate, and these take
 * turns among themselves.
 */
export class Families {
  private readonly slots = new Map<string, FairSlots>();

  /** @param what the name of the tasks, in the refusal of one too many */
  constructor(
    private readonly most: number,
    private readonly what: string,
  ) {}

  /**
   * Runs the task once it is the organization's turn.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family are waiting, most of them this organization's
   */
  async inTurn<Made>({ family, organizationId }: Whose, work: () => Promise<Made>): Promise<Made> {
    const { most, what } = this;
    const slots = this.slots.get(family) ?? new FairSlots({ slots: 1, most, mostEver: most + mostOrganizations, what });
    this.slots.set(family, slots);
    const slot = await slots.enter(organizationPath(organizationId, organizationId === family ? undefined : family));
    try {
      return await work();
    } finally {
      slot.leave();
      if (slots.isUnused) this.slots.delete(family);
    }
  }
}
