import { partsOf, Question, type AuthorizationContext } from './request-evaluation.js';
import type { DecidedByVotes } from './part-evaluation.js';
import { isRootPossible } from './root-quorum.js';
import type { Approval, AuthorizationRequest, PolicyUser } from './types.js';

/**
 * What further approvals decide about a request, all else being as it is. Only data, so that it can be handed to another
 * thread: conditions and times have been read.
 */
export interface Ballot {
  readonly submitterId: string;
  /** In milliseconds since the epoch. */
  readonly now: number;
  readonly tenant: string;
  readonly rootQuorum: AuthorizationContext['rootQuorum'];
  /** Its members may vote whatever policies say. */
  readonly isRootPossible: boolean;
  /** What is decided alone; all have to be allowed. None if policies cannot allow the request. */
  readonly parts: readonly DecidedByVotes[];
  readonly users: readonly PolicyUser[];
  /** The approvals so far, in vote order. */
  readonly cast: readonly Approval[];
}

/** Reads everything but consensuses, within the steps of `context`. */
export function ballotOf(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): Ballot {
  const { rootQuorum, now, tenant = '', users } = context;
  const question = new Question(request, approvals, context);
  const parts = request.rootQuorumOnly ? [] : partsOf(request).map((part) => question.about(part).decidedByVotes());
  return {
    submitterId: request.submitterId,
    now,
    tenant,
    rootQuorum: { threshold: rootQuorum.threshold, userIds: [...rootQuorum.userIds] },
    isRootPossible: isRootPossible(rootQuorum, request),
    parts: distinct(parts),
    users: [...users],
    cast: approvals,
  };
}

/** Those that votes decide alike, once. A clause goes by a number, because it can be long and in every part. */
function distinct(parts: readonly DecidedByVotes[]): readonly DecidedByVotes[] {
  const numbers = new Map<string, number>();
  const numberOf = (clause: string): number => {
    const number = numbers.get(clause) ?? numbers.size;
    numbers.set(clause, number);
    return number;
  };
  const found = new Map<string, DecidedByVotes>();
  for (const part of new Set(parts)) {
    const { allows, denies, isDenied, isOwn } = part;
    found.set(JSON.stringify([allows.map(numberOf), denies.map(numberOf), isDenied, isOwn]), part);
  }
  return [...found.values()];
}
