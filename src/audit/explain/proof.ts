import { authorizeEach, isDenied, type Authorization } from '../../domain/policy/authorize.js';
import type { Answer, Evaluation, PartQuestion } from '../../domain/policy/part-evaluation.js';
import { Question } from '../../domain/policy/request-evaluation.js';
import { isRootPossible, isRootQuorumMet } from '../../domain/policy/root-quorum.js';
import type { Clause, Policy } from '../../domain/policy/types.js';
import { verdictOf, type Facts, type Verdict } from './facts.js';
import { onOneLine } from './shown-value.js';
import type { Room } from './proof-size-limit.js';
import { explainClause, type ClauseExplanation } from './clause-explanation.js';

/** The rules, in their order. The first that decides is the decision (docs/reference/policy-language.md). */
type Rule = 'root-quorum' | 'denials' | 'allows' | 'own-credentials' | 'implicit-denial';

/** One policy in a decision. */
export interface PolicyTold {
  readonly policyId: string;
  readonly policyName: string;
  readonly effect: Policy['effect'];
  readonly outcome: Evaluation['outcome'];
  readonly doubt?: Evaluation['doubt'];
  readonly error?: string;
  /** False where its condition demands another activity, so that the decision did not ask it. */
  readonly isAsked: boolean;
  /** The decision rests on it. */
  readonly isDeciding: boolean;
  readonly clauses: readonly ClauseExplanation[];
}

/** The decision about one payload, or about the whole request. */
interface PartProof {
  /** The payload, if there are several. */
  readonly payload?: string;
  readonly outcome: Authorization['outcome'];
  readonly decidedBy: Exclude<Rule, 'root-quorum'>;
  /** Why the rule about own credentials applies or does not. */
  readonly ownCredentials: 'applies' | 'not-own' | 'not-approved' | 'spoken-to';
  /** The policies that speak to it, if that is why. */
  readonly spokenToBy?: readonly string[];
  readonly policies: readonly PolicyTold[];
}

/** Why a request is decided as it is. */
export interface Proof extends Verdict {
  readonly rootQuorum: {
    readonly threshold: number;
    readonly members: number;
    /** Members who have approved. */
    readonly approvedBy: readonly string[];
    readonly isMet: boolean;
    /** The submitter belongs to it, so it may still be asked. */
    readonly mayBeAsked: boolean;
  };
  /** No policy can allow this. */
  readonly isRootQuorumOnly: boolean;
  /** None where the root quorum has decided, or alone may. */
  readonly parts: readonly PartProof[];
  /** Some policies, or parts of them, are left out: the answer would be too long. */
  readonly isCut: boolean;
}

/** Most policies in a proof, of each payload. */
const mostPolicies = 200;

/**
 * The decision again, with everything that it rests on.
 * @param facts are made anew each time, so that each time the decision has all of its steps
 */
export function prove(facts: () => Facts, room: Room): Proof {
  const { request, approvals, context } = facts();
  const { rootQuorum } = context;
  const isMet = isRootQuorumMet(rootQuorum, approvals);
  const approved = new Set(approvals.map(({ userId }) => userId));
  const parts = isMet || request.rootQuorumOnly ? [] : partsOf(new Question(request, approvals, context), room);
  return {
    ...verdictOf(facts()),
    rootQuorum: {
      threshold: rootQuorum.threshold,
      members: new Set(rootQuorum.userIds).size,
      approvedBy: rootQuorum.userIds.filter((userId) => approved.has(userId)),
      isMet,
      mayBeAsked: isRootPossible(rootQuorum, request),
    },
    isRootQuorumOnly: request.rootQuorumOnly,
    parts,
    isCut: room.isCut,
  };
}

function partsOf(question: Question, room: Room): PartProof[] {
  return authorizeEach(question).map(({ part, ofPart, authorization }): PartProof => {
    const decidedBy = ruleOf(authorization);
    const answers = new Map(question.asked.map((policy, index) => [policy, ofPart.answers[index]!]));
    return {
      ...(part.name === undefined ? {} : { payload: part.name }),
      outcome: authorization.outcome,
      decidedBy,
      ...ownCredentialsTold(question, ofPart),
      policies: policiesTold(question, ofPart, answers, decidedBy, room),
    };
  });
}

/** Which of the rules below the root quorum decided. */
function ruleOf({ outcome, by, evaluations }: Authorization): PartProof['decidedBy'] {
  if (isDenied({ evaluations })) return 'denials';
  if (outcome !== 'allow') return 'implicit-denial';
  return by === 'own-credentials' ? 'own-credentials' : 'allows';
}

function ownCredentialsTold(
  { request }: Question,
  ofPart: PartQuestion,
): Pick<PartProof, 'ownCredentials' | 'spokenToBy'> {
  if (!request.ownCredentials) return { ownCredentials: 'not-own' };
  if (!ofPart.hasApproved(request.submitterId)) return { ownCredentials: 'not-approved' };
  const speaking = ofPart.answers.filter(({ isSpokenTo }) => isSpokenTo);
  if (request.ownCredentials === 'session' || speaking.length === 0) return { ownCredentials: 'applies' };
  return { ownCredentials: 'spoken-to', spokenToBy: speaking.map(({ evaluation }) => evaluation.policyId) };
}

/** What matters most is told first, as long as there is room; the order is that of the organization. */
function policiesTold(
  question: Question,
  ofPart: PartQuestion,
  answers: ReadonlyMap<Policy, Answer>,
  decidedBy: Rule,
  room: Room,
): PolicyTold[] {
  const all = question.among?.policies ?? question.asked;
  const weighed = all.map((policy) => ({ policy, weight: weightOf(answers.get(policy)) }));
  const chosen = weighed.toSorted((one, other) => one.weight - other.weight).slice(0, mostPolicies);
  if (chosen.length < all.length) room.cut();
  const told = new Map(
    chosen.flatMap(({ policy }) =>
      room.takePolicy() ? [[policy, policyTold(question, ofPart, policy, answers.get(policy), decidedBy, room)]] : [],
    ),
  );
  return all.flatMap((policy) => told.get(policy) ?? []);
}

const weights: Readonly<Partial<Record<Evaluation['outcome'], number>>> = {
  OUTCOME_DENY_EXPLICIT: 0,
  OUTCOME_ALLOW: 1,
  OUTCOME_REQUIRES_CONSENSUS: 2,
  OUTCOME_ERROR: 3,
};

const weightOf = (answer: Answer | undefined): number => (answer ? (weights[answer.evaluation.outcome] ?? 4) : 5);

function policyTold(
  question: Question,
  ofPart: PartQuestion,
  policy: Policy,
  answer: Answer | undefined,
  decidedBy: Rule,
  room: Room,
): PolicyTold {
  const { policyId, policyName, effect } = policy;
  const { outcome, doubt, error } = answer?.evaluation ?? { outcome: 'OUTCOME_DENY_IMPLICIT' as const };
  const tell = (clause: Clause) =>
    explainClause({ question, ofPart, policy, clause, isAsked: answer !== undefined }, room);
  return {
    policyId,
    policyName: onOneLine(policyName),
    effect,
    outcome,
    ...(doubt === undefined ? {} : { doubt }),
    ...(error === undefined ? {} : { error: onOneLine(error) }),
    isAsked: answer !== undefined,
    isDeciding:
      (decidedBy === 'denials' && outcome === 'OUTCOME_DENY_EXPLICIT') ||
      (decidedBy === 'allows' && outcome === 'OUTCOME_ALLOW') ||
      (decidedBy === 'implicit-denial' && outcome === 'OUTCOME_REQUIRES_CONSENSUS'),
    clauses: clausesOf(outcome, answer).flatMap((clause) => tell(clause) ?? []),
  };
}

/** The clauses that the outcome depends on: those of a policy that is not active now were not evaluated. */
function clausesOf(outcome: Evaluation['outcome'], answer: Answer | undefined): readonly Clause[] {
  if (!answer) return ['condition'];
  return outcome === 'OUTCOME_TIME_INACTIVE' ? ['time'] : ['time', 'condition', 'consensus'];
}
