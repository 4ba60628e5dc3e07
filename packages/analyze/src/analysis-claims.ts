import type { AnalysedSet, AnalysisAnswer, AnalysisSubject, Claim, FoundCase } from './analysis-subject.js';
import { stepsOf } from './analysis-execution.js';
import { wayTo } from './analysis-walk.js';

/**
 * A set of denials with what a coordinator needs to tell what they deny from what nothing allows: a policy that allows all
 * that has these approvals, and nobody above it.
 */
export const allowing =
  ({ approvals: { length } }: FoundCase) =>
  ({ policies }: AnalysedSet): AnalysedSet => ({
    quorum: { threshold: 1, userIds: [] },
    policies: [...policies, { ...everything, consensus: `approvers.count() >= ${length}` }],
  });

const everything = {
  policyId: 'everything',
  policyName: 'Everything else (added by the analysis)',
  notes: '',
  effect: 'EFFECT_ALLOW',
  createdAt: 0,
  updatedAt: 0,
} as const;

/** What a coordinator must say under each of two sets, of votes that it takes under the one that allows it. */
export function claimsOf(
  found: FoundCase,
  sets: readonly AnalysedSet[],
  isAllowed: readonly boolean[],
  subject: AnalysisSubject,
): Pick<AnalysisAnswer, 'claims' | 'unclaimed'> {
  const voters = found.approvals.map(({ userId }) => userId);
  const way = wayTo(found, sets[isAllowed.indexOf(true)]!, subject, voters, voters.length);
  if (way === undefined || way === 'none') return { unclaimed };
  const claims = sets.map((set, index): Claim => {
    const claim = { found: { ...found, approvals: way }, set, isAllowed: isAllowed[index]! };
    // The other set may decide on fewer.
    const approvals = way.slice(0, stepsOf(claim, subject).length);
    return { ...claim, found: { ...found, approvals } };
  });
  const isShown = claims.every((claim) => (stepsOf(claim, subject).at(-1) === 'allowed') === claim.isAllowed);
  return isShown ? { claims } : { unclaimed };
}

const unclaimed = 'a coordinator does not collect these votes';
