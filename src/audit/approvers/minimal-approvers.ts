import { ClausesRead } from '../../domain/policy/language.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import { OutOfSteps, Steps } from '../../domain/steps.js';
import { blocking, merged, setsIn, type Counts } from './count-vectors.js';
import { questionOn, type ApproversQuestion, type PassingSets } from './passing-sets.js';
import { stepwiseApprovals } from './stepwise-approvals.js';
import { thresholdApprovals } from './threshold-approvals.js';

/** Budget of one answer, in a thread of its own: a second. */
export const approversSteps = 10_000_000;

/** Who could make a waiting activity pass, and who could keep it from passing. Any users of a class will do. */
export interface MinimalApprovers extends PassingSets {
  /** How many sets of users `passing` stands for. */
  readonly sets: bigint;
  /**
   * The smallest sets of users without whose approval it cannot pass; undefined if finding out takes too long. If
   * nothing can make it pass, that is the empty set.
   */
  readonly blocking: readonly Counts[] | undefined;
}

/**
 * All smallest sets of users whose approvals, each cast as the coordinator accepts it, would make a waiting activity pass
 * under today's users, policies and quorum. A set passes exactly as it is; where another approval would undo it,
 * `undoneBy` says whose.
 */
export function minimalApprovers(
  requested: ApproversQuestion,
  environment: PolicyEnvironment,
  steps = new Steps(approversSteps),
): MinimalApprovers {
  const found = thrifty(joinedClasses(passingSets(requested, environment, steps.upTo(steps.left / 2)), steps));
  const sizes = found.classes.map((userIds) => userIds.length);
  return { ...found, sets: setsIn(found.passing, sizes), blocking: blockingSets(found, sizes, steps) };
}

function passingSets(requested: ApproversQuestion, environment: PolicyEnvironment, steps: Steps): PassingSets {
  const clauses = new ClausesRead(environment, requested.ballot.tenant);
  const own = steps.upTo(steps.left / 2);
  try {
    const question = questionOn(requested.ballot, requested.ballot.cast, environment, { steps: own, clauses });
    const byThresholds = thresholdApprovals(requested, question, own);
    if (byThresholds) return byThresholds;
  } catch (error) {
    if (!(error instanceof OutOfSteps)) throw error;
  }
  return stepwiseApprovals(requested, environment, steps);
}

/** Users who are interchangeable in all sets make one class, unless some set can be undone: by whom is told by class. */
function joinedClasses(found: PassingSets, steps: Steps): PassingSets {
  if (found.undoneBy.some((classes) => classes.length > 0) || !found.isComplete) return found;
  const sizes = found.classes.map((userIds) => userIds.length);
  const together = withinSteps(() => merged(found.passing, sizes, steps.upTo(steps.left / 4)));
  if (!together) return found;
  const classes = together.groups.map((group) => group.flatMap((index) => found.classes[index]!));
  return { ...found, classes, passing: together.family, undoneBy: together.family.map(() => []) };
}

/** Without the classes of which nobody matters. */
function thrifty({ classes, passing, undoneBy, isComplete }: PassingSets): PassingSets {
  const kept = classes.flatMap((_, index) =>
    passing.some((counts) => counts[index]! > 0) || undoneBy.some((undoing) => undoing.includes(index)) ? [index] : [],
  );
  return {
    classes: kept.map((index) => classes[index]!),
    passing: passing.map((counts) => kept.map((index) => counts[index]!)),
    undoneBy: undoneBy.map((undoing) => undoing.map((index) => kept.indexOf(index))),
    isComplete,
  };
}

function blockingSets({ passing, isComplete }: PassingSets, sizes: readonly number[], steps: Steps) {
  return isComplete ? withinSteps(() => blocking(passing, sizes, steps.upTo(steps.left))) : undefined;
}

function withinSteps<Made>(make: () => Made): Made | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof OutOfSteps) return undefined;
    throw error;
  }
}
