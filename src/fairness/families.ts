import { limitExceeded } from '../domain/errors.js';

interface Family {
  /** Tasks running or waiting, and those of sub-organizations among them. */
  count: number;
  ofSubOrganizations: number;
  last: Promise<unknown>;
}

/**
 * Tasks of a family of organizations, a parent with its sub-organizations: one at a time, with few waiting.
 * Sub-organizations have half of the places together, because anyone may have one, and they must not keep the parent
 * from its own.
 */
export class Families {
  private readonly families = new Map<string, Family>();

  /** @param what the name of the tasks, in the refusal of one too many */
  constructor(
    private readonly most: number,
    private readonly what: string,
  ) {}

  /**
   * Runs the task once the family's earlier ones are done.
   * @param family the parent's id, for a parent and for its sub-organizations
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family, or of its sub-organizations, are waiting
   */
  async inTurn<Made>(
    { family, organizationId }: { readonly family: string; readonly organizationId: string },
    work: () => Promise<Made>,
  ): Promise<Made> {
    const known = this.families.get(family) ?? { count: 0, ofSubOrganizations: 0, last: Promise.resolve() };
    const part = organizationId === family ? 0 : 1;
    if (known.count >= this.most) {
      throw limitExceeded(`${this.what}: ${this.most} for a parent and its sub-organizations`, 1);
    }
    const half = Math.floor(this.most / 2);
    if (known.ofSubOrganizations + part > half) {
      throw limitExceeded(`${this.what}: ${half} for the sub-organizations of a parent together`, 1);
    }
    known.count++;
    known.ofSubOrganizations += part;
    this.families.set(family, known);
    const made = known.last.then(work);
    known.last = made.catch(() => undefined);
    try {
      return await made;
    } finally {
      known.count--;
      known.ofSubOrganizations -= part;
      if (known.count === 0) this.families.delete(family);
    }
  }
}
