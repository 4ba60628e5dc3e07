import type { Ballot } from '../../domain/policy/ballot.js';
import { analyse } from '../../domain/policy/consensus-analysis.js';
import { evaluate, type Scope } from '../../domain/policy/evaluate.js';
import type { Question } from '../../domain/policy/request-evaluation.js';
import type { CheckedExpression } from '../../domain/policy/syntax.js';
import { lettersOf, Tally } from '../../domain/policy/tally.js';
import { thresholdsOf, type ThresholdFormula } from '../../domain/policy/threshold-formula.js';
import { Unreadable } from '../../domain/policy/types.js';
import { voteOf, type Vote } from '../../domain/policy/votes.js';
import type { Steps } from '../../domain/steps.js';
import { choices, joined, smallest, type Counts } from './count-vectors.js';
import { checkLeft, type ApproversQuestion, type PassingSets } from './passing-sets.js';

/** One consensus. Letters say for which of its terms an approval counts; `d`: the approval is in doubt. */
interface Consensus {
  readonly formula: ThresholdFormula;
  /** The letter that counts for each term. */
  readonly counting: string;
  /** For each term, how many of the approvals so far count. */
  readonly cast: readonly number[];
  lettersOf(vote: Vote): string;
}

interface VoterClass {
  readonly userIds: string[];
  /** For each consensus. */
  readonly letters: readonly string[];
  readonly isOfRoot: boolean;
}

/**
 * The smallest sets of approvals for consensuses that consist of thresholds, computed from their text: no set is tried.
 * Undefined if some consensus consists of anything else, a denial depends on votes, or a user has to choose between
 * credentials that count for different terms.
 * @throws {OutOfSteps}
 */
export function thresholdApprovals(
  requested: ApproversQuestion,
  question: Question,
  steps: Steps,
): PassingSets | undefined {
  return new Thresholds(requested, question, steps).sets();
}

class Thresholds {
  private readonly consensuses = new Map<string, Consensus | 'never'>();
  private readonly classes = new Map<string, VoterClass>();
  private readonly scope: Scope;
  private sizes: readonly number[] = [];

  constructor(
    private readonly asked: ApproversQuestion,
    private readonly question: Question,
    private readonly steps: Steps,
  ) {
    this.scope = { now: asked.ballot.now, value: (name) => question.valueOf(name) };
  }

  sets(): PassingSets | undefined {
    const { parts } = this.ballot;
    if (parts.some(({ denies }) => denies.length > 0)) return undefined;
    for (const text of new Set(parts.flatMap(({ allows }) => allows))) {
      const consensus = this.consensusOf(text);
      if (!consensus) return undefined;
      this.consensuses.set(text, consensus);
    }
    if (!this.tellApart()) return undefined;
    this.sizes = Array.from(this.classes.values(), ({ userIds }) => userIds.length);
    const found = smallest([...this.byPolicies(), ...this.byRootQuorum()], this.steps);
    checkLeft(this.steps);
    // What passes already still waits for the next vote, whoever casts it, unless that vote undoes it.
    const isMet = found.some((counts) => counts.every((count) => count === 0));
    if (isMet && [...this.classes.values()].some(({ letters }) => letters.join().includes('d'))) return undefined;
    const passing = isMet ? this.sizes.map((_, index) => this.one(index)) : found;
    return {
      classes: Array.from(this.classes.values(), ({ userIds }) => userIds),
      passing,
      undoneBy: passing.map(() => []),
      isComplete: true,
    };
  }

  private get ballot(): Ballot {
    return this.asked.ballot;
  }

  private consensusOf(text: string): Consensus | 'never' | undefined {
    const expression = this.question.compile(text, 'consensus');
    if (expression instanceof Unreadable) return 'never';
    const analysis = analyse(expression);
    const formula = thresholdsOf(expression);
    if (!formula || analysis.kind !== 'symmetric') return undefined;
    if (this.isInDoubt(formula)) return 'never';
    const tally = new Tally(expression, this.scope, this.steps, this.steps.budget);
    const consensus = {
      formula,
      counting: analysis.terms.map(({ summary }) => summary.letter).join(''),
      lettersOf: (vote: Vote) => lettersOf(vote, analysis, tally),
    };
    const letters = this.question.userApprovals.map((approval) => consensus.lettersOf(voteOf(approval)));
    if (letters.some((one) => one.includes('d'))) return 'never';
    const cast = Array.from(consensus.counting, (letter, term) => letters.filter((one) => one[term] === letter).length);
    return { ...consensus, cast };
  }

  private isInDoubt(formula: ThresholdFormula): boolean {
    if (formula.kind === 'at-least') return false;
    if (formula.kind === 'constant') return this.read(formula.node).doubt !== undefined;
    return formula.of.some((part) => this.isInDoubt(part));
  }

  private read(node: CheckedExpression) {
    return evaluate(node, this.scope, this.steps);
  }

  /** Puts users who are the same to every consensus together. @returns whether each has one best credential */
  private tellApart(): boolean {
    const { rootQuorum, isRootPossible, users, submitterId, parts } = this.ballot;
    const { member, mayVote, unasked } = this.asked;
    // An approval that is in doubt for one consensus may be needed for another, or for the quorum.
    const mayBeInDoubt = parts.length < 2 && member === undefined && isRootPossible;
    const requested = new Set(mayVote);
    for (const userId of [...unasked, ...this.question.userApprovals.map(({ user }) => user.userId)])
      requested.delete(userId);
    const known = [...this.consensuses.values()].filter((one) => one !== 'never');
    for (const user of users) {
      if (!requested.has(user.userId)) continue;
      this.steps.take('voteTold', user.credentials.length);
      const votes = user.credentials.map((credential) => {
        const vote = voteOf({ user, credential });
        return known.map((consensus) => consensus.lettersOf(vote));
      });
      const best = undominated(votes);
      if (best.length > 1) return false;
      const [letters] = best;
      if (!letters) continue;
      if (!mayBeInDoubt && letters.some((one) => one.includes('d'))) return false;
      const isOfRoot = rootQuorum.userIds.includes(user.userId);
      const name = user.userId === member || user.userId === submitterId ? user.userId : '';
      const key = [...letters, String(isOfRoot), name].join('|');
      const alike = this.classes.get(key);
      if (alike) alike.userIds.push(user.userId);
      else this.classes.set(key, { userIds: [user.userId], letters, isOfRoot });
    }
    return true;
  }

  private byPolicies(): readonly Counts[] {
    const { parts, submitterId } = this.ballot;
    const { member } = this.asked;
    if (parts.length === 0 || parts.some(({ isDenied }) => isDenied)) return [];
    const ofParts = parts.map(({ allows, isOwn }) => [
      ...allows.flatMap((text) => this.byConsensus(text)),
      ...(isOwn ? this.by(submitterId) : []),
    ]);
    return joined([...ofParts, ...(member === undefined ? [] : [this.by(member)])], this.steps);
  }

  private byConsensus(text: string): readonly Counts[] {
    const consensus = this.consensuses.get(text);
    if (!consensus || consensus === 'never') return [];
    const place = [...this.consensuses.values()].filter((one) => one !== 'never').indexOf(consensus);
    const usable = [...this.classes.values()].map(({ letters }) => letters[place]!);
    return smallest(this.fulfilling(consensus.formula, consensus, usable), this.steps);
  }

  /** @param letters of each class, for this consensus */
  private fulfilling(formula: ThresholdFormula, consensus: Consensus, letters: readonly string[]): readonly Counts[] {
    switch (formula.kind) {
      case 'constant':
        return (this.read(formula.node).truth === 'true') === formula.isNegated ? [] : [this.none];
      case 'at-least': {
        const { term, count } = formula;
        const counting = letters.flatMap((one, index) =>
          one[term] === consensus.counting[term] && !one.includes('d') ? [index] : [],
        );
        return choices(Math.max(0, count - consensus.cast[term]!), counting, this.sizes, this.steps);
      }
      case 'any':
        return formula.of.flatMap((part) => this.fulfilling(part, consensus, letters));
      case 'all':
        return joined(
          formula.of.map((part) => this.fulfilling(part, consensus, letters)),
          this.steps,
        );
    }
  }

  private byRootQuorum(): readonly Counts[] {
    const { threshold, userIds } = this.ballot.rootQuorum;
    if (threshold < 1) return [];
    const cast = new Set(this.ballot.cast.map(({ userId }) => userId));
    const left = threshold - userIds.filter((userId) => cast.has(userId)).length;
    const members = [...this.classes.values()].flatMap(({ isOfRoot }, index) => (isOfRoot ? [index] : []));
    return choices(Math.max(0, left), members, this.sizes, this.steps);
  }

  /** One user's approval. */
  private by(userId: string): readonly Counts[] {
    if (this.question.userApprovals.some(({ user }) => user.userId === userId)) return [this.none];
    const place = [...this.classes.values()].findIndex(({ userIds }) => userIds.includes(userId));
    return place < 0 ? [] : [this.one(place)];
  }

  private get none(): Counts {
    return this.sizes.map(() => 0);
  }

  private one(place: number): Counts {
    return this.none.with(place, 1);
  }
}

/** The credentials that no other one of the user is as good as for every term; one of those that are equally good. */
function undominated(votes: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const best: (readonly string[])[] = [];
  for (const vote of votes) {
    if (best.some((other) => isAsGood(other, vote))) continue;
    best.splice(0, best.length, ...best.filter((other) => !isAsGood(vote, other)), vote);
  }
  return best;
}

function isAsGood(one: readonly string[], other: readonly string[]): boolean {
  return one.every((letters, place) =>
    Array.from(letters).every((letter, term) => rankOf(letter) >= rankOf(other[place]![term]!)),
  );
}

function rankOf(letter: string): number {
  return letter === 'd' ? 0 : letter === 'n' ? 1 : 2;
}
