import { CoordinatorError, type ErrorDetail } from '../domain/errors.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { Authorization } from '../domain/policy/authorize.js';
import type { Evaluation } from '../domain/policy/part-evaluation.js';
import type { DecidingPart } from '../domain/policy/deciding-part.js';

/** What a denial discloses about policies, and to whom. */
interface Explanation {
  readonly policies: Iterable<{ readonly policyId: string; readonly policyName: string }>;
  /** For each evaluation, the part of the policy's text that decided it. */
  readonly because: readonly (DecidingPart | undefined)[];
  /** Whether the caller could read the policies by a query. */
  readonly isForCaller: boolean;
  /** Whether the members of the organization that records it could. */
  readonly isForMembers: boolean;
}

/** A denial by policies (docs/protocol.md, error bodies). The recorded denial may say more or less than the response. */
export class PolicyDenial extends CoordinatorError {
  /** As the organization's members see it. */
  readonly recordedDetails: readonly ErrorDetail[];
  /** As the caller sees it: why, and the outcome of each policy. */
  readonly told: { readonly message: string; readonly policyEvaluations: readonly ExplainedOutcome[] };

  constructor({ outcome, evaluations }: Authorization, explanation: Explanation) {
    const { policies, because, isForCaller, isForMembers } = explanation;
    const explained = explainedOutcomes(evaluations, because, policies);
    const denying = evaluations.filter((one) => one.outcome === 'OUTCOME_DENY_EXPLICIT');
    const message =
      outcome === 'deny-explicit'
        ? `The following policies denied this action: ${denying.map(({ policyId }) => policyId).join(', ')}`
        : 'No policies evaluated to outcome: Allow';
    const toldTo = (mayRead: boolean) => ({
      message,
      policyEvaluations: mayRead
        ? explained
        : evaluations.map(({ policyId, outcome: said }) => ({ policyId, outcome: said })),
    });
    const detailFor = (mayRead: boolean): ErrorDetail => ({
      '@type': 'type.googleapis.com/errors.v1.PolicyEnginePermissionError',
      ...toldTo(mayRead),
    });
    super(
      'PERMISSION_DENIED',
      "You don't have sufficient permissions to take this action. Please add a policy granting this user permissions.",
      { category: 'REQUEST_NOT_AUTHORIZED', details: [detailFor(isForCaller)] },
    );
    this.recordedDetails = [detailFor(isForMembers)];
    this.told = toldTo(isForCaller);
  }

  /** The same for the caller, with the id by which it can be explained. */
  recordedAs(denialId: string): CoordinatorError {
    const { code, message } = this;
    const details = this.details.map((detail) => ({ ...detail, denialId }));
    return new CoordinatorError(code, message, { category: 'REQUEST_NOT_AUTHORIZED', details });
  }
}

/** A policy's outcome as responses explain it: with its name, and the part of its text that decided. */
export interface ExplainedOutcome extends Evaluation {
  readonly policyName?: string;
  readonly clause?: ReturnType<typeof clauseOf>;
}

/** @param because for each outcome, the part of the policy's text that decided it */
export function explainedOutcomes(
  evaluations: readonly Evaluation[],
  because: readonly (DecidingPart | undefined)[],
  policies: Explanation['policies'],
): readonly ExplainedOutcome[] {
  const names = new Map(Array.from(policies, ({ policyId, policyName }) => [policyId, policyName]));
  return evaluations.map(({ policyId, ...said }, index) => {
    const [policyName, clause] = [names.get(policyId), because[index]];
    return {
      policyId,
      ...(policyName === undefined ? {} : { policyName }),
      ...said,
      ...(clause ? { clause: clauseOf(clause) } : {}),
    };
  });
}

/** The part of a policy's text that decided, as responses show it. */
export function clauseOf({ clause, text, outcome }: DecidingPart) {
  return { name: clause, text, outcome };
}

export function noSuchActivity(fingerprint: string): CoordinatorError {
  return new CoordinatorError(
    'NOT_FOUND',
    `no activity found with fingerprint \`${fingerprint}\`: consensus activities must target an existing activity by fingerprint`,
  );
}

export function notWaiting(activityId: string): CoordinatorError {
  return new CoordinatorError(
    'FAILED_PRECONDITION',
    `activity \`${activityId}\` is not waiting for votes: it is finished; read it with get_activity`,
  );
}

/** The same bytes again, for an activity whose result was returned to the first sender only. */
export function toldOnce(type: string, activityId: string): CoordinatorError {
  return new CoordinatorError(
    'FAILED_PRECONDITION',
    `activity \`${activityId}\` is complete, and its result was returned only once, in the first response to these bytes, because anybody who ` +
      `holds it could use it: start again with a new ${type}`,
  );
}

export function voteRefused(
  { activityId }: OpenActivity,
  type: 'approve' | 'reject',
  isRepeated: boolean,
  userId: string,
): CoordinatorError {
  if (isRepeated) {
    const done = type === 'approve' ? 'approved' : 'rejected';
    return new CoordinatorError(
      'FAILED_PRECONDITION',
      `user \`${userId}\` has already ${done} activity \`${activityId}\``,
    );
  }
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `user \`${userId}\` may not ${type} activity \`${activityId}\`: the vote could not count towards any policy's consensus or the root quorum`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

export function organizationMismatch(targeted: string, own: string): CoordinatorError {
  return new CoordinatorError(
    'INVALID_ARGUMENT',
    `organization mismatch: request is targeting organization ("${targeted}"), but voters are in organization ("${own}"); ` +
      'stamp it with a credential of the targeted organization, or name your own',
    { category: 'ORGANIZATION_MISMATCH' },
  );
}

/** A deleted sub-organization: its parent may still read its history. */
export function organizationDeleted(organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'NOT_FOUND',
    `organization \`${organizationId}\` has been deleted: nobody can act or read in it any more; its parent organization can still ` +
      'read its records',
    { category: 'ORGANIZATION_NOT_FOUND' },
  );
}

/** A public sign-up in which nothing was proved in time counts as if it had never happened. */
export function signUpLapsed(organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'NOT_FOUND',
    `organization \`${organizationId}\` has lapsed: none of its keys, codes or tokens was used within an hour of ` +
      'sign-up; sign up again',
    { category: 'ORGANIZATION_NOT_FOUND' },
  );
}

/** The user of an auth proxy can log nobody in to its own organization. */
export function proxyLogin(type: string, organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `the auth proxy cannot log anybody in to \`${organizationId}\` itself: ${type} must name one of its sub-organizations`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

/** Only the parent's members may decide this about a sub-organization, and not the key through which strangers act. */
export function membersOfParentOnly(type: string, parentOrganizationId: string | undefined): CoordinatorError {
  const whose =
    parentOrganizationId === undefined ? 'a parent organization' : `organization \`${parentOrganizationId}\``;
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `${type} can be submitted only in a sub-organization, by members of its parent: here only by those of ${whose}, and not through ` +
      'its auth proxy',
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

export function apiKeyOnly(type: string): CoordinatorError {
  return new CoordinatorError(
    'UNAUTHENTICATED',
    `${type} accepts only an API key stamp (X-Stamp): a passkey cannot submit it`,
    { category: 'SIGNATURE_MISSING' },
  );
}

export function attestedElsewhere(what: string): CoordinatorError {
  return new CoordinatorError(
    'UNAUTHENTICATED',
    `${what} does not accept X-Stamp-Attested: log in with stamp_login, then stamp with the key of the session (X-Stamp)`,
    { category: 'SIGNATURE_INVALID' },
  );
}

/** A stamp or token that matches several sub-organizations, or several users. */
export function credentialConflict(what: string): CoordinatorError {
  return new CoordinatorError('UNAUTHENTICATED', `${what}: name the sub-organization itself as organizationId`, {
    category: 'CREDENTIAL_CONFLICT',
  });
}

/** The events of one request would exceed the published size. */
export function tooMuchToRecord(bytes: number, limit: number): CoordinatorError {
  return new CoordinatorError(
    'OUT_OF_RANGE',
    `too large, nothing was recorded: the body, the objects it creates and its proofs would take ${bytes} bytes, but one ` +
      `activity may take at most ${limit}; create fewer objects at once`,
    { category: 'REQUEST_INVALID' },
  );
}
