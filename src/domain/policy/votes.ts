import type { Steps } from '../steps.js';
import type { Scope } from './evaluate.js';
import { approvalNamespaces } from './namespaces.js';
import type { PolicyValue, UserApproval } from './types.js';

/** One approval, as the language sees it: an element of each list of approvals. */
export type Vote = Readonly<Record<string, PolicyValue>>;

/** An approval as a vote, cast or hypothetical. */
export function voteOf(approval: UserApproval): Vote {
  const vote: Record<string, PolicyValue> = {};
  for (const { name, ofApproval } of lists) vote[name] = ofApproval(approval);
  return vote;
}

const lists = [...approvalNamespaces.values()];

/** The votes as the language sees them: as lists that are built on demand. */
export function scopeOf(votes: readonly Vote[], outer: Scope, steps: Steps): Scope {
  const made = new Map<string, PolicyValue>();
  const listOf = (name: string): PolicyValue => {
    let list = made.get(name);
    if (list === undefined) {
      steps.take('voteCopied', votes.length);
      list = votes.map((vote) => vote[name]!);
      made.set(name, list);
    }
    return list;
  };
  return { now: outer.now, value: (name) => (approvalNamespaces.has(name) ? listOf(name) : outer.value(name)) };
}

/** A vote as far as an expression can tell it from others: `mark` is the same if it cannot. */
export interface Choice {
  readonly vote: Vote;
  readonly mark: string;
  /** It changes the value of the expression in no set of votes. */
  readonly isNeutral: boolean;
}

/** A set of votes: how many of each choice, and of which voters, if several are alike. */
export type VoteSet = readonly {
  readonly choice: Choice;
  readonly count: number;
  readonly of?: { readonly voters: readonly Voter[]; readonly place: number };
}[];

/** Each as a vote of its own. */
export function alone(choices: readonly Choice[]): VoteSet {
  return choices.map((choice) => ({ choice, count: 1 }));
}

/** How many votes there are. */
export function sizeOf(set: VoteSet): number {
  return set.reduce((sum, { count }) => sum + count, 0);
}

/** The votes of a set, each by another user, because an expression that relates them can tell. */
export function votesIn(set: VoteSet): readonly Vote[] {
  const taken = new Map<readonly Voter[], number>();
  return set.flatMap(({ choice, count, of }) => {
    if (!of) return [choice.vote];
    const { voters, place } = of;
    const from = taken.get(voters) ?? 0;
    taken.set(voters, from + count);
    return voters.slice(from, from + count).map(({ choices }) => choices[place]!.vote);
  });
}

/** A user who could approve, and the votes to choose from: one of each distinguishable kind. */
export interface Voter {
  readonly userId: string;
  /** Voters of one kind are interchangeable. */
  readonly kind: string;
  readonly choices: readonly Choice[];
}
