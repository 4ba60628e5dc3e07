import { OutOfSteps, Steps } from '../steps.js';
import { analyse } from './consensus-analysis.js';
import { isCertain, type Reading } from './doubt.js';
import { evaluate, type Scope } from './evaluate.js';
import type { CheckedExpression } from './syntax.js';
import { Tally } from './tally.js';
import type { PolicyUser, UserApproval } from './types.js';
import { search } from './vote-search.js';
import { VoterKinds } from './voter-kinds.js';
import { alone, scopeOf, sizeOf, voteOf, type Vote, type VoteSet } from './votes.js';

/** Maximum steps of one question about a consensus: 10 ms. */
const maxStepsPerQuestion = 100_000;
/** Maximum steps of all questions about the voters of one decision: 20 ms. */
export const maxStepsInAll = 200_000;

/** What was found, and the steps that it took. */
interface Answered<Answer> {
  readonly answer: Answer;
  readonly steps: number;
}
/** By consensus, and by user; '' where it is about all of them. */
type Answers<Answer> = Map<CheckedExpression, Map<string, Answered<Answer>>>;

/**
 * Finds whose approval a consensus has, could get, and depends on (docs/protocol.md, consensus), at one revision.
 *
 * A set of approvals satisfies a consensus if it is not empty and the expression is true of it, with no doubt anywhere:
 * an activity that nobody approved has no consensus, whatever the expression says of an empty list. Users approve with
 * one of their credentials, so a user without any cannot approve.
 *
 * Results are exact for every expression, monotone or not, within the two budgets above. Users that the expression
 * cannot tell apart are interchangeable, which keeps usual expressions far below the budgets. Beyond them, a yes is
 * still based on a set of approvals that was found, but a no may mean "too many to try". So the budgets can deny a
 * request that could have waited for votes, and can never allow one.
 */
export class Voters {
  private readonly castVotes: readonly Vote[];
  /** All names of a consensus, with the approvals cast. */
  readonly scope: Scope;
  private readonly knownKinds = new Map<CheckedExpression, VoterKinds>();
  private readonly reachable: Answers<boolean> = new Map();
  private readonly contributing: Answers<boolean> = new Map();
  private readonly allContributing: Answers<readonly string[]> = new Map();
  private readonly castByUser: ReadonlyMap<string, UserApproval>;
  private readonly steps: Steps;
  private knownCandidates: ReadonlyMap<string, readonly Vote[]> | undefined;

  /**
   * `cast` are the live approvals in vote order, one per user; `outer` has the time and all names except the approvals.
   * Questions about possible votes draw their budgets from `all`.
   */
  constructor(
    private readonly users: () => readonly PolicyUser[],
    private readonly cast: readonly UserApproval[],
    private readonly outer: Scope,
    private readonly all = new Steps(),
  ) {
    this.castVotes = cast.map(voteOf);
    this.castByUser = new Map(cast.map((approval) => [approval.user.userId, approval]));
    this.scope = scopeOf(this.castVotes, outer, all);
    this.steps = all.upTo(maxStepsInAll);
  }

  /** The value of the consensus for the approvals cast, and whether they satisfy it. */
  read(consensus: CheckedExpression): { readonly reading: Reading; readonly isMet: boolean } {
    const reading = evaluate(consensus, this.scope, this.all);
    return { reading, isMet: isCertain(reading) && this.cast.length > 0 };
  }

  /** Whether approvals by further users, together with those cast, would satisfy the consensus. */
  isReachable(consensus: CheckedExpression): boolean {
    return this.once(this.reachable, consensus, '', () => this.findReachable(consensus));
  }

  private findReachable(consensus: CheckedExpression): boolean {
    return this.ask(consensus, (tally) => {
      const kinds = this.kindsOf(consensus, tally);
      const cast = this.castVotes.map((vote) => kinds.choiceOf(vote, tally));
      const others = kinds.voters.filter(({ userId }) => !this.castBy(userId));
      return search(analyse(consensus), others, tally, (set) =>
        tally.holds([...alone(cast), ...set]) ? 'found' : 'none',
      );
    });
  }

  /**
   * Whether a user's approval can matter: there are approvals of other users that do not satisfy the consensus, but do
   * together with this user's. It is the approval that the user has cast, or any that they could cast.
   */
  contributes(consensus: CheckedExpression, userId: string): boolean {
    return this.once(this.contributing, consensus, userId, () => this.findContributing(consensus, userId));
  }

  private findContributing(consensus: CheckedExpression, userId: string): boolean {
    return this.ask(consensus, (tally) => {
      const analysis = analyse(consensus);
      const kinds = this.kindsOf(consensus, tally);
      const own = this.votesOf(userId).map((vote) => kinds.choiceOf(vote, tally));
      if (own.some((choice) => tally.holds(alone([choice])))) return true;
      // The usual case on the hot path: nothing in the expression looks at this user, so they matter to no set of
      // others.
      if (own.every(({ isNeutral }) => isNeutral)) return false;
      const others = kinds.voters.filter((voter) => voter.userId !== userId);
      const holdsWithOwn = (set: VoteSet) =>
        own.some((choice) =>
          analysis.kind === 'ordered'
            ? Array.from({ length: set.length + 1 }).some((_, place) =>
                tally.holds(set.toSpliced(place, 0, { choice, count: 1 })),
              )
            : tally.holds([...set, { choice, count: 1 }]),
        );
      return search(analysis, others, tally, (set) =>
        holdsWithOwn(set) ? (tally.holds(set) ? 'too-many' : 'found') : 'none',
      );
    });
  }

  /**
   * The fewest approvals by further users that, together with those cast, would satisfy the consensus. Undefined if
   * there are none, or if finding out takes too long.
   */
  fewestMore(consensus: CheckedExpression): number | undefined {
    const fewest = this.ask(consensus, (tally) => {
      const kinds = this.kindsOf(consensus, tally);
      const cast = alone(this.castVotes.map((vote) => kinds.choiceOf(vote, tally)));
      const others = kinds.voters.filter(({ userId }) => !this.castBy(userId));
      let size = 0;
      const isEnough = (set: VoteSet) => {
        size = sizeOf(set);
        return tally.holds([...cast, ...set]) ? 'found' : 'none';
      };
      return search(analyse(consensus), others, tally, isEnough, 'from the smallest') && { size };
    });
    return fewest ? fewest.size : undefined;
  }

  /** Ids of the users whose approval can matter, in the order of the users. */
  contributors(consensus: CheckedExpression): readonly string[] {
    return this.once(this.allContributing, consensus, '', () => this.findContributors(consensus));
  }

  private findContributors(consensus: CheckedExpression): readonly string[] {
    const answers = new Map<string, boolean>();
    const found: string[] = [];
    const voters = this.ask(consensus, (tally) => this.kindsOf(consensus, tally).voters) || [];
    for (const { userId, kind } of voters) {
      // A user who has voted can no longer choose a credential, and so may differ from others of the same kind.
      const key = this.castBy(userId) ? `voted ${userId}` : kind;
      const answer = answers.get(key) ?? this.contributes(consensus, userId);
      answers.set(key, answer);
      if (answer) found.push(userId);
    }
    return found;
  }

  /**
   * The payloads of a request ask the same of a consensus. Asking again takes as many steps as before, but finds nothing
   * again: what the users are gone through for is not all counted. Where there is less room than twice those steps, the
   * search may end elsewhere, and is made.
   */
  private once<Answer>(
    known: Answers<Answer>,
    consensus: CheckedExpression,
    userId: string,
    find: () => Answer,
  ): Answer {
    const room = Math.min(maxStepsPerQuestion, this.steps.room);
    const found = known.get(consensus) ?? new Map<string, Answered<Answer>>();
    const before = found.get(userId);
    if (before && 2 * before.steps < room) {
      this.steps.settle(before.steps);
      return before.answer;
    }
    // Telling voters apart is counted the first time only.
    const isFirst = !this.knownKinds.has(consensus);
    const { spent } = this.steps;
    const answer = find();
    const steps = this.steps.spent - spent;
    if (!isFirst && 2 * steps < room) {
      known.set(consensus, found.set(userId, { answer, steps }));
    }
    return answer;
  }

  /** The result within the budget; beyond it, no. */
  private ask<Answer>(consensus: CheckedExpression, answer: (tally: Tally) => Answer): Answer | false {
    const tally = new Tally(consensus, this.outer, this.steps.upTo(maxStepsPerQuestion), maxStepsPerQuestion);
    try {
      return answer(tally);
    } catch (error) {
      if (error instanceof OutOfSteps) return false;
      throw error;
    }
  }

  private castBy(userId: string): UserApproval | undefined {
    return this.castByUser.get(userId);
  }

  private votesOf(userId: string): readonly Vote[] {
    const approval = this.castBy(userId);
    return approval ? [voteOf(approval)] : (this.candidatesOf().get(userId) ?? []);
  }

  /** By user: the votes it could cast. */
  private candidatesOf(): ReadonlyMap<string, readonly Vote[]> {
    this.knownCandidates ??= new Map(
      this.users().map((user) => [user.userId, user.credentials.map((credential) => voteOf({ user, credential }))]),
    );
    return this.knownCandidates;
  }

  private kindsOf(consensus: CheckedExpression, tally: Tally): VoterKinds {
    let kinds = this.knownKinds.get(consensus);
    if (!kinds) {
      const votes = this.users().reduce((sum, { credentials }) => sum + credentials.length, 0);
      // Comparing every field takes longer than comparing the predicates' values.
      tally.steps.take('voteTold', tally.analysis.kind === 'subsets' ? 2 * votes : votes);
      kinds = new VoterKinds(consensus, this.candidatesOf(), this.castVotes, tally);
      this.knownKinds.set(consensus, kinds);
    }
    return kinds;
  }
}
