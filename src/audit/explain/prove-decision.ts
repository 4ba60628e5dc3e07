import { ReadFirst } from '../../decide/decision-context.js';
import { askedBySubmit, askedByVotes } from '../../decide/explain.js';
import { activityVersion, newestIntent, type Registry } from '../../decide/registry.js';
import { credentialsOf } from '../../domain/organization/credentials-of-users.js';
import { isRejection, type Vote } from '../../domain/activity/events.js';
import { rulesNumber } from '../../domain/activity/rules.js';
import { CoordinatorError } from '../../domain/errors.js';
import { isAuthProxyUser } from '../../domain/organization/auth-proxy.js';
import { openByFingerprint } from '../../domain/organization/open-activities.js';
import { organizationStream } from '../../domain/organization/organization.js';
import { decisionSteps, decodingSteps, Steps } from '../../domain/steps.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { fold, nothingLoaded } from '../../ledger/loaded-organization.js';
import type { ProofAnswer, ProofQuestion } from '../../read-models/explanations.js';
import { askedAgain, askedSafely } from '../simulate/recorded-requests.js';
import { decidingTypes, eventOf, rulesOf, type Deciding } from '../verify/deciding-events.js';
import { questionAgain, type AskedWith } from './decision-reasons.js';
import { foldWithin, payFolding } from '../timeline/fold-cost.js';
import type { Facts } from './facts.js';
import { flipsOf } from './flips.js';
import { Origins, type EventPlace } from './origins.js';
import { prove } from './proof.js';
import { Room } from './proof-size-limit.js';
import { explainProof } from './proof-explanation.js';

/** Budget of one explanation, in the thread that makes it: some seconds. */
export const explanationSteps = 30_000_000;

/** A state being folded, and which event set what in it. */
class Folded {
  readonly loaded = nothingLoaded();
  readonly origins = new Origins();

  take(recorded: RecordedEvent): void {
    fold(this.loaded, recorded);
    this.origins.note(eventOf(recorded), placeOf(recorded));
  }
}

function placeOf({ type, revision, id }: RecordedEvent): EventPlace {
  return { type, revision, eventId: id };
}

/**
 * Explains one decision from the history of its organization, and of the parent whose policies decided.
 * @throws {BrokenChain} if an event is not the one that was recorded
 */
export async function proveDecision(
  question: ProofQuestion,
  registry: Registry,
  store: Pick<EventReader, 'read'>,
  steps = new Steps(explanationSteps),
): Promise<ProofAnswer> {
  return new Explanation(question, registry, steps).from(store);
}

class Explanation {
  private readonly own = new Folded();
  private readonly parent = new Folded();
  /** The votes on the activity that were recorded so far. */
  private readonly votes: (Pick<Vote, 'userId'> & { readonly place: EventPlace | undefined })[] = [];
  private decisions = 0;

  constructor(
    private readonly question: ProofQuestion,
    private readonly registry: Registry,
    private readonly steps: Steps,
  ) {}

  async from(store: Pick<EventReader, 'read'>): Promise<ProofAnswer> {
    const { organizationId, authority, about } = this.question;
    const { steps, own, parent } = this;
    if (authority && !(await foldWithin(steps, store, authority, (event) => parent.take(event)))) {
      return { notExplained: tooLong };
    }
    for await (const event of store.read(organizationStream(organizationId))) {
      // What is explained was decided on the state that was folded so far.
      if (about.kind === 'denial' && own.loaded.revision >= about.revision) break;
      const answer = this.decide(event);
      if (answer) return answer;
      if (!payFolding(steps, event)) return { notExplained: tooLong };
      own.take(event);
    }
    return this.now();
  }

  /** If the event is the decision to be explained, explains it on the state before it. */
  private decide(recorded: RecordedEvent): ProofAnswer | undefined {
    if (!decidingTypes.has(recorded.type)) return undefined;
    const event = eventOf(recorded) as Deciding;
    const { about } = this.question;
    if (about.kind !== 'activity') return undefined;
    const { activityId, decisions, isWaiting } = about;
    if (event.data.activityId !== activityId || event.type === 'ActivityRejected') return undefined;
    this.votes.push({ userId: event.data.vote.userId, place: placeOf(recorded) });
    this.decisions += 1;
    if (isWaiting || this.decisions < decisions) return undefined;
    const { authority, outcome } = event.data.decision;
    const refused = this.notExplainable(rulesOf(event));
    if (refused) return refused;
    const { organization, revision } = this.own.loaded;
    const { at } = recorded.metadata as EventMetadata;
    const { registry } = this;
    const home = authority ? { authority: this.parent.loaded } : {};
    const decided = { registry, event, organization, revision, at, ...home };
    const ask = (limited: AskedWith) => questionAgain(decided, limited);
    return asRecorded(
      (again) => again === outcome,
      () => this.explained(ask, revision, at),
    );
  }

  private notExplainable(rules: number | undefined): ProofAnswer | undefined {
    if (rules !== rulesNumber) {
      return { notExplained: `it was decided by rules ${rules}, which this release does not have` };
    }
    const { authority } = this.question;
    if (!authority || this.parent.loaded.revision === authority.revision) return undefined;
    return { notExplained: 'the stream of the parent, whose policies decided, is not there' };
  }

  /** How it would be decided as things stand: an activity that waits without another vote, a request if it were submitted. */
  private now(): ProofAnswer {
    const { about, now } = this.question;
    const { organization, revision } = this.own.loaded;
    if (about.kind === 'request') return this.hypothetical(about);
    if (about.kind === 'denial') return this.denied(about);
    const open = organization.openActivities.get(about.activityId);
    if (!open) return { notExplained: 'it has changed in the meantime: ask again' };
    const context = { registry: this.registry, organization, revision, now };
    return this.explained((limited) => askedByVotes({ ...context, ...limited }, open), revision, now);
  }

  private hypothetical({
    type,
    parameters,
    userId,
    credentialId,
  }: Extract<ProofQuestion['about'], { kind: 'request' }>): ProofAnswer {
    const { registry } = this;
    const { now, authority } = this.question;
    const { organization, revision } = this.own.loaded;
    const home = authority ? this.parent.loaded : this.own.loaded;
    const user = home.organization.users.get(userId);
    const credential = user && credentialsOf(user).find(({ id }) => id === credentialId);
    if (!credential) return { notExplained: 'the credential is not there any more: ask again' };
    const voter = { userId, credential, ...(authority ? { authority: home } : {}) };
    const submission = { type, intent: newestIntent(activityVersion(registry, type), parameters) };
    const context = { registry, organization, revision, now };
    try {
      const ask = (limited: AskedWith) => askedBySubmit({ ...context, ...limited }, submission, credential, voter);
      return this.explained(ask, revision, now);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      return { notExplained: error.message };
    }
  }

  /** A denied request or vote, decided again on the state at its revision. */
  private denied({ denial, rules, revision, at }: Extract<ProofQuestion['about'], { kind: 'denial' }>): ProofAnswer {
    const refused = this.notExplainable(rules);
    if (refused) return refused;
    const { organization } = this.own.loaded;
    if (this.own.loaded.revision !== revision) {
      return { notExplained: `the organization’s stream ends before revision ${revision}, at which it was denied` };
    }
    const { registry } = this;
    const authority = this.question.authority ? this.parent.loaded : undefined;
    const home = authority?.organization ?? organization;
    const requested = askedSafely(() => askedAgain(denial, registry, organization, at, home));
    if (typeof requested === 'string') return { notExplained: requested };
    const { what, vote, voterIn } = requested;
    const open = what.kind === 'vote' ? openByFingerprint(organization, what.fingerprint) : undefined;
    const voters = [...(open?.votes ?? []).filter((one) => !isRejection(one)), vote];
    this.votes.push(...voters.map(({ userId }) => ({ userId, place: undefined })));
    const ask = (limited: AskedWith) => {
      const context = { registry, organization, revision, now: at, ...limited };
      const voter = { ...voterIn({ ...context, organization: home }), ...(authority ? { authority } : {}) };
      if (open) return askedByVotes(context, open, voter);
      if (what.kind === 'vote') throw new Error('the activity does not wait for votes');
      const { type, parameters } = what.submission;
      return askedBySubmit(
        context,
        { type, intent: newestIntent(activityVersion(registry, type), parameters) },
        vote,
        voter,
      );
    };
    // The root quorum may approve what a policy denies: then a vote is denied, and the activity still waits.
    const denies = (outcome: string) => outcome !== 'allow' && (open !== undefined || outcome !== 'consensus-needed');
    return asRecorded(denies, () => this.explained(ask, revision, at));
  }

  private explained(ask: (limited: AskedWith) => Facts, revision: number, at: number): ProofAnswer {
    const budget = decisionSteps;
    if (this.steps.left < 2 * budget || !this.read(() => ask({ steps: new Steps(budget), reading: new Steps() }))) {
      return { notExplained: tooLong };
    }
    const { authority } = this.question;
    const { loaded, origins } = this.parent;
    const own = { organization: this.own.loaded.organization, origins: this.own.origins };
    const home = authority
      ? { organization: loaded.organization, origins, organizationId: authority.organizationId }
      : own;
    const isNobody = (userId: string) => isAuthProxyUser(home.organization, userId);
    const facts = () => ({ ...ask({ steps: new Steps(budget) }), isNobody });
    const proof = prove(facts, new Room(this.steps));
    this.steps.note(2 * budget);
    const flips = flipsOf(facts, proof, this.steps);
    const [request] = this.votes;
    const votes = this.votes;
    const of = { own, home, request: request?.place, votes, revision, at };
    return { proof: explainProof(proof, flips, of) };
  }

  /** What takes long to read is read in this thread too, but counted as what it may take. */
  private read(ask: () => Facts): boolean {
    try {
      ask();
      return true;
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      if (this.steps.left < 2 * decodingSteps) return false;
      this.steps.note(decodingSteps);
      return true;
    }
  }
}

/** Facts may have been left out of an export, and a proof of anything else than what happened is none. */
function asRecorded(isRecorded: (outcome: string) => boolean, explain: () => ProofAnswer): ProofAnswer {
  try {
    const answer = explain();
    if (answer.proof === undefined || isRecorded(answer.proof.outcome)) return answer;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return { notExplained: 'what history has kept of it does not lead to this decision: `countersign verify` says more' };
}

const tooLong = 'too much has happened before, or is to be read: run `countersign replay` on the store';
