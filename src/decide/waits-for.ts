import type { OrganizationView } from '../domain/organization/organization.js';
import type { VotesMissing } from '../domain/policy/explain.js';
import { clauseOf } from './refusals.js';

/** Most users that one thing that is missing names; more are only counted in its text. */
const mostNamed = 20;
/** Most users that a sentence names. */
const mostInSentence = 5;
/** Most policies that are named. */
const mostPolicies = 10;

interface ApprovalsMissing {
  /** The fewest that would do; absent where that takes too long to tell. */
  readonly approvalsMissing?: number;
  /** Whose could count; the first 20. */
  readonly approverIds: readonly string[];
}

/** What a waiting activity waits for, as answers show it: any one of `policies`, or the root quorum, is enough. */
export interface WaitsFor {
  /** All of it in a sentence. */
  readonly text: string;
  readonly policies: readonly (ApprovalsMissing & {
    readonly policyId: string;
    readonly policyName: string;
    readonly clause?: ReturnType<typeof clauseOf>;
    /** The payload that it is missing for, where it is not for all. */
    readonly of?: string;
  })[];
  readonly rootQuorum?: ApprovalsMissing;
  /** The member of the root quorum whose own approval it needs besides, unless the quorum approves it. */
  readonly memberId?: string;
}

/** Puts what votes are missing into words. */
export function waitsForOf(
  { policies, rootQuorum }: VotesMissing,
  memberId: string | undefined,
  organization: OrganizationView,
): WaitsFor {
  const named = policies.slice(0, mostPolicies).map(({ policyId, of, because, fewest, userIds }) => ({
    policyId,
    policyName: organization.policies.get(policyId)?.policyName ?? '',
    ...(of === undefined ? {} : { of }),
    ...(because ? { clause: clauseOf(because) } : {}),
    ...(fewest ? { approvalsMissing: fewest } : {}),
    approverIds: userIds.slice(0, mostNamed),
  }));
  const nameOf = (userId: string): string => quoted(organization.users.get(userId)?.userName ?? userId);
  const ways = named.map(({ policyName, clause, of, approvalsMissing }, index) => {
    const whose = oneOf(policies[index]!.userIds.map(nameOf));
    const rule = clause ? `: ${clause.text}` : '';
    return (
      `${approvals(approvalsMissing)}${whose && ` from ${whose}`} (policy ${quoted(policyName)}${rule})` +
      (of === undefined ? '' : `, for ${of}`)
    );
  });
  const member = memberId === undefined ? [] : [`the approval of ${nameOf(memberId)}, who is affected`];
  const quorum =
    rootQuorum && rootQuorum.fewest > 0
      ? [`${approvals(rootQuorum.fewest)} from the root quorum (${oneOf(rootQuorum.userIds.map(nameOf))})`]
      : [];
  const either = [...(ways.length > 0 ? ways : member), ...quorum].join('; or ');
  const besides = ways.length > 0 && member.length > 0 ? `; and, unless the root quorum approves, ${member[0]}` : '';
  return {
    text: either === '' ? 'Waiting for votes.' : `Waiting for ${either}${besides}.`,
    policies: named,
    ...(rootQuorum
      ? {
          rootQuorum: {
            approvalsMissing: Math.max(0, rootQuorum.fewest),
            approverIds: rootQuorum.userIds.slice(0, mostNamed),
          },
        }
      : {}),
    ...(memberId === undefined ? {} : { memberId }),
  };
}

function approvals(count: number | undefined): string {
  if (count === undefined) return 'more approvals';
  return count === 1 ? '1 more approval' : `${count} more approvals`;
}

function oneOf(names: readonly string[]): string {
  const shown = names.length > mostInSentence ? names.slice(0, mostInSentence - 1) : names;
  const rest = names.length - shown.length;
  const all = rest > 0 ? [...shown, `${rest} others`] : shown;
  return all.length < 2 ? (all[0] ?? '') : `${all.slice(0, -1).join(', ')} or ${all.at(-1)}`;
}

/** A name that somebody chose: on one line, of bounded length, and told apart from our words. */
function quoted(name: string): string {
  const line = name
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029"]+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
  return `"${line.length > 60 ? `${line.slice(0, 60).replace(/[\ud800-\udbff]$/, '')}…` : line}"`;
}
