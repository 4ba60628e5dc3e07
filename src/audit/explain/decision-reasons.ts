import { decodingSteps, decisionSteps, Steps } from '../../domain/steps.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { Evaluation } from '../../domain/policy/part-evaluation.js';
import { withTheRest } from '../../domain/policy/policy-set.js';
import { ReadFirst, type DecisionContext, type Voter } from '../../decide/decision-context.js';
import { askedBySubmit, askedByVotes, outcomesAsked, type Asked } from '../../decide/explain.js';
import { explainedOutcomes, type ExplainedOutcome } from '../../decide/refusals.js';
import { activityVersion, newestIntent, type Registry } from '../../decide/registry.js';
import { hasOurRules, type Deciding } from '../verify/deciding-events.js';
import { voterOf } from '../verify/recorded-context.js';

/** An event with a decision by policies: what a user asked for or approved. */
type DecidedByPolicies = Exclude<Deciding, { type: 'ActivityRejected' }>;

/** A recorded decision, and the state that it was made on. */
export interface DecidedOn {
  readonly registry: Registry;
  readonly event: DecidedByPolicies;
  /** The organization just before the event. */
  readonly organization: OrganizationView;
  readonly revision: number;
  /** When it was recorded, milliseconds since the epoch. */
  readonly at: number;
  /** Whose policies decided, if not the organization's own. */
  readonly authority?: Voter['authority'];
}

/**
 * What each policy said in a recorded decision, with its name at that time and the part of its text that decided: made again
 * from the recorded facts. Where that does not give what is recorded (other rules decided; an export may have left out
 * facts), the recorded outcomes with the policies' names.
 * @param steps what is left for it; spent are those of the decision, and those of reading what takes long to read
 * @returns undefined if there may be too few left
 */
export function reasonsOf(decided: DecidedOn, steps: Steps): readonly ExplainedOutcome[] | undefined {
  const { event, organization, authority } = decided;
  const { evaluations: policies, policySet } = event.data.decision;
  if (steps.left < decisionSteps) return undefined;
  const { policies: known } = authority?.organization ?? organization;
  const all = policySet ? withTheRest(policies, known.values()) : policies;
  const named = explainedOutcomes(all, [], known.values());
  if (!hasOurRules(event)) return named;
  try {
    return explainedAs(policies, madeAgain(decided, steps)) ?? named;
  } catch (error) {
    if (error instanceof TooFewSteps) return undefined;
    // Facts that are needed were left out of an export: `verify` says what is wrong with a history.
    if (error instanceof Error) return named;
    throw error;
  }
}

class TooFewSteps extends Error {}

function madeAgain(decided: DecidedOn, steps: Steps): readonly ExplainedOutcome[] {
  // What takes long to read is read in this thread too, but counted as what it may take.
  for (const reading of [new Steps(), undefined]) {
    const own = new Steps(decisionSteps);
    try {
      return outcomesAgain(decided, { steps: own, ...(reading ? { reading } : {}) });
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      if (steps.left < decodingSteps + decisionSteps) throw new TooFewSteps();
      steps.note(decodingSteps);
    } finally {
      steps.note(Math.min(own.spent, steps.left));
    }
  }
  throw new Error('what was read is still to be read');
}

function outcomesAgain(decided: DecidedOn, limited: AskedWith): readonly ExplainedOutcome[] {
  return outcomesAsked(questionAgain(decided, limited));
}

/** The meters of a decision. */
export type AskedWith = Pick<DecisionContext, 'steps' | 'reading'>;

/**
 * What policies were asked in a recorded decision.
 * @throws {Error} if facts that it needs were left out of an export
 * @throws {ReadFirst}
 */
export function questionAgain(
  { registry, event, organization, revision, at, authority }: DecidedOn,
  limited: AskedWith,
): Asked {
  const context: DecisionContext = { registry, organization, revision, now: at, ...limited };
  const { vote, activityId } = event.data;
  const voter: Voter = authority
    ? { ...voterOf({ ...context, ...authority }, vote), authority }
    : voterOf(context, vote);
  if (event.type === 'ActivitySubmitted') {
    const { type, intent } = event.data;
    return askedBySubmit(context, { type, intent: newestIntent(activityVersion(registry, type), intent) }, vote, voter);
  }
  const open = organization.openActivities.get(activityId);
  if (!open) throw new Error(`activity \`${activityId}\` does not wait for votes`);
  return askedByVotes(context, open, voter);
}

/** What came out again, if every recorded outcome is part of it, with doubts in the words recorded then. */
function explainedAs(
  recorded: readonly Evaluation[],
  again: readonly ExplainedOutcome[],
): readonly ExplainedOutcome[] | undefined {
  const identity = ({ policyId, outcome, doubt, payload: of }: Evaluation) =>
    JSON.stringify([policyId, outcome, doubt ?? '', of ?? '']);
  const left = new Map(recorded.map((one) => [identity(one), one]));
  const explained = again.map((one) => {
    const { error } = left.get(identity(one)) ?? one;
    left.delete(identity(one));
    return error === undefined ? one : { ...one, error };
  });
  return left.size === 0 ? explained : undefined;
}
