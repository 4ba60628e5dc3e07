import { isActivityEvent } from '../../domain/activity/events.js';
import type { Registry } from '../../decide/registry.js';
import type { Steps } from '../../domain/steps.js';
import { isDenied, type Came } from './branch.js';
import { BranchCounts } from './branch-counts.js';
import { compareStates } from '../timeline/compare-states.js';
import type { BranchReport, Ends } from './branch-report.js';
import { differing, isSame, type Differing, type Requested, type States } from './outcome-texts.js';
import { waitingOtherwise, type WaitingOtherwise } from './waiting-otherwise.js';

/** How a request comes out otherwise, the gravest first. */
export const divergenceKinds = ['newly-allowed', 'newly-denied', 'now-waits', 'not-judged', 'otherwise'] as const;
export type DivergenceKind = (typeof divergenceKinds)[number];

/** A request or vote with a different outcome. */
export interface Otherwise extends Differing {
  readonly kind: DivergenceKind;
  /**
   * Whether the draft alone makes the difference: on the recorded state it comes out otherwise too. Where not, it follows
   * from one that came out otherwise before.
   */
  readonly isFirst: boolean;
}

/** What would have become of an organization. */
export interface WhatIf {
  readonly organizationId: string;
  /** Revision of the last event of the history, and the number of events before the draft holds. */
  readonly last: number;
  readonly from: number;
  /** By kind, how many requests come out otherwise. */
  readonly counts: Readonly<Record<DivergenceKind, number>>;
  /** Newly allowed first, then by kind; in order within one. At most 1,000 of a kind. */
  readonly divergences: readonly Otherwise[];
  /** Number of divergences beyond those told. */
  readonly more: number;
  /** Activities that wait at the end, and have another prospect. */
  readonly waiting: readonly WaitingOtherwise[];
  /** Why requests cannot be judged, and how many. */
  readonly notJudged: readonly { readonly why: string; readonly count: number }[];
  /** Parts of the draft that never took effect, as what they name was never there. */
  readonly neverHeld: readonly string[];
  readonly unchanged: {
    readonly decisions: number;
    /** Of them, those that other policies decide. */
    readonly forOtherReasons: number;
    readonly denials: number;
    /** Decisions of the parent, taken as recorded. */
    readonly asRecorded: number;
  };
  /** What differs at the end, in words; at most 200. */
  readonly differences: readonly string[];
  readonly moreDifferences: number;
  /** Which bound was hit, and how far it came. */
  readonly notComplete?: string;
}

/** What is told at most. */
export interface ReportRoom {
  /** Bytes of divergences of a kind, as JSON. */
  readonly bytes: Readonly<Record<DivergenceKind, number>>;
  /** Policies named as the reason of one. */
  readonly because: number;
  /** Reasons why requests cannot be judged, and activities that wait. */
  readonly whys: number;
  readonly waiting: number;
  /** Characters of one text. */
  readonly characters: number;
}

/** An answer of about a mebibyte. */
export const responseCapacity: ReportRoom = {
  bytes: {
    'newly-allowed': 400_000,
    'newly-denied': 100_000,
    'now-waits': 100_000,
    'not-judged': 50_000,
    otherwise: 100_000,
  },
  because: 20,
  whys: 100,
  waiting: 1_000,
  characters: 500,
};

/** Maximum divergences told of a kind. */
const mostOfKind = 1_000;
/** Maximum differences told of the states at the end. */
const mostDifferences = 200;

interface ReportOptions {
  readonly registry: Registry;
  readonly now: number;
  readonly meter: Steps | undefined;
  readonly room: ReportRoom | undefined;
}

/** Collects what comes out otherwise under a draft. */
export class WhatIfReport extends BranchCounts implements BranchReport {
  private readonly told = new Map<DivergenceKind, Otherwise[]>(divergenceKinds.map((kind) => [kind, []]));
  private readonly counts = Object.fromEntries(divergenceKinds.map((kind) => [kind, 0])) as Record<
    DivergenceKind,
    number
  >;
  private readonly left: Record<DivergenceKind, number> | undefined;
  private from = 0;
  /** Activities that could not be judged, and ids in their recorded effects: the branch lacks them for no other reason. */
  private readonly unjudged = { activities: new Set<string>(), ids: new Set<string>() };

  constructor(private readonly options: ReportOptions) {
    super(options.room?.whys);
    this.left = options.room && { ...options.room.bytes };
  }

  begins(events: number): void {
    this.from = events;
  }

  changes(): void {
    throw new Error('a draft changes no single event');
  }

  compare(requested: Requested, recorded: Came | undefined, came: Came, states: States, alone: () => Came): () => void {
    const done = () => undefined;
    if (recorded && isSame(recorded, came)) {
      this.sameDecision(requested, recorded, came, states);
      return done;
    }
    if (came.kind === 'unknown') this.unjudged.activities.add(requested.activityId);
    if (recorded?.kind === 'decided' && this.unjudged.activities.has(requested.activityId)) {
      for (const { data } of recorded.events.filter((event) => !isActivityEvent(event)))
        noteTexts(data, this.unjudged.ids);
    }
    const kind = kindOf(recorded, came);
    this.counts[kind]++;
    if (came.kind === 'unknown') this.notDecided(came.why);
    const told = this.told.get(kind)!;
    if (told.length >= mostOfKind || (this.left && this.left[kind] <= 0)) return done;
    const only = alone();
    const isFirst = recorded ? !isSame(recorded, only) : !isDenied(only);
    const one = this.shortened({ kind, isFirst, ...differing(requested, recorded, came, states) });
    if (this.left) this.left[kind] -= Buffer.byteLength(JSON.stringify(one));
    told.push(one);
    return done;
  }

  private shortened(one: Otherwise): Otherwise {
    const { room } = this.options;
    if (!room) return one;
    const { because } = one;
    const some = because.slice(0, room.because).map((text) => this.cut(text));
    const rest = because.length - some.length;
    const told = rest > 0 ? [...some, `and ${rest} more policies`] : some;
    return { ...one, was: this.cut(one.was), is: this.cut(one.is), because: told };
  }

  private cut(text: string): string {
    const { characters = Infinity } = this.options.room ?? {};
    return text.length > characters ? `${text.slice(0, characters)}…` : text;
  }

  ended(organizationId: string, { original, branch, last, isCut }: Ends, neverHeld: readonly string[]): WhatIf {
    const { from, counts, told, undecided, same } = this;
    const { registry, now, meter, room } = this.options;
    const divergences = divergenceKinds.flatMap((kind) => told.get(kind)!);
    const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const differences: string[] = [];
    let moreDifferences = 0;
    for (const { text, id, change } of compareStates(original, branch, now)) {
      if (change === 'DELETED' && this.unjudged.ids.has(id)) continue;
      if (differences.length < mostDifferences) differences.push(this.cut(text));
      else moreDifferences++;
    }
    const waits = waitingOtherwise(original, branch, { registry, now, revision: last, meter, most: room?.waiting });
    const why = isCut ? cutAt(last) : waits.isCut ? cutAtWaiting : undefined;
    return {
      organizationId,
      last,
      from,
      counts,
      divergences,
      more: all - divergences.length,
      waiting: waits.told,
      notJudged: undecided.map((one) => ({ ...one, why: this.cut(one.why) })),
      neverHeld: neverHeld.map((text) => this.cut(text)),
      unchanged: same,
      differences,
      moreDifferences,
      ...(why === undefined ? {} : { notComplete: why }),
    };
  }
}

function noteTexts(value: unknown, texts: Set<string>): void {
  if (typeof value === 'string') texts.add(value);
  else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) noteTexts(one, texts);
}

const cutAt = (revision: number): string =>
  `the steps of one question were used up at revision ${revision}: what came later was not decided again. ` +
  'Run `countersign policies what-if` on the store, which has no such limit';
const cutAtWaiting = 'not every activity that waits is listed';

type Verdict = 'allowed' | 'waits' | 'denied' | 'rejected' | 'refused' | 'unknown';

function kindOf(recorded: Came | undefined, came: Came): DivergenceKind {
  const [was, is] = [recorded ? verdictOf(recorded) : 'denied', verdictOf(came)];
  if (is === 'unknown') return 'not-judged';
  if (is === 'allowed' && was !== 'allowed') return 'newly-allowed';
  if (is === 'denied' && was !== 'denied') return 'newly-denied';
  if (is === 'waits' && was !== 'waits') return 'now-waits';
  return 'otherwise';
}

function verdictOf(came: Came): Verdict {
  if (came.kind === 'unknown') return came.isAllowed ? 'allowed' : 'unknown';
  if (came.kind === 'refused') return isDenied(came) ? 'denied' : 'refused';
  const [first] = came.events;
  if (first?.type === 'ActivityRejected') return 'rejected';
  return first && 'decision' in first.data && first.data.decision.outcome === 'allow' ? 'allowed' : 'waits';
}
