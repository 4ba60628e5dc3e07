import { limitExceeded } from '../domain/errors.js';

/** Pieces of work of a family of organizations, a parent with its sub-organizations: one at a time, and few that wait. */
export class Families {
  private readonly families = new Map<string, { count: number; last: Promise<unknown> }>();

  /** @param what the pieces of work, as the refusal of one too many calls them */
  constructor(
    private readonly most: number,
    private readonly what: string,
  ) {}

  /**
   * Does the work once the family's earlier pieces are done.
   * @param family the parent's id, of a parent and of its sub-organizations
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED when too many of the family wait
   */
  async inTurn<Made>(family: string, work: () => Promise<Made>): Promise<Made> {
    const known = this.families.get(family) ?? { count: 0, last: Promise.resolve() };
    if (known.count >= this.most) {
      throw limitExceeded(`${this.what}: ${this.most} for a parent and its sub-organizations`, 1);
    }
    known.count++;
    this.families.set(family, known);
    const made = known.last.then(work);
    known.last = made.catch(() => undefined);
    try {
      return await made;
    } finally {
      known.count--;
      if (known.count === 0) this.families.delete(family);
    }
  }
}
