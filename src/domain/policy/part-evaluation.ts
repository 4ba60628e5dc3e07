import { conjunction, isCertain, type Reading } from './doubt.js';
import { decidingPart, type DecidingPart } from './deciding-part.js';
import type { Scope } from './evaluate.js';
import { ofWholeRequest } from './namespaces.js';
import type { ConsensusReading, Part, Question } from './request-evaluation.js';
import { rootsOf } from './roots.js';
import type { CheckedExpression } from './syntax.js';
import {
  Unreadable,
  type AuthorizationRequest,
  type Clause,
  type Doubt,
  type Policy,
  type PolicyOutcome,
  type PolicyValue,
} from './types.js';

/** Means the same as no consensus: anyone's approval will do. */
const anyApproval = 'true';

/** The outcome of one policy. */
export interface Evaluation {
  readonly policyId: string;
  readonly outcome: PolicyOutcome;
  /** Why it is in doubt. */
  readonly error?: string;
  /**
   * `unreadable`: something that the policy refers to is present and cannot be read; a DENY then applies.
   * `not-applicable`: the request has no such thing. An ALLOW in doubt never applies.
   */
  readonly doubt?: Doubt['kind'];
  /** The payload of this outcome, if the outcome is not the same for all. */
  readonly payload?: string;
}

/** The outcome of one policy for one part of a request. */
export interface Answer {
  readonly evaluation: Evaluation;
  /** It is an ALLOW whose condition is present and true or in doubt, and it does not apply. */
  readonly isSpokenTo: boolean;
  /** Ids of the users who can matter to it, if it is an ALLOW that lacks at most votes. */
  contributors(): readonly string[];
}

/** The value of a clause for one part of a request, and the names that it is evaluated with. */
export interface ClauseRead {
  readonly reading: Reading;
  /** Of a consensus: whether the approvals satisfy it. */
  readonly isMet?: boolean;
  readonly scope: Scope;
}

/** What approvals decide about one part of a request, all else being as it is. Consensuses are texts. */
export interface DecidedByVotes {
  /** The consensuses of the ALLOWs that otherwise apply, any one of which is enough. */
  readonly allows: readonly string[];
  /** Those of the DENYs that otherwise apply: each keeps the part from being allowed while it is true or unreadable. */
  readonly denies: readonly string[];
  /** A DENY applies whoever approves. */
  readonly isDenied: boolean;
  /** The submitter's own approval is enough. */
  readonly isOwn: boolean;
}

/** The policies' outcomes for one part of a request. */
export class PartQuestion {
  private readonly values = new Map<string, PolicyValue | undefined>();
  private readonly scope: Scope;
  private knownAnswers: readonly Answer[] | undefined;

  constructor(
    private readonly question: Question,
    private readonly part: Part,
    private readonly request: AuthorizationRequest,
  ) {
    this.scope = { now: question.context.now, value: (name) => this.valueOf(name) };
  }

  hasApproved(userId: string): boolean {
    return this.question.userApprovals.some(({ user }) => user.userId === userId);
  }

  get answers(): readonly Answer[] {
    this.knownAnswers ??= this.question.answersOnceSpent.or(() => {
      const { question } = this;
      return question.asPlaced(question.inOrder.map((policy) => this.answerOf(policy)));
    });
    return this.knownAnswers;
  }

  /**
   * Whether some ALLOW could apply, or wait for votes, for the most favourable resources of the request; with `userId`,
   * whether that user's approval could matter to it.
   */
  couldAllow(userId?: string): boolean {
    return this.question.inOrder.some((policy) => {
      if (policy.effect !== 'EFFECT_ALLOW') return false;
      // Running out of steps is for the decision itself to report.
      if (this.question.ask()) return true;
      const time = this.read(policy.time, 'time');
      if (!isCertain(time)) return false;
      const { truth } = this.read(policy.condition, 'condition');
      if (truth === 'false' || truth === 'not-applicable') return false;
      const consensus = this.question.consensus(policy.consensus);
      if (consensus instanceof Unreadable || consensus.reading.doubt) return false;
      if (userId !== undefined) return this.question.voters.contributes(consensus.expression, userId);
      return consensus.isMet || this.isWaiting(consensus.expression);
    });
  }

  /** What further approvals could change. */
  decidedByVotes(): DecidedByVotes {
    return this.question.votesOnceSpent.or(() => this.readButConsensuses());
  }

  private readButConsensuses(): DecidedByVotes {
    const allows = new Set<string>();
    const denies = new Set<string>();
    let isDenied = false;
    let isSpokenTo = false;
    for (const policy of this.question.inOrder) {
      const rest = this.withoutConsensus(policy);
      const truth = conjunction(...rest.map((reading) => reading.truth));
      const isDoubtOrTrue = truth === 'true' || truth === 'unreadable';
      const { consensus = anyApproval } = policy;
      if (policy.effect === 'EFFECT_ALLOW') {
        isSpokenTo ||= isDoubtOrTrue && policy.condition !== undefined;
        if (rest.every(isCertain)) allows.add(consensus);
      } else if (isDoubtOrTrue) {
        const denied = this.question.denialBy(consensus);
        isDenied ||= denied === 'always';
        if (denied === 'by votes') denies.add(consensus);
      }
    }
    const { ownCredentials } = this.request;
    const isOwn = ownCredentials === 'session' || (ownCredentials && !isSpokenTo);
    return { allows: [...allows], denies: [...denies], isDenied, isOwn };
  }

  /** What a policy says apart from its consensus. */
  private withoutConsensus({ time, condition }: Policy): readonly Reading[] {
    const spent = this.question.ask();
    return spent ? [unreadableBy(spent)] : [this.read(time, 'time'), this.read(condition, 'condition')];
  }

  private answerOf(policy: Policy): Answer {
    const { policyId, effect } = policy;
    const spent = this.question.ask();
    if (spent) {
      if (effect === 'EFFECT_DENY') return denial(policyId, [unreadableBy(spent)]);
      const evaluation: Evaluation = { policyId, outcome: 'OUTCOME_ERROR', ...inDoubt(spent) };
      return { ...silent(evaluation), isSpokenTo: policy.condition !== undefined };
    }
    const time = this.read(policy.time, 'time');
    if (time.truth === 'false') return silent({ policyId, outcome: 'OUTCOME_TIME_INACTIVE' });
    const condition = this.read(policy.condition, 'condition');
    const consensus = this.question.consensus(policy.consensus);
    return effect === 'EFFECT_DENY'
      ? denial(policyId, [
          time,
          condition,
          consensus instanceof Unreadable ? unreadableBy(consensus) : consensus.reading,
        ])
      : this.permission(policy, time, condition, consensus);
  }

  /** Why a policy has its outcome. */
  decidingPart(policy: Policy, { outcome, doubt }: Evaluation): DecidingPart | undefined {
    const truth = truthBehind(policy, outcome, doubt);
    if (truth === undefined) return undefined;
    const isDoubted = policy.effect === 'EFFECT_ALLOW' && outcome === 'OUTCOME_ERROR';
    // An ALLOW that is in doubt and also false would not apply without the doubt either, so the false part says more.
    const falsePart = isDoubted ? this.partThatIs('false', policy, undefined, true) : undefined;
    return falsePart ?? this.partThatIs(truth, policy, isDoubted ? doubt : undefined);
  }

  /**
   * The value that a clause has in this decision, and what it reads; undefined if the policy has no such clause. Only
   * after `answers`: what the decision has not evaluated is evaluated now, at its expense.
   */
  clauseRead(policy: Policy, clause: Clause): ClauseRead | undefined {
    const text = policy[clause];
    if (text === undefined) return undefined;
    if (clause !== 'consensus') return { reading: this.read(text, clause), scope: this.scope };
    const consensus = this.question.consensus(text);
    const { scope } = this.question.voters;
    if (consensus instanceof Unreadable) return { reading: unreadableBy(consensus), scope };
    return { reading: consensus.reading, isMet: consensus.isMet, scope };
  }

  private partThatIs(
    truth: Reading['truth'],
    policy: Policy,
    doubt: Evaluation['doubt'] = undefined,
    isForGood = false,
  ): DecidingPart | undefined {
    const isByVotes =
      policy.effect === 'EFFECT_DENY' && truth === 'true' && this.question.isMetByVotes(policy.consensus);
    // If votes completed the consensus, what was true before them did not decide.
    const clauses = isByVotes ? (['consensus'] as const) : (['time', 'condition', 'consensus'] as const);
    for (const clause of clauses) {
      const text = policy[clause];
      if (text === undefined || clause === skipped(policy, truth)) continue;
      const compiled = this.question.compile(text, clause);
      if (compiled instanceof Unreadable) continue;
      const isConsensus = clause === 'consensus';
      const read = (part: CheckedExpression): Reading =>
        isConsensus ? this.question.voters.read(part).reading : this.question.read(part, this.scope, this.part);
      const reading = read(compiled);
      if (doubt === undefined ? reading.truth !== truth : reading.doubt?.kind !== doubt) continue;
      // A consensus that votes may still meet is not what keeps it from applying.
      if (isForGood && isConsensus && this.isWaiting(compiled)) continue;
      return decidingPart(clause, text, compiled, read, doubt === undefined ? 'outcome' : 'doubt');
    }
    return undefined;
  }

  private permission(
    { policyId, condition: text }: Policy,
    time: Reading,
    condition: Reading,
    consensus: ConsensusReading | Unreadable,
  ): Answer {
    const truth = conjunction(time.truth, condition.truth);
    const isSpeaking = text !== undefined && (truth === 'true' || truth === 'unreadable');
    const ofConsensus = consensus instanceof Unreadable ? consensus : consensus.reading.doubt;
    const doubt = graverDoubt(graverDoubt(time.doubt, condition.doubt), ofConsensus);
    if (doubt || consensus instanceof Unreadable) {
      const evaluation: Evaluation = { policyId, outcome: 'OUTCOME_ERROR', ...inDoubt(doubt) };
      return { ...silent(evaluation), isSpokenTo: isSpeaking };
    }
    const isTrue = condition.truth === 'true';
    const { expression, isMet } = consensus;
    let outcome: PolicyOutcome = 'OUTCOME_DENY_IMPLICIT';
    if (isTrue && isMet) outcome = 'OUTCOME_ALLOW';
    else if (isTrue && this.isWaiting(expression)) outcome = 'OUTCOME_REQUIRES_CONSENSUS';
    return {
      evaluation: { policyId, outcome },
      isSpokenTo: isSpeaking && !isMet,
      contributors: () => {
        const { voters } = this.question;
        return isTrue && (isMet || voters.isReachable(expression)) ? voters.contributors(expression) : nobody;
      },
    };
  }

  /**
   * Whether others' votes may still meet the consensus, and the submitter may ask for them: either the submitter's own
   * vote counts, or the consensus itself defines the requester's part.
   */
  private isWaiting(consensus: CheckedExpression): boolean {
    const { voters } = this.question;
    const mayAsk = rootsOf(consensus).has('requester') || voters.contributes(consensus, this.request.submitterId);
    return mayAsk && voters.isReachable(consensus);
  }

  /** An omitted clause restricts nothing. */
  private read(text: string | undefined, clause: 'condition' | 'time'): Reading {
    if (text === undefined) return noClause;
    const compiled = this.question.compile(text, clause);
    return compiled instanceof Unreadable
      ? unreadableBy(compiled)
      : this.question.read(compiled, this.scope, this.part);
  }

  private valueOf(name: string): PolicyValue | undefined {
    if (this.values.has(name)) return this.values.get(name);
    const value = ofWholeRequest.has(name)
      ? this.question.valueOf(name)
      : this.question.namespaceValue(name, this.request);
    this.values.set(name, value);
    return value;
  }
}

const nobody: readonly string[] = [];

const noClause: Reading = { truth: 'true' };

/** Of two doubts, what cannot be read goes before what is not there, and the first before the second. */
function graverDoubt(first: Doubt | undefined, second: Doubt | undefined): Doubt | undefined {
  return second instanceof Unreadable && !(first instanceof Unreadable) ? second : (first ?? second);
}

/** The value of a clause that decides for an outcome; undefined if none matters more than another. */
function truthBehind(
  { effect }: Policy,
  outcome: PolicyOutcome,
  doubt: Doubt['kind'] | undefined,
): Reading['truth'] | undefined {
  switch (outcome) {
    case 'OUTCOME_DENY_EXPLICIT':
      return doubt ?? 'true';
    case 'OUTCOME_ERROR':
      return effect === 'EFFECT_ALLOW' ? doubt : 'not-applicable';
    case 'OUTCOME_ALLOW':
      return undefined;
    default:
      return 'false';
  }
}

/** That a DENY is active now says less than what it denies. */
function skipped({ condition, consensus }: Policy, truth: Reading['truth']): Clause | undefined {
  return truth === 'true' && (condition ?? consensus) !== undefined ? 'time' : undefined;
}

/** A DENY applies if everything it says is true, or cannot be shown to be false. */
function denial(policyId: string, readings: readonly Reading[]): Answer {
  const truth = conjunction(...readings.map((reading) => reading.truth));
  switch (truth) {
    case 'true':
      return silent({ policyId, outcome: 'OUTCOME_DENY_EXPLICIT' });
    case 'false':
      return silent({ policyId, outcome: 'OUTCOME_DENY_IMPLICIT' });
    default: {
      const outcome = truth === 'unreadable' ? 'OUTCOME_DENY_EXPLICIT' : 'OUTCOME_ERROR';
      const error = readings.find((reading) => reading.truth === truth)?.doubt?.reason;
      return silent({ policyId, outcome, ...(error === undefined ? {} : { error }), doubt: truth });
    }
  }
}

function silent(evaluation: Evaluation): Answer {
  return { evaluation, isSpokenTo: false, contributors: () => nobody };
}

function unreadableBy(doubt: Unreadable): Reading {
  return { truth: 'unreadable', doubt };
}

function inDoubt(doubt: Doubt | undefined): Pick<Evaluation, 'error' | 'doubt'> {
  return doubt ? { error: doubt.reason, doubt: doubt.kind } : {};
}
