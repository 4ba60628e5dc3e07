import { errorMessage } from '../../domain/errors.js';
import type { DenialEvent } from '../../domain/activity/denial.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { fold, nothingLoaded } from '../../ledger/loaded-organization.js';
import { askedFor, asking } from './recorded-requests.js';
import { Branch, eventsOf, isDenied, isSubmitted, type Came, type HeldFacts, type Terms } from './branch.js';
import { BranchDecisions } from './branch-decisions.js';
import type { BranchOptions, BranchReport, BranchSource, Ends } from './branch-report.js';
import {
  checkRules,
  decidingTypes,
  eventOf,
  isDeciding,
  limitsOf,
  timeOf,
  type Deciding,
} from '../verify/deciding-events.js';
import { editedEvent, isEvent, NoSuchBranch, type Change } from './fork-change.js';
import type { Requested } from './outcome-texts.js';
import { checkReached } from '../timeline/point-reached.js';

/** A history while it is read, and beside it the branch on which it is decided again. */
export class Fork {
  private readonly loaded = nothingLoaded();
  private readonly original: Branch;
  private branch: Branch | undefined;
  private readonly decisions: BranchDecisions;
  /** Of the last decision: events of a denial, or of a request that nobody sent, do not say it. */
  private terms: Pick<Terms, 'limits'> = {};
  private at = 0;

  constructor(
    store: BranchSource,
    private readonly options: BranchOptions,
    private readonly report: BranchReport,
  ) {
    const { registry, organizationId, change, held, meter } = options;
    this.original = new Branch(registry, this.loaded.organization, undefined, meter);
    const { original, loaded } = this;
    this.decisions = new BranchDecisions({ store, organizationId, registry, original, loaded, facts: held?.facts });
    if (change?.revision === 0) {
      throw new NoSuchBranch('revision 0 is the organization itself: change an event behind it');
    }
    if (!change && !held) this.branch = this.original.copy();
  }

  /** Takes a whole append: a decision with all its effects, a denial, or events that no request caused. */
  async take(run: readonly RecordedEvent[]): Promise<void> {
    const [first] = run;
    if (!first) return;
    if (first.type === 'ActivityDenied') {
      if (this.branch) this.denied(this.branch, first);
      return;
    }
    const { change, held } = this.options;
    const last = run.at(-1)!.revision;
    if (held && !this.branch && first.revision > 0 && first.revision >= held.from) this.beginHolding(held.facts);
    if (change && change.revision >= first.revision && change.revision <= last) await this.changed(change, run);
    else if (this.branch) await this.follow(this.branch, run);
    else this.fold(run);
    this.at = timeOf(first);
  }

  /** @param isCut the history goes on, and is not followed further */
  async end(isCut = false): Promise<Ends> {
    const { change, held, organizationId } = this.options;
    const { revision } = this.loaded;
    checkReached(organizationId, { by: 'newest' }, revision);
    if (held && !this.branch) {
      if (!isCut && held.from > revision + 1)
        checkReached(organizationId, { by: 'revision', revision: held.from }, revision);
      this.beginHolding(held.facts);
    }
    if (change && !this.branch) {
      if (change.kind !== 'insert' || change.revision !== revision + 1) {
        checkReached(organizationId, { by: 'revision', revision: change.revision }, revision);
      }
      await this.insert(this.begin(), change, this.at);
    }
    return { original: this.original.organization, branch: this.branch!.organization, last: revision, isCut };
  }

  /** Applies what was recorded to the history. */
  private fold(run: readonly RecordedEvent[]): void {
    for (const recorded of run) {
      fold(this.loaded, recorded);
      const event = eventOf(recorded);
      if (isDeciding(event)) this.terms = limitsOf(event);
    }
  }

  private begin(): Branch {
    this.report.begins(this.loaded.revision + 1);
    return (this.branch = this.original.copy());
  }

  private beginHolding(facts: HeldFacts): void {
    this.report.begins(this.loaded.revision + 1);
    this.branch = this.original.copy(facts);
    this.taken(this.branch, [], this.at, this.loaded.revision);
  }

  private async changed(change: Change, run: readonly RecordedEvent[]): Promise<void> {
    const branch = this.begin();
    const { kind, revision } = change;
    const first = run[0]!;
    const last = run.at(-1)!.revision;
    const at = timeOf(first);
    if (kind === 'insert') {
      if (revision !== first.revision) {
        const before = first.revision > 0 ? `${first.revision} or ` : '';
        throw new NoSuchBranch(
          `revisions ${first.revision} to ${last} were recorded at once, by one request: insert at ${before}${last + 1}`,
        );
      }
      await this.insert(branch, change, Math.min(this.at, at));
      await this.follow(branch, run);
      return;
    }
    const recorded = run[revision - first.revision]!;
    const event = eventOf(recorded);
    if (isDeciding(event)) {
      await this.otherRequest(branch, change, event, run);
      return;
    }
    const events = run.flatMap((one) => {
      if (one !== recorded) return [eventOf(one)];
      return change.kind === 'skip' ? [] : [editedEvent(event, change)];
    });
    this.taken(branch, events, at, revision);
    this.fold(run);
    this.report.changes(change, event, undefined, [this.original.organization, branch.organization]);
  }

  /** A request that was never sent, or a different one in its place. */
  private async otherRequest(branch: Branch, change: Change, event: Deciding, run: readonly RecordedEvent[]) {
    const at = timeOf(run[0]!);
    const { activityId } = event.data;
    let came: Came | undefined;
    if (change.kind !== 'skip') {
      if (isEvent(change.as)) {
        throw new NoSuchBranch(
          `revision ${change.revision} is a signed request: the file has to say its \`userId\`, \`type\` or \`parameters\``,
        );
      }
      this.decisions.edited.add(activityId);
      const requested = asking(() =>
        askedFor({ given: change.as, recorded: event, at }, this.options.registry, branch.organization),
      );
      came = await this.decisions.decide(branch, requested, {
        ...limitsOf(event),
        now: at,
        revision: this.loaded.revision,
      });
      this.taken(branch, eventsOf(came), at, change.revision);
    }
    if (event.type === 'ActivitySubmitted' && !isSubmitted(came)) branch.isAbsent(activityId);
    this.fold(run);
    this.report.changes(change, event, came, [this.original.organization, branch.organization]);
  }

  private async insert(branch: Branch, change: Change, at: number): Promise<void> {
    if (change.kind === 'skip') return;
    const { as, revision } = change;
    let came: Came | undefined;
    if (isEvent(as)) {
      if (as.type === undefined) throw new NoSuchBranch('an event that is inserted says its `type`');
      if (decidingTypes.has(as.type))
        throw new NoSuchBranch('a request is inserted by its `userId`, `type` and `parameters`');
      this.taken(branch, [{ type: as.type, data: as.data } as unknown as OrganizationEvent], at, revision);
    } else {
      const requested = asking(() => askedFor({ given: as, at }, this.options.registry, branch.organization));
      came = await this.decisions.decide(branch, requested, { ...this.terms, now: at, revision: this.loaded.revision });
      this.taken(branch, eventsOf(came), at, revision);
    }
    this.report.changes(change, undefined, came, [this.original.organization, branch.organization]);
  }

  /** Whatever follows is decided again on the branch. */
  private async follow(branch: Branch, run: readonly RecordedEvent[]): Promise<void> {
    const [event, ...following] = run.map(eventOf) as [OrganizationEvent, ...OrganizationEvent[]];
    const at = timeOf(run[0]!);
    if (!isDeciding(event) || this.isHidden(event)) {
      this.taken(branch, [event, ...following], at, run[0]!.revision);
      this.fold(run);
      if (isDeciding(event)) this.report.asRecorded();
      return;
    }
    checkRules(event, run[0]!.revision);
    // The key of a boot signs proofs of decisions, and no decision depends on them.
    const effects = following.filter(({ type }) => type !== 'AppProofsIssued');
    const recorded: Came = { kind: 'decided', events: [event, ...effects] };
    const requested = this.requested(event, run[0]!);
    const { came, alone } = await this.decisions.again(branch, event, effects, {
      ...limitsOf(event),
      now: at,
      revision: requested.revision - 1,
    });
    if (event.type === 'ActivitySubmitted' && !isSubmitted(came)) branch.isAbsent(event.data.activityId);
    const states = [this.original.organization, branch.organization] as const;
    const done = this.report.compare(requested, recorded, came, states, alone);
    this.taken(branch, eventsOf(came), at, run[0]!.revision);
    this.fold(run);
    done(states);
  }

  private isHidden(event: Deciding): boolean {
    const isParents = event.type === 'ActivitySubmitted' && event.data.decision.authority !== undefined;
    return isParents && this.options.hidesParent === true;
  }

  /** A denied request may be allowed on the branch. */
  private denied(branch: Branch, recorded: RecordedEvent): void {
    const { data } = recorded as RecordedEvent & { readonly data: DenialEvent['data'] };
    const terms = { ...this.terms, now: timeOf(recorded), revision: this.loaded.revision };
    const again = this.decisions.denied(branch, data, terms);
    if (typeof again === 'string') {
      this.report.notDecided(again);
      return;
    }
    const { came, alone } = again;
    const requested: Requested = {
      ...this.requested(undefined, recorded),
      denial: data,
      activityType: data.type,
      userId: data.userId,
    };
    if (isDenied(came)) {
      this.report.sameDenial();
      return;
    }
    const states = [this.original.organization, branch.organization] as const;
    const done = this.report.compare(requested, undefined, came, states, alone);
    this.taken(branch, eventsOf(came), terms.now, this.loaded.revision);
    if (isSubmitted(came)) this.decisions.answered.add(data.fingerprint);
    done(states);
  }

  private requested(event: Deciding | undefined, { revision, metadata }: RecordedEvent): Requested {
    const { at, $correlationId: activityId } = metadata as EventMetadata;
    const { openActivities } = this.original.organization;
    const own = event?.type === 'ActivitySubmitted' ? event.data.type : openActivities.get(activityId)?.type;
    return { revision, at, activityId, activityType: own ?? 'unknown', userId: event?.data.vote.userId ?? '' };
  }

  private taken(branch: Branch, events: readonly OrganizationEvent[], at: number, revision: number): void {
    try {
      branch.take(events, at);
    } catch (error) {
      const why = errorMessage(error);
      throw new NoSuchBranch(`the branch cannot be folded at revision ${revision}: ${why}`, { cause: error });
    }
  }
}
