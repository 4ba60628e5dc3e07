import type { Came } from './branch.js';
import { whyOtherwise, type Requested, type States } from './outcome-texts.js';

/** Counts what comes out on a branch as it was recorded, and what cannot be decided there. */
export abstract class BranchCounts {
  /** Requests and votes with the same outcome, and those of them that other policies decided; denials; taken as recorded. */
  protected readonly same = { decisions: 0, forOtherReasons: 0, denials: 0, asRecorded: 0 };
  private readonly whys = new Map<string, number>();

  /** @param mostWhys reasons that are told apart: they may name what requests say */
  constructor(private readonly mostWhys = Infinity) {}

  notDecided(why: string): void {
    const told = this.whys.has(why) || this.whys.size < this.mostWhys ? why : 'another reason';
    this.whys.set(told, (this.whys.get(told) ?? 0) + 1);
  }

  sameDenial(): void {
    this.same.denials++;
  }

  asRecorded(): void {
    this.same.asRecorded++;
  }

  protected sameDecision(requested: Requested, recorded: Came, came: Came, states: States): void {
    this.same.decisions++;
    if (whyOtherwise(requested, recorded, came, states).length > 0) this.same.forOtherReasons++;
  }

  /** Why requests were not decided, and how many. */
  protected get undecided(): { readonly why: string; readonly count: number }[] {
    return [...this.whys].map(([why, count]) => ({ why, count }));
  }
}
