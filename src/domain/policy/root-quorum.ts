import type { AuthorizationContext } from './request-evaluation.js';
import type { Approval, AuthorizationRequest } from './types.js';

type RootQuorum = AuthorizationContext['rootQuorum'];

/** Whether as many of its members as its threshold have approved. */
export function isRootQuorumMet({ threshold, userIds }: RootQuorum, approvals: readonly Approval[]): boolean {
  let count = 0;
  for (let index = 0; index < approvals.length; index++) {
    const { userId, credential } = approvals[index]!;
    if (credential.userId !== userId || !userIds.includes(userId)) continue;
    if (approvals.findIndex((approval) => approval.userId === userId) === index) count += 1;
  }
  return isThreshold(threshold) && count >= threshold;
}

/** Whether its members may vote: on any activity that waits; a submit waits for them only if one of them sends it. */
export function isRootPossible(
  { threshold, userIds }: RootQuorum,
  { submitterId, isWaiting }: Pick<AuthorizationRequest, 'submitterId' | 'isWaiting'>,
): boolean {
  const isAsked = isWaiting === true || userIds.includes(submitterId);
  return isAsked && isThreshold(threshold) && new Set(userIds).size >= threshold;
}

/** A threshold of zero, or none, would let everyone through, so it lets nobody. */
function isThreshold(threshold: number): boolean {
  return threshold >= 1;
}
