import { authorize, type Authorization } from '../../domain/policy/authorize.js';
import { isRootPossible } from '../../domain/policy/root-quorum.js';
import type { AuthorizationContext } from '../../domain/policy/request-evaluation.js';
import type { Steps } from '../../domain/steps.js';
import type { Approval, AuthorizationRequest } from '../../domain/policy/types.js';

/** Everything that a decision by policies rests on. Made anew for each use: its meter is used up by one decision. */
export interface Facts {
  readonly request: AuthorizationRequest;
  readonly approvals: readonly Approval[];
  readonly context: AuthorizationContext;
  /** The member of the root quorum whose credentials or contacts it would change: only they or the quorum may. */
  readonly member?: string;
  /** Nobody could vote on it: what needs votes is denied. */
  readonly isAtOnce?: true;
  /** A user who is no person that could be asked: that of an auth proxy. */
  readonly isNobody?: (userId: string) => boolean;
}

/** What comes of a request, and the rule that decided. */
export interface Verdict {
  readonly outcome: Authorization['outcome'];
  readonly by: Authorization['by'];
  /** Policies allow it, but it waits for this member of the root quorum, or for the quorum. */
  readonly waitsForMember?: string;
  /** It would wait for votes, and nobody could vote. */
  readonly isOutOfReach?: true;
}

/** The decision as `authorize` makes it, and what becomes of it where that is not all. */
export function verdictOf({ request, approvals, context, member, isAtOnce }: Facts): Verdict {
  const { outcome, by } = authorize(request, approvals, context);
  const isTheirs = member === undefined || by === 'root-quorum' || approvals.some(({ userId }) => userId === member);
  if (outcome === 'allow' && !isTheirs) {
    const mayWait = isRootPossible(context.rootQuorum, request) && !isAtOnce;
    return { outcome: mayWait ? 'consensus-needed' : 'deny-implicit', by: 'none', waitsForMember: member };
  }
  if (outcome === 'consensus-needed' && isAtOnce) return { outcome: 'deny-implicit', by, isOutOfReach: true };
  return { outcome, by };
}

/** Whether one outcome is better for the request than another. */
export function isBetter(one: Verdict['outcome'], than: Verdict['outcome']): boolean {
  return rank(one) > rank(than);
}

function rank(outcome: Verdict['outcome']): number {
  if (outcome === 'allow') return 2;
  return outcome === 'consensus-needed' ? 1 : 0;
}

/** The same facts for a decision of its own: nothing that was read for another one is known, and its steps are these. */
export function onMeter(facts: Facts, steps: Steps): Facts {
  const { clauses: _known, ...context } = facts.context;
  return { ...facts, context: { ...context, steps } };
}
