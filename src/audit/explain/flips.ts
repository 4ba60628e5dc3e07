import { eligibleApprovers } from '../../domain/policy/authorize.js';
import { decisionSteps, Steps } from '../../domain/steps.js';
import { candidateChanges } from './candidates.js';
import { changed, type Change } from './changes.js';
import { isBetter, onMeter, verdictOf, type Facts, type Verdict } from './facts.js';
import type { Proof } from './proof.js';

/** Changes that together, and no fewer of them, give the request a better outcome. */
interface Flip {
  readonly changes: readonly Change[];
  readonly outcome: Verdict['outcome'];
}

/** The smallest changes that were found. */
export interface Flips {
  readonly flips: readonly Flip[];
  /** There may be others: not every change could be tried. */
  readonly isCut: boolean;
}

/** Most decisions made with changed facts, and most flips. */
const mostTries = 1_000;
const mostFlips = 30;
/** Most single changes that are tried in pairs. */
const mostInPairs = 24;

/**
 * The smallest changes of facts that would flip a denial, or let pass what waits for votes. Each was tried: `authorize`
 * decided on the changed facts, and a vote is one that a coordinator would take.
 * @param facts are made anew each time, and are on no meter: each decision has its own
 */
export function flipsOf(facts: () => Facts, proof: Proof, steps: Steps): Flips {
  if (proof.outcome === 'allow') return { flips: [], isCut: false };
  return new Trying(facts(), proof, steps).found();
}

class Trying {
  private readonly flips: Flip[] = [];
  private tries = 0;
  private isCut = false;

  constructor(
    private readonly facts: Facts,
    private readonly proof: Proof,
    private readonly steps: Steps,
  ) {}

  found(): Flips {
    const { changes, isCut } = candidateChanges(this.facts, this.proof);
    this.isCut = isCut;
    const possible = changes.filter((change) => changed(this.facts, [change]) !== undefined);
    const alone = possible.filter((change) => !this.tryAll([change]));
    // A denial by several policies ends only with the last of them.
    const denying = alone.filter((change) => change.kind === 'policy-gone');
    if (denying.length > 1) this.tryAll(denying);
    this.pairs(alone, denying);
    return { flips: this.flips.slice(0, mostFlips), isCut: this.isCut || this.flips.length > mostFlips };
  }

  private pairs(alone: readonly Change[], denying: readonly Change[]): void {
    if (alone.length > mostInPairs) this.isCut = true;
    const some = alone.slice(0, mostInPairs);
    for (const [index, one] of some.entries()) {
      for (const other of some.slice(index + 1)) this.tryAll([one, other]);
    }
    if (this.flips.length > 0 || denying.length < 2) return;
    for (const one of some) if (!denying.includes(one)) this.tryAll([...denying, one]);
  }

  /** Whether the changes give a better outcome; noted only if each of them is needed for it. */
  private tryAll(changes: readonly Change[]): boolean {
    const outcome = this.outcomeOf(changes);
    if (outcome === undefined || !isBetter(outcome, this.proof.outcome)) return false;
    const isMinimal = changes.every((change) => {
      const others = changes.filter((one) => one !== change);
      const without = others.length === 0 ? undefined : this.outcomeOf(others);
      return without === undefined || isBetter(outcome, without);
    });
    if (isMinimal) this.flips.push({ changes, outcome });
    return true;
  }

  private outcomeOf(changes: readonly Change[]): Verdict['outcome'] | undefined {
    if (this.tries >= mostTries || this.steps.left < decisionSteps) {
      this.isCut = true;
      return undefined;
    }
    const after = changed(this.facts, changes);
    if (!after) return undefined;
    this.tries += 1;
    const steps = new Steps(decisionSteps);
    const verdict = verdictOf(onMeter(after, steps));
    this.note(steps);
    if (!isBetter(verdict.outcome, this.proof.outcome) || this.areTaken(changes)) return verdict.outcome;
    return this.proof.outcome;
  }

  /** Whether each vote among the changes would be taken, one after the other: what is refused flips nothing. */
  private areTaken(changes: readonly Change[]): boolean {
    let before = changed(
      this.facts,
      changes.filter(({ kind }) => kind !== 'vote'),
    );
    for (const change of changes) {
      if (change.kind !== 'vote') continue;
      if (!before) return false;
      const steps = new Steps(decisionSteps);
      const { request, approvals, context, member } = onMeter(before, steps);
      const isTaken = change.userId === member || eligibleApprovers(request, approvals, context).has(change.userId);
      this.note(steps);
      if (!isTaken) return false;
      before = changed(before, [change]);
    }
    return true;
  }

  private note({ spent }: Steps): void {
    this.steps.note(Math.min(spent, this.steps.left));
  }
}
