import { analyse } from '../../domain/policy/consensus-analysis.js';
import type { Scope } from '../../domain/policy/evaluate.js';
import type { Question } from '../../domain/policy/request-evaluation.js';
import type { CheckedExpression } from '../../domain/policy/syntax.js';
import { Tally } from '../../domain/policy/tally.js';
import type { PolicyCredential, PolicyUser } from '../../domain/policy/types.js';
import { VoterKinds } from '../../domain/policy/voter-kinds.js';
import { voteOf } from '../../domain/policy/votes.js';
import type { Steps } from '../../domain/steps.js';
import type { ApproversQuestion } from './passing-sets.js';

/** Users whom nothing that is asked can tell apart, and the ways in which each of them can approve. */
export interface VotingClass {
  /** One credential for each choice, in the order of `choices`. */
  readonly users: { readonly userId: string; readonly credentials: readonly PolicyCredential[] }[];
  readonly choices: readonly string[];
}

/** The users who can be asked and have not approved yet, by what several consensuses, the root quorum and the request can tell of them. */
export function classesOf(
  { ballot, member, unasked }: ApproversQuestion,
  expressions: readonly CheckedExpression[],
  question: Question,
  steps: Steps,
): readonly VotingClass[] {
  const { users, cast, rootQuorum, submitterId, now } = ballot;
  const scope: Scope = { now, value: (name) => question.valueOf(name) };
  const votes = new Map(
    users.map((user) => [user.userId, user.credentials.map((credential) => voteOf({ user, credential }))]),
  );
  const castVotes = question.userApprovals.map(voteOf);
  const marking = expressions.map((expression) => {
    const tally = new Tally(expression, scope, steps, steps.budget);
    steps.take('voteTold', 2 * users.reduce((sum, { credentials }) => sum + credentials.length, 0));
    return { expression, tally, kinds: new VoterKinds(expression, votes, castVotes, tally) };
  });
  const marksOf = (user: PolicyUser): ReadonlyMap<string, PolicyCredential> => {
    const aliases = marking.map(() => new Map<string, string>());
    const marks = user.credentials.map((credential, index): [string, PolicyCredential] => {
      const vote = votes.get(user.userId)![index]!;
      const parts = marking.map(({ expression, tally, kinds }, place) => {
        if (analyse(expression).kind === 'ordered') return credential.id;
        return kinds.choiceOf(vote, tally, aliases[place]).mark;
      });
      // A doubt has a reason that letters do not tell: it is of this user alone.
      const isAlone = marking.some(
        ({ tally }, place) => tally.analysis.kind === 'symmetric' && parts[place]!.includes('d'),
      );
      return [JSON.stringify([...parts, ...(isAlone ? [user.userId] : [])]), credential];
    });
    return new Map(marks.sort(([one], [other]) => (one < other ? -1 : 1)));
  };
  const classes = new Map<string, VotingClass>();
  const silent = new Set([...cast.map(({ userId }) => userId), ...unasked]);
  for (const user of users) {
    const { userId } = user;
    if (silent.has(userId) || user.credentials.length === 0) continue;
    const marks = marksOf(user);
    const isOfRoot = rootQuorum.userIds.includes(userId);
    const name = userId === member || userId === submitterId ? userId : '';
    const key = JSON.stringify([...marks.keys(), isOfRoot, name]);
    const known = classes.get(key) ?? { users: [], choices: [...marks.keys()] };
    known.users.push({ userId, credentials: [...marks.values()] });
    classes.set(key, known);
  }
  return [...classes.values()];
}
