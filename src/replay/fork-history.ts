import type { Prepared, Voter } from '../decide/basis.js';
import { activityVersion, type Registry } from '../decide/registry.js';
import { denialStream, type DenialEvent } from '../domain/activity/denial.js';
import { CoordinatorError } from '../domain/errors.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { organizationStream, type OrganizationEvent } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../ledger/event-store.js';
import { apply, nothingLoaded } from '../ledger/loaded-organization.js';
import { isSameAppend } from '../read-models/events.js';
import { askedAgain, askedFor, askedOf } from './asked.js';
import { Branch, type Asked, type Came, type Terms } from './branch.js';
import {
  authorityOf,
  decidingTypes,
  eventOf,
  isDeciding,
  preparation,
  rulesOf,
  type Deciding,
} from './decide-again.js';
import { streamsIn } from './everything.js';
import { isEvent, NoSuchBranch, type Change, type GivenEvent } from './fork-change.js';
import { ForkReport, type Forked, type Requested } from './fork-report.js';
import { checkReached } from './points.js';
import { LaterEffects } from './later-effects.js';
import { ParentFolds } from './parent-folds.js';

export interface ForkOptions {
  readonly organizationId: string;
  readonly registry: Registry;
  /** What differs; without it the branch is the history, and nothing may diverge. */
  readonly change?: Change;
  /** Decides which tokens are still live in the report; milliseconds since the epoch. */
  readonly now: number;
  /** Called now and then with the number of events so far. */
  readonly onProgress?: (events: number) => void;
}

const progressEvery = 5_000;

/**
 * What would have become of an organization without one event, or with a different one: its history is folded up to
 * there, and a copy of it continues with the change. Every later signed request, and every denied one, is decided again
 * on the copy, by the rules and at the time of its record. Only reads.
 * @throws {NoSuchBranch} if the change is impossible there
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {CoordinatorError} NOT_FOUND if the organization has no events
 */
export async function forkHistory(store: EventReader, options: ForkOptions): Promise<Forked> {
  const { organizationId, onProgress } = options;
  const fork = new Fork(store, options);
  const head = (await store.head()) ?? -1n;
  let run: RecordedEvent[] = [];
  const streams = [organizationStream(organizationId), denialStream(organizationId)];
  for await (const event of streamsIn(store, streams, head)) {
    const before = run.at(-1);
    if (before?.stream === event.stream && !decidingTypes.has(event.type) && isSameAppend(before, event)) {
      run.push(event);
      continue;
    }
    await fork.take(run);
    run = [event];
    if (event.revision % progressEvery === 0) onProgress?.(event.revision);
  }
  await fork.take(run);
  return fork.end();
}

class Fork {
  private readonly loaded = nothingLoaded();
  private readonly original: Branch;
  private branch: Branch | undefined;
  private readonly parents: ParentFolds;
  private readonly later: LaterEffects;
  private readonly report: ForkReport;
  /** Activities whose request is a different one here: the output of `prepare` belongs to the recorded one. */
  private readonly edited = new Set<string>();
  /** Denied requests that are decided here: the same bytes may have been sent again. */
  private readonly answered = new Set<string>();
  /** Of the last decision that names it: events of a denial, or of a request that nobody sent, do not. */
  private terms: Pick<Terms, 'rules' | 'limits'> = { rules: rulesNumber };
  private at = 0;

  constructor(
    store: EventReader,
    private readonly options: ForkOptions,
  ) {
    const { registry, organizationId, change, now } = options;
    this.original = new Branch(registry, this.loaded.organization);
    this.parents = new ParentFolds(store);
    this.later = new LaterEffects(store, organizationId);
    this.report = new ForkReport(organizationId, now);
    if (change?.revision === 0) {
      throw new NoSuchBranch('revision 0 is the organization itself: change an event behind it');
    }
    if (!change) this.branch = this.original.copy();
  }

  /** Takes a whole append: a decision with all its effects, a denial, or events that no request caused. */
  async take(run: readonly RecordedEvent[]): Promise<void> {
    const [first] = run;
    if (!first) return;
    if (first.type === 'ActivityDenied') {
      if (this.branch) this.denied(this.branch, first);
      return;
    }
    const { change } = this.options;
    const last = run.at(-1)!.revision;
    if (change && change.revision >= first.revision && change.revision <= last) await this.changed(change, run);
    else if (this.branch) await this.follow(this.branch, run);
    else this.fold(run);
    this.at = timeOf(first);
  }

  async end(): Promise<Forked> {
    const { change, organizationId } = this.options;
    const { revision } = this.loaded;
    checkReached(organizationId, { by: 'newest' }, revision);
    if (change && !this.branch) {
      if (change.kind !== 'insert' || change.revision !== revision + 1) {
        checkReached(organizationId, { by: 'revision', revision: change.revision }, revision);
      }
      await this.insert(this.begin(), change, this.at);
    }
    return this.report.ended(this.original.organization, this.branch!.organization, revision);
  }

  /** Applies what was recorded to the history. */
  private fold(run: readonly RecordedEvent[]): void {
    for (const recorded of run) {
      apply(this.loaded, recorded);
      this.loaded.recent.clear();
      const event = eventOf(recorded);
      if (isDeciding(event)) this.terms = termsOf(event) ?? this.terms;
    }
  }

  private begin(): Branch {
    this.report.begins(this.loaded.revision + 1);
    return (this.branch = this.original.copy());
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
      this.edited.add(activityId);
      const asked = asking(() =>
        askedFor({ given: change.as, recorded: event, at }, this.options.registry, branch.organization),
      );
      came = await this.decide(branch, asked, {
        ...(termsOf(event) ?? this.terms),
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
      const asked = asking(() => askedFor({ given: as, at }, this.options.registry, branch.organization));
      came = await this.decide(branch, asked, { ...this.terms, now: at, revision: this.loaded.revision });
      this.taken(branch, eventsOf(came), at, revision);
    }
    this.report.changes(change, undefined, came, [this.original.organization, branch.organization]);
  }

  /** Whatever follows is decided again on the branch. */
  private async follow(branch: Branch, run: readonly RecordedEvent[]): Promise<void> {
    const [event, ...following] = run.map(eventOf) as [OrganizationEvent, ...OrganizationEvent[]];
    const at = timeOf(run[0]!);
    const terms = isDeciding(event) ? termsOf(event) : undefined;
    if (!isDeciding(event) || !terms) {
      this.taken(branch, [event, ...following], at, run[0]!.revision);
      this.fold(run);
      if (isDeciding(event)) this.report.asRecorded++;
      return;
    }
    // The key of a boot signs proofs of decisions, and no decision depends on them.
    const effects = following.filter(({ type }) => type !== 'ActivityProved');
    const recorded: Came = { kind: 'decided', events: [event, ...effects] };
    const requested = this.requested(event, run[0]!);
    const came = await this.again(branch, event, effects, { ...terms, now: at, revision: requested.revision - 1 });
    if (event.type === 'ActivitySubmitted' && !isSubmitted(came)) branch.isAbsent(event.data.activityId);
    const states = [this.original.organization, branch.organization] as const;
    const done = this.report.compare(requested, recorded, came, states);
    this.taken(branch, eventsOf(came), at, run[0]!.revision);
    this.fold(run);
    done(states);
  }

  private async again(
    branch: Branch,
    event: Deciding,
    effects: readonly OrganizationEvent[],
    terms: Terms,
  ): Promise<Came> {
    const authority = event.type === 'ActivitySubmitted' ? await this.authority(event) : undefined;
    const asked = askedOf(event, authority);
    if (event.type === 'ActivitySubmitted' && this.answered.has(event.data.fingerprint)) {
      return {
        kind: 'unknown',
        why: 'the same request was denied before, and is not now: this one repeats it',
        events: [],
      };
    }
    const seen = event.type === 'ActivityRejected' ? terms : { ...terms, revision: event.data.decision.revision };
    return this.decide(branch, asked, seen, this.given(event, effects, asked, seen));
  }

  private async authority({ data }: Extract<Deciding, { type: 'ActivitySubmitted' }>): Promise<Voter['authority']> {
    const { authority } = data.decision;
    if (!authority) return undefined;
    const parent = await this.parents.at(authority);
    return authorityOf(data.decision, () => parent);
  }

  /** The output of `prepare` for a recorded decision. */
  private given(event: Deciding, effects: readonly OrganizationEvent[], asked: Asked, terms: Terms): Prepared {
    const { activityId } = event.data;
    if (this.edited.has(activityId)) return undefined;
    const { organization } = this.original;
    const of = event.type === 'ActivitySubmitted' ? event.data : organization.openActivities.get(activityId);
    if (!of) return undefined;
    const given = preparation(this.options.registry, of.type, of.intent, effects, organization);
    if (!given || 'value' in given) return given;
    // It failed: by itself, or because `prepare` failed.
    return this.original.decide(asked, terms, undefined).kind === 'unknown' ? given : undefined;
  }

  /** Decides on the branch; what is allowed earlier here may use the later output of its `prepare`. */
  private async decide(branch: Branch, asked: Asked, terms: Terms, given?: Prepared): Promise<Came> {
    const came = branch.decide(asked, terms, given);
    const open = branch.waitingFor(asked);
    if (came.kind !== 'unknown' || !open || this.edited.has(open.activityId)) return came;
    const { definition } = activityVersion(this.options.registry, open.type);
    if (!definition.recall) return came;
    const effects = await this.later.of(open.activityId, this.loaded.revision);
    const later = effects && preparation(this.options.registry, open.type, open.intent, effects, branch.organization);
    return later ? branch.decide(asked, terms, later) : came;
  }

  /** A denied request may be allowed on the branch. */
  private denied(branch: Branch, recorded: RecordedEvent): void {
    const { data } = recorded as RecordedEvent & { readonly data: DenialEvent['data'] };
    const at = timeOf(recorded);
    const asked = askedSafely(() => askedAgain(data, this.options.registry, branch.organization, at));
    if (typeof asked === 'string') {
      this.report.notDecided(asked);
      return;
    }
    const terms = { ...this.terms, now: at, revision: this.loaded.revision };
    const came = branch.decide(asked, terms, undefined);
    const isDenied = (one: Came) => one.kind === 'refused' && one.error.code === 'PERMISSION_DENIED';
    if (!isDenied(came) && !isDenied(this.original.decide(asked, terms, undefined))) {
      this.report.notDecided('what denied it is no policy, or nothing that is recorded');
      return;
    }
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
    const done = this.report.compare(requested, undefined, came, states);
    this.taken(branch, eventsOf(came), at, this.loaded.revision);
    if (isSubmitted(came)) this.answered.add(data.fingerprint);
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
      const why = error instanceof Error ? error.message : String(error);
      throw new NoSuchBranch(`the branch cannot be folded at revision ${revision}: ${why}`, { cause: error });
    }
  }
}

function editedEvent(event: OrganizationEvent, change: Exclude<Change, { kind: 'skip' }>): OrganizationEvent {
  if (!isEvent(change.as)) {
    throw new NoSuchBranch(
      `revision ${change.revision} is ${event.type}, a fact: the file has to say its \`data\`; a request is at the revision ` +
        'that it was decided at',
    );
  }
  const { type = event.type, data }: GivenEvent = change.as;
  const merged = type === event.type ? { ...event.data, ...data } : data;
  return { type, data: merged } as unknown as OrganizationEvent;
}

/** @throws {NoSuchBranch} if nobody could send such a request */
function asking(make: () => Asked): Asked {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    throw new NoSuchBranch(`the request cannot be sent: ${error.message}`, { cause: error });
  }
}

function askedSafely(make: () => Asked | string): Asked | string {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return 'this release does not take its body';
  }
}

/** The number of the rules of a decision; undefined for one from before rules had a number. */
function termsOf(event: Deciding): Pick<Terms, 'rules' | 'limits'> | undefined {
  const rules = rulesOf(event);
  if (rules === undefined) return undefined;
  const limits = event.type === 'ActivityRejected' ? undefined : event.data.decision.limits;
  return { rules, ...(limits ? { limits } : {}) };
}

function eventsOf(came: Came): readonly OrganizationEvent[] {
  return came.kind === 'refused' ? [] : came.events;
}

function isSubmitted(came: Came | undefined): boolean {
  return came !== undefined && eventsOf(came).some(({ type }) => type === 'ActivitySubmitted');
}

function timeOf({ metadata }: RecordedEvent): number {
  return (metadata as EventMetadata).at;
}
