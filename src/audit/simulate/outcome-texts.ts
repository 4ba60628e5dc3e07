import { isDeepStrictEqual } from 'node:util';
import { PolicyDenial } from '../../decide/refusals.js';
import type { DenialEvent } from '../../domain/activity/denial.js';
import type { Decision } from '../../domain/activity/events.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import type { Came } from './branch.js';
import { quoted } from '../timeline/compare-states.js';
import { withRecordedMessage } from '../verify/recorded-messages.js';

/** Who asked for what, and where that is recorded. */
export interface Requested {
  readonly revision: number;
  readonly at: number;
  readonly activityId: string;
  readonly activityType: string;
  readonly userId: string;
  readonly denial?: DenialEvent['data'];
}

/** A request with another outcome than recorded. */
export interface Differing {
  /** Where it was decided; for a denial, its revision in the stream of denials. */
  readonly revision: number;
  readonly isDenial: boolean;
  /** RFC 3339. */
  readonly at: string;
  readonly activityId: string;
  readonly activityType: string;
  readonly userId: string;
  readonly userName: string | undefined;
  readonly was: string;
  readonly is: string;
  /** Policies with another outcome. */
  readonly because: readonly string[];
}

/** Compares the record with the outcome on a branch, before either is applied. @param recorded undefined for a denial */
export function differing(requested: Requested, recorded: Came | undefined, came: Came, states: States): Differing {
  const { revision, denial, at, activityId, activityType, userId } = requested;
  const [original, branch] = states;
  return {
    revision,
    isDenial: denial !== undefined,
    at: new Date(at).toISOString(),
    activityId,
    activityType,
    userId,
    userName: (original.users.get(userId) ?? branch.users.get(userId))?.userName,
    was: recorded ? said(recorded) : `denied: ${denial?.reason ?? ''}`,
    is: said(came),
    because: whyOtherwise(requested, recorded, came, states),
  };
}

/** The policies with another outcome than recorded, in words. */
export function whyOtherwise(
  requested: Requested,
  recorded: Came | undefined,
  came: Came,
  states: States,
): readonly string[] {
  return reasons(evaluationsOf(requested, recorded), evaluationsIn(came), states);
}

export type States = readonly [original: OrganizationView, branch: OrganizationView];

/** The outcome of a request, in words. */
export function said(came: Came): string {
  if (came.kind === 'unknown') return `cannot be judged: ${came.why}`;
  if (came.kind === 'refused') {
    const { code, message, details } = came.error;
    const [detail] = came.error instanceof PolicyDenial ? details : [];
    return code === 'PERMISSION_DENIED'
      ? `denied: ${detail && 'message' in detail ? (detail.message as string) : message}`
      : `refused: ${code}: ${message}`;
  }
  const [first] = came.events;
  const end = came.events.at(-1);
  if (end?.type === 'ActivityCompleted') return 'done';
  if (end?.type === 'ActivityFailed') return `failed: ${end.data.failure.code}: ${end.data.failure.message}`;
  if (first?.type === 'ActivityRejected') return 'rejected';
  return first?.type === 'ActivityApproved' ? 'approved; more votes are needed' : 'waits for votes';
}

/** Whether a request came out as recorded: which policies were asked, and what they said, is no difference. */
export function isSame(recorded: Came, came: Came): boolean {
  if (recorded.kind !== 'decided' || came.kind !== 'decided') return false;
  return isDeepStrictEqual(
    recorded.events.map(withoutReasons),
    withRecordedMessage(came.events, recorded.events).map(withoutReasons),
  );
}

/** Every decision also names policies that had nothing to do with it. */
function withoutReasons(event: OrganizationEvent): object {
  if (!('decision' in event.data)) return event;
  const { evaluations: _policies, policySet: _policySet, decidedBy: _by, ...decision } = event.data.decision;
  return { type: event.type, data: { ...event.data, decision } };
}

/** Outcomes of policies, and whose word decided. */
type Evaluations = Pick<Decision, 'evaluations'> & { readonly decidedBy?: Decision['decidedBy'] };

/** What a decision was made of. */
function evaluationsIn(came: Came): Evaluations {
  if (came.kind === 'refused')
    return came.error instanceof PolicyDenial ? told(came.error.recordedDetails) : { evaluations: [] };
  const [first] = came.events;
  return first && 'decision' in first.data ? first.data.decision : { evaluations: [] };
}

/** What the recorded decision was made of. */
function evaluationsOf({ denial }: Requested, recorded: Came | undefined): Evaluations {
  return recorded ? evaluationsIn(recorded) : told(denial?.details ?? []);
}

function told(details: DenialEvent['data']['details']): Evaluations {
  const [detail] = details as readonly { readonly policyEvaluations?: Decision['evaluations'] }[];
  return { evaluations: detail?.policyEvaluations ?? [] };
}

/** The policies with another outcome than recorded, in words. */
function reasons(was: Evaluations, is: Evaluations, [original, branch]: States): string[] {
  const [before, after] = [was, is].map(
    ({ evaluations }) => new Map(evaluations.map((one) => [one.policyId, one.outcome])),
  ) as [Map<string, string>, Map<string, string>];
  const silent = 'OUTCOME_DENY_IMPLICIT';
  // The root quorum stands above policies, which are not evaluated then.
  const texts =
    was.decidedBy !== is.decidedBy && was.decidedBy && is.decidedBy
      ? [`decided by ${was.decidedBy} → ${is.decidedBy}`]
      : [];
  for (const policyId of new Set([...before.keys(), ...after.keys()])) {
    const [one, other] = [before.get(policyId), after.get(policyId)];
    if (one === other || ((one ?? silent) === silent && (other ?? silent) === silent)) continue;
    const name = (branch.policies.get(policyId) ?? original.policies.get(policyId))?.policyName;
    const word = (outcome: string | undefined, state: OrganizationView) =>
      outcome ?? (state.policies.has(policyId) ? 'was not asked' : 'not there');
    texts.push(
      `policy ${name === undefined ? `\`${policyId}\`` : quoted(name)} ${word(one, original)} → ${word(other, branch)}`,
    );
  }
  return texts;
}
