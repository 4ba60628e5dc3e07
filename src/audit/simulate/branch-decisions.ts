import type { Prepared, Voter } from '../../decide/decision-context.js';
import { activityVersion, type Registry } from '../../decide/registry.js';
import type { DenialEvent } from '../../domain/activity/denial.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import type { EventReader } from '../../ledger/event-store.js';
import type { LoadedOrganization } from '../../ledger/loaded-organization.js';
import { askedAgain, askedOf, askedSafely } from './recorded-requests.js';
import { isDenied, type Asked, type Branch, type Came, type HeldFacts, type Terms } from './branch.js';
import type { Deciding } from '../verify/deciding-events.js';
import { LaterEffects } from './later-effects.js';
import { ParentFolds } from '../timeline/parent-folds.js';
import { authorityOf, preparation } from '../verify/recorded-context.js';

/** What requests of a history are decided from. */
export interface DecisionSource {
  readonly store: Pick<EventReader, 'read'>;
  readonly organizationId: string;
  readonly registry: Registry;
  /** The history, which the branch leaves. */
  readonly original: Branch;
  /** The same, with where it stands. */
  readonly loaded: LoadedOrganization;
  readonly facts: HeldFacts | undefined;
}

/** A request of the history as it comes out on the branch, and with nothing but what is held there (`BranchReport.compare`). */
export interface Again {
  readonly came: Came;
  readonly alone: () => Came;
}

/** Decides the requests of a history on its branch, with the parents and the outputs of `prepare` that they had. */
export class BranchDecisions {
  /** Activities whose request is a different one here: the output of `prepare` belongs to the recorded one. */
  readonly edited = new Set<string>();
  /** Fingerprints of denied requests that are decided here: the same bytes may have been sent again. */
  readonly answered = new Set<string>();
  private readonly parents: ParentFolds;
  private readonly later: LaterEffects;

  constructor(private readonly from: DecisionSource) {
    this.parents = new ParentFolds(from.store);
    this.later = new LaterEffects(from.store, from.organizationId);
  }

  /** A recorded request, or a recorded vote. */
  async again(branch: Branch, event: Deciding, effects: readonly OrganizationEvent[], terms: Terms): Promise<Again> {
    const authority = event.type === 'ActivitySubmitted' ? await this.authority(event) : undefined;
    const requested = askedOf(event, authority);
    const seen = event.type === 'ActivityRejected' ? terms : { ...terms, revision: event.data.decision.revision };
    const input = this.given(event, effects, requested, seen);
    const alone = () => this.alone(requested, seen, input);
    if (event.type === 'ActivitySubmitted' && this.answered.has(event.data.fingerprint)) {
      const why = 'the same request was denied before, and is not now: this one repeats it';
      return { came: { kind: 'unknown', why, events: [] }, alone };
    }
    return { came: await this.decide(branch, requested, seen, input), alone };
  }

  /** A denied request; a string says why it is not decided again. */
  denied(branch: Branch, data: DenialEvent['data'], terms: Terms): Again | string {
    const requested = askedSafely(() => askedAgain(data, this.from.registry, branch.organization, terms.now));
    if (typeof requested === 'string') return requested;
    const came = branch.decide(requested, terms, undefined);
    if (!isDenied(came) && !isDenied(this.from.original.decide(requested, terms, undefined))) {
      return 'what denied it is no policy, or nothing that is recorded';
    }
    return { came, alone: () => this.alone(requested, terms, undefined) };
  }

  /** On the recorded state, with nothing else than what is held there. */
  private alone(requested: Asked, terms: Terms, input: Prepared): Came {
    const branch = this.from.original.copy(this.from.facts);
    branch.take([], terms.now);
    return branch.decide(requested, terms, input);
  }

  private async authority({ data }: Extract<Deciding, { type: 'ActivitySubmitted' }>): Promise<Voter['authority']> {
    const { authority } = data.decision;
    if (!authority) return undefined;
    const parent = await this.parents.at(authority);
    return authorityOf(data.decision, () => parent);
  }

  /** The output of `prepare` for a recorded decision. */
  private given(event: Deciding, effects: readonly OrganizationEvent[], requested: Asked, terms: Terms): Prepared {
    const { activityId } = event.data;
    if (this.edited.has(activityId)) return undefined;
    const { organization } = this.from.original;
    const of = event.type === 'ActivitySubmitted' ? event.data : organization.openActivities.get(activityId);
    if (!of) return undefined;
    const input = preparation(this.from.registry, of.type, of.intent, effects, organization);
    if (!input || 'value' in input) return input;
    // It failed: by itself, or because `prepare` failed.
    return this.from.original.decide(requested, terms, undefined).kind === 'unknown' ? input : undefined;
  }

  /** Decides on the branch; what is allowed earlier here may use the later output of its `prepare`. */
  async decide(branch: Branch, requested: Asked, terms: Terms, input?: Prepared): Promise<Came> {
    const came = branch.decide(requested, terms, input);
    const open = branch.waitingFor(requested);
    if (came.kind !== 'unknown' || !open || this.edited.has(open.activityId)) return came;
    const { definition } = activityVersion(this.from.registry, open.type);
    if (!definition.recall) return came;
    const effects = await this.later.of(open.activityId, this.from.loaded.revision);
    const later = effects && preparation(this.from.registry, open.type, open.intent, effects, branch.organization);
    return later ? branch.decide(requested, terms, later) : came;
  }
}
