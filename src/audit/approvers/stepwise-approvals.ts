import type { Ballot } from '../../domain/policy/ballot.js';
import { analyse } from '../../domain/policy/consensus-analysis.js';
import { ClausesRead } from '../../domain/policy/language.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import type { DecidedByVotes } from '../../domain/policy/part-evaluation.js';
import type { Question } from '../../domain/policy/request-evaluation.js';
import { isRootQuorumMet } from '../../domain/policy/root-quorum.js';
import { Unreadable, type Approval } from '../../domain/policy/types.js';
import { OutOfSteps, type Steps } from '../../domain/steps.js';
import { covers, type Counts } from './count-vectors.js';
import { checkLeft, questionOn, type ApproversQuestion, type PassingSets } from './passing-sets.js';
import { classesOf, type VotingClass } from './voting-classes.js';

/** Votes as cast one after the other: for each, its class and which of the class's credentials. */
type Sequence = readonly { readonly group: number; readonly choice: number }[];

/** What the approvals so far lead to, and who may vote next. */
interface Standing {
  readonly outcome: 'passes' | 'waits' | 'refused';
  mayVote(userId: string): boolean;
}

/**
 * The smallest sets of approvals for any consensuses and denials, found by casting votes one after the other, fewest
 * first, each as the coordinator would accept it. If the steps run out, those found until then are the smallest there
 * are, and there may be more.
 */
export function stepwiseApprovals(
  requested: ApproversQuestion,
  environment: PolicyEnvironment,
  steps: Steps,
): PassingSets {
  let search: Search | undefined;
  try {
    search = new Search(requested, environment, steps);
    search.run();
    return { ...search.found(), isComplete: true };
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error;
    return { ...(search?.found() ?? { classes: [], passing: [], undoneBy: [] }), isComplete: false };
  }
}

class Search {
  private readonly clauses: ClausesRead;
  private readonly passing: Counts[] = [];
  private readonly undoneBy: (readonly number[])[] = [];
  private readonly classes: readonly VotingClass[];
  private readonly isOrdered: boolean;
  private readonly cap: number;

  constructor(
    private readonly asked: ApproversQuestion,
    private readonly environment: PolicyEnvironment,
    private readonly steps: Steps,
  ) {
    const { ballot } = asked;
    this.clauses = new ClausesRead(environment, ballot.tenant);
    const question = this.questionOn([]);
    const texts = [...new Set(ballot.parts.flatMap(({ allows, denies }) => [...allows, ...denies]))];
    const expressions = texts
      .map((text) => question.compile(text, 'consensus'))
      .filter((expression) => !(expression instanceof Unreadable));
    const analyses = expressions.map(analyse);
    this.isOrdered = analyses.some(({ kind }) => kind === 'ordered');
    this.cap = Math.max(
      ballot.rootQuorum.threshold,
      ...analyses.map((analysis) => (analysis.kind === 'ordered' ? Infinity : analysis.cap)),
    );
    this.classes = classesOf(asked, expressions, this.questionOn(ballot.cast), steps);
    checkLeft(steps);
  }

  found(): Omit<PassingSets, 'isComplete'> {
    const classes = this.classes.map(({ users }) => users.map(({ userId }) => userId));
    const undoneBy = this.passing.map((_, index) => this.undoneBy[index] ?? []);
    return { classes, passing: this.passing, undoneBy };
  }

  /** @throws {OutOfSteps} */
  run(): void {
    const sequences: Sequence[] = [];
    for (let frontier: readonly Sequence[] = [[]]; frontier.length > 0;) {
      const next = new Map<string, Sequence>();
      for (const sequence of frontier) {
        for (const further of this.after(sequence, next)) {
          sequences.push(further);
          this.passing.push(this.countsOf(further));
        }
      }
      frontier = [...next.values()];
    }
    const now = this.standing([]);
    for (const sequence of sequences) this.undoneBy.push(this.undoing(sequence, now));
  }

  /** Casts one more vote; puts what still waits into `waiting`. @returns what passes */
  private after(sequence: Sequence, waiting: Map<string, Sequence>): readonly Sequence[] {
    const passing: Sequence[] = [];
    const { mayVote } = this.standing(sequence);
    for (const vote of this.nextVotes(sequence, mayVote)) {
      const further = [...sequence, vote];
      const counts = this.countsOf(further);
      const isKnown = [...this.passing, ...passing.map((one) => this.countsOf(one))].some((one) => covers(counts, one));
      const key = this.keyOf(further);
      if (isKnown || waiting.has(key)) continue;
      const { outcome } = this.standing(further);
      if (outcome === 'passes') passing.push(further);
      if (outcome === 'waits') waiting.set(key, further);
    }
    return passing;
  }

  private *nextVotes(sequence: Sequence, mayVote: Standing['mayVote']): Generator<Sequence[number]> {
    for (const [group, { users, choices }] of this.classes.entries()) {
      const taken = sequence.filter((vote) => vote.group === group);
      const user = users[taken.length];
      if (!user || !mayVote(user.userId) || taken.length >= this.cap) continue;
      for (const choice of choices.keys()) yield { group, choice };
    }
  }

  /** The classes of which one more approval before the last would undo it. */
  private undoing(sequence: Sequence, { mayVote }: Standing): readonly number[] {
    const classes = new Set<number>();
    for (const vote of this.nextVotes(sequence, mayVote)) {
      if (classes.has(vote.group)) continue;
      const further = sequence.toSpliced(sequence.length - 1, 0, vote);
      if (this.standing(further).outcome !== 'passes') classes.add(vote.group);
    }
    return [...classes];
  }

  private standing(sequence: Sequence): Standing {
    const { ballot, member } = this.asked;
    const { rootQuorum, isRootPossible, submitterId, parts } = ballot;
    const approvals = [...ballot.cast, ...this.approvalsIn(sequence)];
    const approved = new Set(approvals.map(({ userId }) => userId));
    this.steps.take('votesTried', 1 + sequence.length);
    const question = this.questionOn(approvals);
    const isDenied = parts.some((part) => isPartDenied(part, question));
    const isAllowed =
      parts.length > 0 &&
      !isDenied &&
      parts.every(
        ({ allows, isOwn }) => (isOwn && approved.has(submitterId)) || allows.some((text) => isMet(text, question)),
      );
    const isByMember = member === undefined || approved.has(member);
    let eligible: ReadonlySet<string> | undefined;
    const mayVote = (userId: string): boolean => {
      if (approved.has(userId)) return false;
      if (userId === member || (isRootPossible && rootQuorum.userIds.includes(userId))) return true;
      if (isDenied) return false;
      eligible ??= contributorsTo(parts, question);
      checkLeft(this.steps);
      return eligible.has(userId);
    };
    checkLeft(this.steps);
    if (isRootQuorumMet(rootQuorum, approvals) || (isAllowed && isByMember)) return { outcome: 'passes', mayVote };
    // As in `decideVote`: only members of the root quorum may approve what is denied.
    const last = approvals.at(-1)?.userId;
    const isOfRoot = isRootPossible && last !== undefined && rootQuorum.userIds.includes(last);
    return { outcome: isDenied && !isOfRoot ? 'refused' : 'waits', mayVote };
  }

  private approvalsIn(sequence: Sequence): readonly Approval[] {
    const taken = new Map<number, number>();
    return sequence.map(({ group, choice }) => {
      const place = taken.get(group) ?? 0;
      taken.set(group, place + 1);
      const { userId, credentials } = this.classes[group]!.users[place]!;
      return { userId, credential: credentials[choice]! };
    });
  }

  private countsOf(sequence: Sequence): Counts {
    const counts = this.classes.map(() => 0);
    for (const { group } of sequence) counts[group]!++;
    this.steps.take('listElement', counts.length);
    return counts;
  }

  private keyOf(sequence: Sequence): string {
    const votes = sequence.map(({ group, choice }) => `${group}.${choice}`);
    return (this.isOrdered ? votes : votes.sort()).join();
  }

  private questionOn(approvals: readonly Approval[]): Question {
    return questionOn(this.asked.ballot, approvals, this.environment, { steps: this.steps, clauses: this.clauses });
  }
}

function isMet(text: string, question: Question): boolean {
  const consensus = question.consensus(text);
  return !(consensus instanceof Unreadable) && consensus.isMet;
}

function isPartDenied({ denies, isDenied }: DecidedByVotes, question: Question): boolean {
  return (
    isDenied ||
    denies.some((text) => {
      const consensus = question.consensus(text);
      if (consensus instanceof Unreadable) return true;
      const { truth } = consensus.reading;
      return truth === 'true' || truth === 'unreadable';
    })
  );
}

/** As `eligibleApprovers` has them: if no vote can succeed for one part, none can for the request. */
function contributorsTo(parts: Ballot['parts'], question: Question): ReadonlySet<string> {
  const found = parts.map(({ allows }) => allows.flatMap((text) => contributors(text, question)));
  return new Set(found.some((userIds) => userIds.length === 0) ? [] : found.flat());
}

function contributors(text: string, question: Question): readonly string[] {
  const consensus = question.consensus(text);
  if (consensus instanceof Unreadable || consensus.reading.doubt) return [];
  const { voters } = question;
  const { expression } = consensus;
  return consensus.isMet || voters.isReachable(expression) ? voters.contributors(expression) : [];
}
