import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import type { Came } from './branch.js';
import { BranchCounts } from './branch-counts.js';
import { compareStates, type StateChange } from '../timeline/compare-states.js';
import { keptState } from '../timeline/fold-to.js';
import { isEvent, type Change } from './fork-change.js';
import { differing, isSame, said, type Differing, type Requested, type States } from './outcome-texts.js';
import { allThings } from '../timeline/state-things.js';

/** A request with a different outcome on the branch. */
export interface Divergence extends Differing {
  /** False if its outcome depends on something missing from the history. */
  readonly isJudged: boolean;
  /** What it changed, and what it changes on the branch. */
  readonly changed: readonly string[];
  readonly changes: readonly string[];
}

/** The change. */
export interface Changed {
  readonly kind: Change['kind'];
  readonly revision: number;
  readonly text: string;
  /** The outcome of an edited or inserted request. */
  readonly is?: string;
  /** What differs immediately after it. */
  readonly changes: readonly string[];
}

/** What would have become of an organization. */
export interface Forked {
  readonly organizationId: string;
  /** Revision of the last event of the history. */
  readonly last: number;
  /** Number of events before the branch. */
  readonly shared: number;
  readonly change?: Changed;
  /** In order: all of them follow from the first, or from the change itself. */
  readonly divergences: readonly Divergence[];
  /** Number of divergences beyond those reported. */
  readonly more: number;
  /** Why denied requests were not decided again, and how many. */
  readonly notDecided: readonly { readonly why: string; readonly count: number }[];
  readonly unchanged: {
    /** Requests and votes with the same outcome. */
    readonly decisions: number;
    /** Of them, those that other policies decided. */
    readonly forOtherReasons: number;
    readonly denials: number;
    /** Things that ended up as recorded, by list. */
    readonly things: Readonly<Record<string, number>>;
  };
  /** What differs at the end. */
  readonly differences: readonly StateChange[];
}

/** Maximum divergences reported; comparing states for each takes time. */
const mostTold = 1_000;
/** Maximum changes reported for each. */
const mostChanges = 50;

/** Collects the differences of a branch, in words. */
export class ForkReport extends BranchCounts {
  private shared = 0;
  private change: Changed | undefined;
  private readonly divergences: Divergence[] = [];
  private more = 0;

  constructor(
    private readonly organizationId: string,
    private readonly now: number,
  ) {
    super();
  }

  begins(events: number): void {
    this.shared = events;
  }

  /** @param event the recorded event @param came the outcome of the request that is there now */
  changes(change: Change, event: OrganizationEvent | undefined, came: Came | undefined, states: States): void {
    const { kind, revision } = change;
    const what = kind === 'insert' ? insertedAs(change) : event!.type;
    const done = { skip: 'is left out', edit: 'is edited', insert: 'is inserted' }[kind];
    const changes = this.between(...states);
    this.change = { kind, revision, text: `${what} ${done}`, ...(came ? { is: said(came) } : {}), changes };
  }

  /**
   * Compares the record with the outcome on the branch, before either is applied.
   * @param recorded undefined for a denial
   * @returns a function to call once both are applied
   */
  compare(requested: Requested, recorded: Came | undefined, came: Came, states: States): (after: States) => void {
    if (recorded && isSame(recorded, came)) {
      this.sameDecision(requested, recorded, came, states);
      return () => undefined;
    }
    if (this.divergences.length >= mostTold) {
      this.more++;
      return () => undefined;
    }
    const differs = differing(requested, recorded, came, states);
    const [original, branch] = states;
    const before = [keptState(original), keptState(branch)] as const;
    return (after) => {
      this.divergences.push({
        ...differs,
        isJudged: came.kind !== 'unknown',
        changed: this.between(before[0], after[0]),
        changes: this.between(before[1], after[1]),
      });
    };
  }

  ended(original: OrganizationView, branch: OrganizationView, last: number): Forked {
    const { organizationId, shared, change, divergences, more, undecided, same } = this;
    const differences = [...compareStates(original, branch, this.now)];
    const other = new Set(differences.map(({ list, id }) => `${list} ${id}`));
    const things: Record<string, number> = {};
    for (const { list, id } of allThings(original)) {
      if (!other.has(`${list} ${id}`)) things[list] = (things[list] ?? 0) + 1;
    }
    return {
      organizationId,
      last,
      shared,
      ...(change ? { change } : {}),
      divergences,
      more,
      notDecided: undecided,
      unchanged: { decisions: same.decisions, forOtherReasons: same.forOtherReasons, denials: same.denials, things },
      differences,
    };
  }

  private between(before: OrganizationView, after: OrganizationView): string[] {
    const texts: string[] = [];
    for (const { text } of compareStates(before, after, this.now)) {
      if (texts.push(text) > mostChanges) return [...texts.slice(0, mostChanges), 'and more'];
    }
    return texts;
  }
}

function insertedAs(change: Exclude<Change, { kind: 'skip' }>): string {
  const { as } = change;
  const type = as.type ?? 'a request';
  return isEvent(as) ? type : `${type} of user \`${as.userId ?? ''}\``;
}
