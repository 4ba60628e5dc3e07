import { isDeepStrictEqual } from 'node:util';
import { PolicyDenial } from '../decide/refusals.js';
import type { DenialEvent } from '../domain/activity/denial.js';
import type { Decision } from '../domain/activity/events.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { Came } from './branch.js';
import { compareStates, quoted, type StateChange } from './compare-states.js';
import { inRecordedWords } from './decide-again.js';
import { keptState } from './fold-to.js';
import { isEvent, type Change } from './fork-change.js';
import { allThings } from './state-things.js';

/** A request with a different outcome on the branch. */
export interface Divergence {
  /** Where it was decided; for a denial, its revision in the stream of denials. */
  readonly revision: number;
  readonly isDenial: boolean;
  readonly at: string;
  readonly activityId: string;
  readonly activityType: string;
  readonly userId: string;
  readonly userName: string | undefined;
  readonly was: string;
  readonly is: string;
  /** False if its outcome depends on something missing from the history. */
  readonly isJudged: boolean;
  /** Outcomes of policies, if they differ. */
  readonly because: readonly string[];
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
    /** Decisions from before rules had a number, taken as recorded. */
    readonly asRecorded: number;
    /** Things that ended up as recorded, by list. */
    readonly things: Readonly<Record<string, number>>;
  };
  /** What differs at the end. */
  readonly differences: readonly StateChange[];
}

/** Who asked for what, and where that is recorded. */
export interface Requested {
  readonly revision: number;
  readonly at: number;
  readonly activityId: string;
  readonly activityType: string;
  readonly userId: string;
  readonly denial?: DenialEvent['data'];
}

type States = readonly [original: OrganizationView, branch: OrganizationView];

/** Maximum divergences reported; comparing states for each takes time. */
const mostTold = 1_000;
/** Maximum changes reported for each. */
const mostChanges = 50;

/** Collects the differences of a branch, in words. */
export class ForkReport {
  /** @see Forked.unchanged */
  asRecorded = 0;
  private shared = 0;
  private change: Changed | undefined;
  private readonly divergences: Divergence[] = [];
  private more = 0;
  private readonly whys = new Map<string, number>();
  private readonly same = { decisions: 0, forOtherReasons: 0, denials: 0 };

  constructor(
    private readonly organizationId: string,
    private readonly now: number,
  ) {}

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

  notDecided(why: string): void {
    this.whys.set(why, (this.whys.get(why) ?? 0) + 1);
  }

  sameDenial(): void {
    this.same.denials++;
  }

  /**
   * Compares the record with the outcome on the branch, before either is applied.
   * @param recorded undefined for a denial
   * @returns a function to call once both are applied
   */
  compare(requested: Requested, recorded: Came | undefined, came: Came, states: States): (after: States) => void {
    const because = reasons(evaluationsOf(requested, recorded), evaluationsIn(came), states);
    if (recorded && isSame(recorded, came)) {
      this.same.decisions++;
      if (because.length > 0) this.same.forOtherReasons++;
      return () => undefined;
    }
    if (this.divergences.length >= mostTold) {
      this.more++;
      return () => undefined;
    }
    const { revision, denial, at, activityId, activityType, userId } = requested;
    const [original, branch] = states;
    const before = [keptState(original), keptState(branch)] as const;
    return (after) => {
      this.divergences.push({
        revision,
        isDenial: denial !== undefined,
        at: new Date(at).toISOString(),
        activityId,
        activityType,
        userId,
        userName: (original.users.get(userId) ?? branch.users.get(userId))?.userName,
        was: recorded ? said(recorded) : `denied: ${denial?.reason ?? ''}`,
        is: said(came),
        isJudged: came.kind !== 'unknown',
        because,
        changed: this.between(before[0], after[0]),
        changes: this.between(before[1], after[1]),
      });
    };
  }

  ended(original: OrganizationView, branch: OrganizationView, last: number): Forked {
    const { organizationId, shared, change, divergences, more, whys, same, asRecorded } = this;
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
      notDecided: [...whys].map(([why, count]) => ({ why, count })),
      unchanged: { ...same, asRecorded, things },
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

/** The outcome of a request, in words. */
function said(came: Came): string {
  if (came.kind === 'unknown') return `cannot be judged: ${came.why}`;
  if (came.kind === 'refused') {
    const { code, message, details } = came.error;
    const [detail] = came.error instanceof PolicyDenial ? details : [];
    return code === 'PERMISSION_DENIED'
      ? `denied: ${detail && 'message' in detail ? (detail.message as string) : message}`
      : `refused: ${code}: ${message}`;
  }
  const [first] = came.events;
  const end = came.events.at(-1);
  if (end?.type === 'ActivityCompleted') return 'done';
  if (end?.type === 'ActivityFailed') return `failed: ${end.data.failure.code}: ${end.data.failure.message}`;
  if (first?.type === 'ActivityRejected') return 'rejected';
  return first?.type === 'ActivityApproved' ? 'approved; more votes are needed' : 'waits for votes';
}

function isSame(recorded: Came, came: Came): boolean {
  if (recorded.kind !== 'decided' || came.kind !== 'decided') return false;
  return isDeepStrictEqual(
    recorded.events.map(withoutReasons),
    inRecordedWords(came.events, recorded.events).map(withoutReasons),
  );
}

/** Every decision also names policies that had nothing to do with it. */
function withoutReasons(event: OrganizationEvent): object {
  if (!('decision' in event.data)) return event;
  const { policies: _policies, by: _by, ...decision } = event.data.decision;
  return { type: event.type, data: { ...event.data, decision } };
}

type Evaluations = Pick<Decision, 'policies'> & { readonly by?: Decision['by'] };

function evaluationsIn(came: Came): Evaluations {
  if (came.kind === 'refused')
    return came.error instanceof PolicyDenial ? told(came.error.recordedDetails) : { policies: [] };
  const [first] = came.events;
  return first && 'decision' in first.data ? first.data.decision : { policies: [] };
}

function evaluationsOf({ denial }: Requested, recorded: Came | undefined): Evaluations {
  return recorded ? evaluationsIn(recorded) : told(denial?.details ?? []);
}

function told(details: DenialEvent['data']['details']): Evaluations {
  const [detail] = details as readonly { readonly policyEvaluations?: Decision['policies'] }[];
  return { policies: detail?.policyEvaluations ?? [] };
}

function reasons(was: Evaluations, is: Evaluations, [original, branch]: States): string[] {
  const [before, after] = [was, is].map(
    ({ policies }) => new Map(policies.map((one) => [one.policyId, one.outcome])),
  ) as [Map<string, string>, Map<string, string>];
  const silent = 'OUTCOME_DENY_IMPLICIT';
  // The root quorum stands above policies, which are not evaluated then.
  const texts = was.by !== is.by && was.by && is.by ? [`decided by ${was.by} → ${is.by}`] : [];
  for (const policyId of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(policyId), after.get(policyId)];
    if (one === other || ((one ?? silent) === silent && (other ?? silent) === silent)) continue;
    const name = (branch.policies.get(policyId) ?? original.policies.get(policyId))?.policyName;
    const word = (outcome: string | undefined, state: OrganizationView) =>
      outcome ?? (state.policies.has(policyId) ? 'was not asked' : 'not there');
    texts.push(
      `policy ${name === undefined ? `\`${policyId}\`` : quoted(name)} ${word(one, original)} → ${word(other, branch)}`,
    );
  }
  return texts;
}
