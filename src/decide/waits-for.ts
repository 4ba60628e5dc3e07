import type { OrganizationView } from '../domain/organization/organization.js';
import type { VotesMissing } from '../domain/policy/explain.js';
import { clauseOf } from './refusals.js';

/** Maximum number of users listed for one missing part; the text only counts the rest. */
const mostNamed = 20;
/** Maximum number of users named in a sentence. */
const mostInSentence = 5;
/** Maximum number of policies named. */
const mostPolicies = 10;

interface ApprovalsMissing {
  /** The fewest that would do; absent if finding out takes too long. */
  readonly approvalsMissing?: number;
  /** Users whose approval could count; the first 20. */
  readonly approverIds: readonly string[];
}

/** What a waiting activity waits for, as responses show it: any one of `policies`, or the root quorum, is enough. */
export interface WaitsFor {
  /** Everything in one sentence. */
  readonly text: string;
  readonly policies: readonly (ApprovalsMissing & {
    readonly policyId: string;
    readonly policyName: string;
    readonly clause?: ReturnType<typeof clauseOf>;
    /** The payload that it is missing for, if not for all. */
    readonly payload?: string;
  })[];
  readonly rootQuorum?: ApprovalsMissing;
  /** Policies that deny it today: the root quorum's approval would override them. */
  readonly overrides?: readonly { readonly policyId: string; readonly policyName: string }[];
  /** The root quorum member whose own approval is also needed, unless the quorum approves. */
  readonly memberId?: string;
}

/** Describes the missing votes in words. */
export function waitsForOf(
  { policies, rootQuorum, deniedBy = [] }: VotesMissing,
  memberId: string | undefined,
  organization: OrganizationView,
): WaitsFor {
  const policyNamed = (policyId: string) => ({
    policyId,
    policyName: organization.policies.get(policyId)?.policyName ?? '',
  });
  const overrides = rootQuorum ? deniedBy.slice(0, mostPolicies).map(policyNamed) : [];
  const named = policies.slice(0, mostPolicies).map(({ policyId, payload, because, fewest, userIds }) => ({
    ...policyNamed(policyId),
    ...(payload === undefined ? {} : { payload }),
    ...(because ? { clause: clauseOf(because) } : {}),
    ...(fewest ? { approvalsMissing: fewest } : {}),
    approverIds: userIds.slice(0, mostNamed),
  }));
  const nameOf = (userId: string): string => quoted(organization.users.get(userId)?.userName ?? userId);
  const ways = named.map(({ policyName, clause, payload, approvalsMissing }, index) => {
    const whose = oneOf(policies[index]!.userIds.map(nameOf));
    const rule = clause ? `: ${clause.text}` : '';
    return (
      `${approvals(approvalsMissing)}${whose && ` from ${whose}`} (policy ${quoted(policyName)}${rule})` +
      (payload === undefined ? '' : `, for ${payload}`)
    );
  });
  const member = memberId === undefined ? [] : [`the approval of ${nameOf(memberId)}, who is affected`];
  const quorum =
    rootQuorum && rootQuorum.fewest > 0
      ? [`${approvals(rootQuorum.fewest)} from the root quorum (${oneOf(rootQuorum.userIds.map(nameOf))})`]
      : [];
  const either = [...(ways.length > 0 ? ways : member), ...quorum].join('; or ');
  const over =
    overrides.length > 0
      ? `; this would override ${deniedBy.length === 1 ? 'the denial' : 'the denials'} of ${allOf(
          overrides.map(({ policyName }) => `policy ${quoted(policyName)}`),
          deniedBy.length,
        )}`
      : '';
  const besides = ways.length > 0 && member.length > 0 ? `; and, unless the root quorum approves, ${member[0]}` : '';
  return {
    text: either === '' ? 'Waiting for votes.' : `Waiting for ${either}${besides}${over}.`,
    policies: named,
    ...(rootQuorum
      ? {
          rootQuorum: {
            approvalsMissing: Math.max(0, rootQuorum.fewest),
            approverIds: rootQuorum.userIds.slice(0, mostNamed),
          },
        }
      : {}),
    ...(overrides.length > 0 ? { overrides } : {}),
    ...(memberId === undefined ? {} : { memberId }),
  };
}

function approvals(count: number | undefined): string {
  if (count === undefined) return 'more approvals';
  return count === 1 ? '1 more approval' : `${count} more approvals`;
}

function allOf(names: readonly string[], count: number): string {
  const shown = names.slice(0, mostInSentence);
  const all = count > shown.length ? [...shown, `${count - shown.length} others`] : shown;
  return all.length < 2 ? (all[0] ?? '') : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}

function oneOf(names: readonly string[]): string {
  const shown = names.length > mostInSentence ? names.slice(0, mostInSentence - 1) : names;
  const rest = names.length - shown.length;
  const all = rest > 0 ? [...shown, `${rest} others`] : shown;
  return all.length < 2 ? (all[0] ?? '') : `${all.slice(0, -1).join(', ')} or ${all.at(-1)}`;
}

/** A name that someone chose: on one line, of limited length, and quoted. */
export function quoted(name: string): string {
  const line = name
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029"]+/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim();
  return `"${line.length > 60 ? `${line.slice(0, 60).replace(/[\ud800-\udbff]$/, '')}…` : line}"`;
}
