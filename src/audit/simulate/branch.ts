import { isMap } from 'node:util/types';
import {
  ReadFirst,
  type DecisionContext,
  type Prepared,
  type Submission,
  type DecisionResult,
  type Voter,
} from '../../decide/decision-context.js';
import { noSuchActivity, notWaiting, organizationDeleted, signUpLapsed } from '../../decide/refusals.js';
import { activityVersion, newestIntent, type Registry } from '../../decide/registry.js';
import { decideSubmit } from '../../decide/submit.js';
import { decideVote } from '../../decide/vote.js';
import { isActivityEvent, type Vote } from '../../domain/activity/events.js';
import { CoordinatorError, errorMessage } from '../../domain/errors.js';
import { hasLapsed } from '../../domain/organization/claims.js';
import { openByFingerprint, type OpenActivity } from '../../domain/organization/open-activities.js';
import {
  evolve,
  type Organization,
  type OrganizationEvent,
  type OrganizationView,
} from '../../domain/organization/organization.js';
import { decisionSteps, decodingSteps, Steps, weights } from '../../domain/steps.js';
import { plain } from '../verify/deciding-events.js';
import { keptState } from '../timeline/fold-to.js';

/** The outcome of a request. */
export type Came =
  | { readonly kind: 'decided'; readonly events: readonly OrganizationEvent[] }
  | { readonly kind: 'refused'; readonly error: CoordinatorError }
  /** Its effects cannot be known. `events` are those known anyway. */
  | {
      readonly kind: 'unknown';
      readonly why: string;
      readonly events: readonly OrganizationEvent[];
      /** It was decided all the same, and is allowed. */
      readonly isAllowed?: true;
    };

/** What holds throughout a branch, whatever its requests do. */
export interface HeldFacts {
  /** Events that make it hold in a state; none where it does. */
  missingIn(organization: OrganizationView): readonly OrganizationEvent[];
  /** What finding them takes, in steps. */
  stepsIn(organization: OrganizationView): number;
}

/** A request to be decided on a branch: a submission, or a vote on a waiting activity. */
export interface Asked {
  readonly what:
    | { readonly kind: 'submission'; readonly submission: Omit<Submission, 'intent'> }
    /** By the id of the activity, if history knows it, or by the fingerprint that the vote names. */
    | { readonly kind: 'vote'; readonly activityId?: string; readonly fingerprint: string };
  readonly vote: Vote;
  /** The same request may be decided on several states, in which different users may have stamped it. */
  voterIn(context: DecisionContext): Voter;
}

/** What a request is decided by, besides the state. */
export type Terms = Pick<DecisionContext, 'now' | 'limits' | 'revision'>;

/** What a decision takes besides what policies do: applying it, and comparing it with the record. */
const stepsBeside = 2_000;

/** No event of the branch records what a verb has taken from outside. */
const notInHistory = new CoordinatorError('UNAVAILABLE', 'what it would have taken from outside is not in the history');

/** The state of an organization on which requests are decided; applied events change it, and are stored nowhere. */
export class Branch {
  /** Activities that history has and that were never submitted here. */
  private readonly absent = new Set<string>();

  constructor(
    private readonly registry: Registry,
    readonly organization: Organization,
    private readonly held?: HeldFacts,
    /** Counts what its decisions take; the budget of each is its own. */
    private readonly meter?: Steps,
  ) {}

  /** A copy, to continue in another way. */
  copy(held = this.held): Branch {
    this.meter?.note(weights.listElement * sizeOf(this.organization));
    return new Branch(this.registry, keptState(this.organization), held, this.meter);
  }

  /** @throws {Error} when an event cannot be folded */
  take(events: readonly OrganizationEvent[], at: number): void {
    for (const event of events) evolve(this.organization, event, at);
    // What becomes of activities touches nothing else.
    if (!this.held || (events.length > 0 && events.every(isActivityEvent))) return;
    this.meter?.note(this.held.stepsIn(this.organization));
    for (const event of this.held.missingIn(this.organization)) evolve(this.organization, event, at);
  }

  isAbsent(activityId: string): void {
    this.absent.add(activityId);
  }

  /** The waiting activity that this vote is for. */
  waitingFor({ what }: Asked): OpenActivity | undefined {
    if (what.kind === 'submission') return undefined;
    const byId = this.organization.openActivities.get(what.activityId ?? '');
    return byId ?? openByFingerprint(this.organization, what.fingerprint);
  }

  /**
   * Decides a request on the current state, without applying anything.
   * @param given output of its `prepare`, if history has it
   */
  decide(requested: Asked, terms: Terms, input: Prepared): Came {
    const { organization, registry, meter } = this;
    const context: DecisionContext = { registry, organization, ...terms };
    if (!meter) return this.decideOn(context, requested, input);
    const steps = new Steps(decisionSteps);
    const reading = new Steps();
    try {
      return this.decideOn({ ...context, steps, reading }, requested, input);
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      meter.note(decodingSteps);
      return this.decideOn({ ...context, steps: new Steps(decisionSteps) }, requested, input);
    } finally {
      meter.note(stepsBeside + steps.spent + reading.spent);
    }
  }

  /** @throws {ReadFirst} if the basis limits what is read in place */
  private decideOn(context: DecisionContext, requested: Asked, input: Prepared): Came {
    const { organization, registry, now } = context;
    const { vote, what } = requested;
    try {
      if (organization.isDeleted) throw organizationDeleted(organization.organizationId);
      if (hasLapsed(organization, now)) throw signUpLapsed(organization.organizationId);
      if (what.kind === 'vote') {
        const open = this.waitingFor(requested);
        if (!open) throw this.notOpen(what);
        const voter = whoever(() => requested.voterIn(context));
        return cameOf((prepared) => decideVote(context, open, vote, voter, prepared), input);
      }
      const { submission } = what;
      const version = activityVersion(registry, submission.type);
      const whole = { ...submission, intent: newestIntent(version, submission.parameters) };
      const voter = whoever(() => requested.voterIn(context));
      return cameOf((prepared) => decideSubmit(context, whole, vote, voter, prepared), input);
    } catch (error) {
      if (error instanceof CoordinatorError) return { kind: 'refused', error };
      if (error instanceof ReadFirst) throw error;
      return { kind: 'unknown', why: errorMessage(error), events: [] };
    }
  }

  private notOpen({ activityId, fingerprint }: Extract<Asked['what'], { kind: 'vote' }>): CoordinatorError {
    const isOver = activityId !== undefined && !this.absent.has(activityId);
    return isOver ? notWaiting(activityId) : noSuchActivity(fingerprint);
  }
}

function cameOf(decide: (prepared: Prepared) => DecisionResult, input: Prepared): Came {
  const verdict = decide(input);
  if (verdict.kind === 'decided') return { kind: 'decided', events: verdict.events.map(plain) };
  // It is allowed. Any other refusal would be the same whatever was prepared.
  const why = `it is allowed, and ${notInHistory.message}`;
  try {
    const without = decide({ refusal: notInHistory });
    if (without.kind === 'prepare') return { kind: 'unknown', why, events: [], isAllowed: true };
    const end = without.events.at(-1);
    const isUnknown = end?.type === 'ActivityFailed' && end.data.failure.message === notInHistory.message;
    const events = without.events.map(plain);
    return isUnknown ? { kind: 'unknown', why, events, isAllowed: true } : { kind: 'decided', events };
  } catch (error) {
    if (error === notInHistory) return { kind: 'unknown', why, events: [], isAllowed: true };
    throw error;
  }
}

/** @throws {CoordinatorError} UNAUTHENTICATED if the stamp belongs to nobody there */
function whoever(find: () => Voter): Voter {
  try {
    return find();
  } catch (error) {
    if (error instanceof CoordinatorError) throw error;
    throw new CoordinatorError('UNAUTHENTICATED', errorMessage(error));
  }
}

/** What is known to follow. */
export function eventsOf(came: Came): readonly OrganizationEvent[] {
  return came.kind === 'refused' ? [] : came.events;
}

/** Whether the outcome is an activity. */
export function isSubmitted(came: Came | undefined): boolean {
  return came !== undefined && eventsOf(came).some(({ type }) => type === 'ActivitySubmitted');
}

/** Whether the policies, or the owner of what was asked for, said no. */
export function isDenied(came: Came): boolean {
  return came.kind === 'refused' && came.error.code === 'PERMISSION_DENIED';
}

/** How many entries the maps of a state have. */
function sizeOf(organization: OrganizationView): number {
  return Object.values(organization).reduce((sum: number, slice) => sum + (isMap(slice) ? slice.size : 0), 0);
}
