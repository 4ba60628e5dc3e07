import type { Ballot } from '../../domain/policy/ballot.js';
import { Question, type AuthorizationContext } from '../../domain/policy/request-evaluation.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import type { Approval, AuthorizationRequest } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import type { Counts } from './count-vectors.js';

/** What is asked: who could make a waiting activity pass. Only data, for another thread. */
export interface ApproversQuestion {
  readonly ballot: Ballot;
  /** Users whose approval would be accepted now. */
  readonly mayVote: readonly string[];
  /** Users that nobody can ask: that of an auth proxy. */
  readonly unasked: readonly string[];
  /** The member of the root quorum whose own approval is needed, unless the quorum approves. */
  readonly member?: string;
}

/** Sets of users, by numbers of users of each class: any users of a class will do. */
export interface PassingSets {
  /** Ids of the users of each class. */
  readonly classes: readonly (readonly string[])[];
  /** The smallest sets whose approvals would make it pass. */
  readonly passing: readonly Counts[];
  /** For each of them, the classes of which one more approval, cast before the last, would undo it. */
  readonly undoneBy: readonly (readonly number[])[];
  /** There are no others. */
  readonly isComplete: boolean;
}

/** A question about consensuses only, for some approvals. */
export function questionOn(
  ballot: Ballot,
  approvals: readonly Approval[],
  environment: PolicyEnvironment,
  shared: Required<Pick<AuthorizationContext, 'steps' | 'clauses'>>,
): Question {
  const { submitterId, rootQuorum, users, now, tenant } = ballot;
  const request: AuthorizationRequest = {
    activity: { type: '', kind: '', params: {} },
    submitterId,
    rootQuorumOnly: false,
    ownCredentials: false,
  };
  return new Question(request, approvals, { policies: [], rootQuorum, users, now, tenant, environment, ...shared });
}

/** @throws {OutOfSteps} if what was found out may be wrong, because the steps have run out */
export function checkLeft(steps: Steps): void {
  if (steps.left <= 0 || steps.isSpent) steps.take('policyNode', steps.left + 1);
}
