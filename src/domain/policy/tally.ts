import { OutOfSteps, type Steps } from '../steps.js';
import { analyse, type Analysis, type Term } from './consensus-analysis.js';
import { isCertain, type Reading } from './doubt.js';
import { evaluate, evaluateBody, evaluateWith, type Scope } from './evaluate.js';
import type { Predicate } from './functions/function.js';
import type { CheckedExpression } from './syntax.js';
import { unreadable, type PolicyValue } from './types.js';
import { scopeOf, votesIn, type Vote, type VoteSet } from './votes.js';

/** Evaluates sets of votes for one question, within the budgets. */
export class Tally {
  readonly analysis: Analysis;

  constructor(
    private readonly consensus: CheckedExpression,
    readonly outer: Scope,
    readonly steps: Steps,
    private readonly budget: number,
  ) {
    this.analysis = analyse(consensus);
  }

  get isSpent(): boolean {
    return this.steps.left <= 0;
  }

  holds(set: VoteSet): boolean {
    if (!set.some(({ count }) => count > 0)) return false;
    this.steps.take('votesTried');
    const { analysis } = this;
    if (analysis.kind === 'symmetric') {
      const known = new Map(analysis.terms.map((term, index) => [term.node, this.valueOf(term, index, set)]));
      return this.certain(evaluateWith(known, this.consensus, this.outer, this.steps));
    }
    const votes = votesIn(set);
    this.steps.take('voteCopied', votes.length);
    return this.certain(evaluate(this.consensus, scopeOf(votes, this.outer, this.steps), this.steps));
  }

  /** What ran out of steps is neither a yes nor a no. */
  private certain(reading: Reading): boolean {
    if (this.steps.isSpent) throw new OutOfSteps(this.budget, 'policyNode');
    return isCertain(reading);
  }

  /** A doubt anywhere keeps an ALLOW from applying, so the outcome despite it does not matter here. */
  predicate(predicate: Predicate, element: PolicyValue): boolean | 'doubt' {
    const { truth, doubt } = evaluateBody(predicate, element, this.outer, this.steps);
    return doubt ? 'doubt' : truth === 'true';
  }

  /** The value of a term for a set of votes, from the letters of its votes. */
  private valueOf({ summary }: Term, index: number, set: VoteSet): PolicyValue {
    this.steps.take('listElement', set.length);
    let counted = 0;
    for (const { choice, count } of set) {
      if (count === 0) continue;
      const letter = choice.mark[index];
      if (letter === 'd') return inDoubt;
      if (letter === summary.letter) counted += count;
    }
    return summary.of(counted);
  }
}

const inDoubt = unreadable('an approval is in doubt');

/** The letter of each term for a vote; `n` is neutral: it changes the value of the term in no list. */
export function lettersOf(vote: Vote, { terms }: Extract<Analysis, { kind: 'symmetric' }>, tally: Tally): string {
  let letters = '';
  for (const term of terms) letters += letterOf(term, vote[term.list]!, tally);
  return letters;
}

function letterOf({ filters, each, summary }: Term, element: PolicyValue, tally: Tally): string {
  for (const filter of filters) {
    const isKept = tally.predicate(filter, element);
    if (isKept !== true) return isKept === 'doubt' ? 'd' : 'n';
  }
  if (!each) return summary.letter;
  const value = tally.predicate(each, element);
  if (value === summary.neutral) return 'n';
  return value === 'doubt' ? 'd' : summary.letter;
}
