import { authorize, eligibleApprovers, type Approval, type PolicyUser } from 'countersign/internal';
import { contextOf } from './analysis-case.js';
import type { AnalysedSet, AnalysisSubject, FoundCase } from './analysis-subject.js';

/** Most decisions that are made to find a way. */
const mostDecisions = 3_000;

/**
 * A way in which votes come to allow a request, as a coordinator takes them: one after another from users who may vote then,
 * while the activity waits. `none` if every way was tried; undefined if there are too many.
 */
export function wayTo(
  found: FoundCase,
  set: AnalysedSet,
  subject: AnalysisSubject,
  voters: readonly string[],
  most: number,
): readonly Approval[] | 'none' | undefined {
  const { request, users, approvals } = found;
  const context = contextOf(found, set, subject);
  const seen = new Set<string>();
  const submitter = approvals.find(({ userId }) => userId === request.submitterId)!;
  // The solver's own approvals first.
  const inOrder = [...users].sort((a, b) => placeOf(a, approvals) - placeOf(b, approvals));
  let waiting: readonly (readonly Approval[])[] = [[submitter]];
  while (waiting.length > 0) {
    const next: (readonly Approval[])[] = [];
    for (const cast of waiting) {
      const key = cast.map(({ credential }) => credential.id).join(' ');
      if (seen.has(key)) continue;
      seen.add(key);
      if (seen.size > mostDecisions) return undefined;
      const { outcome } = authorize(request, cast, context);
      if (outcome === 'allow') return cast;
      if (outcome !== 'consensus-needed' || cast.length >= most) continue;
      const mayVote = eligibleApprovers(request, cast, context);
      for (const user of inOrder) {
        const { userId } = user;
        if (!voters.includes(userId) || !mayVote.has(userId) || cast.some((one) => one.userId === userId)) continue;
        for (const credential of credentialsOf(user, approvals)) next.push([...cast, { userId, credential }]);
      }
    }
    waiting = next;
  }
  return 'none';
}

function placeOf({ userId }: PolicyUser, approvals: readonly Approval[]): number {
  const place = approvals.findIndex((one) => one.userId === userId);
  return place < 0 ? approvals.length : place;
}

/** The one that the solver chose first. */
function credentialsOf({ userId, credentials }: PolicyUser, approvals: readonly Approval[]) {
  const chosen = approvals.find((one) => one.userId === userId)?.credential;
  return chosen ? [chosen, ...credentials.filter((one) => one !== chosen)] : credentials;
}
