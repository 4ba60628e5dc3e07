import type { LimitsToCheck, ToReadAhead } from '../activities/define-activity.js';
import type { ActivitySnapshot } from '../domain/activity/machine.js';
import type { PreparePorts } from '../ports/prepare.js';
import { decisionSteps, Steps } from '../domain/steps.js';
import { ClausesRead } from '../domain/policy/language.js';
import type { CoordinatorError } from '../domain/errors.js';
import type { Found } from '../domain/organization/claims.js';
import { limitsInForce, type LimitsOfDecision } from '../domain/organization/limits.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { Authorization } from '../domain/policy/authorize.js';
import type { Approval, AuthorizationRequest, PolicyCredential } from '../domain/policy/types.js';
import type { Registry } from './registry.js';

/**
 * What decisions are based on. Everything in this folder is a function of its arguments: the organization at a
 * revision, the recorded time, the request, and the output of `prepare`. Live requests and replay use the same entry
 * points, so they cannot differ.
 */

export interface DecisionContext {
  readonly registry: Registry;
  readonly organization: OrganizationView;
  /** Last revision of the organization's stream that `organization` has seen. */
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Budget of the decision; by default, all of it. */
  readonly steps?: Steps | undefined;
  /** Clauses of the organization's policies, parsed once for a page of activities. */
  readonly clauses?: ClausesRead | undefined;
  /**
   * What may be read here; for anything that takes long, `ReadFirst` is thrown. If absent, everything is read in place.
   */
  readonly reading?: Steps | undefined;
  /** Earlier findings about the request, on the same meter, state and time. */
  readonly found?: FoundOut | undefined;
  /** Limits set by the operator or a parent, as the decision records them. */
  readonly limits?: LimitsOfDecision | undefined;
}

/** A basis with the budget of one decision. */
export type MeteredContext = DecisionContext & { readonly steps: Steps; readonly clauses: ClausesRead };

/**
 * A waiting activity under today's users, policies and quorum: its machine, who has approved, and what policies decide
 * on.
 */
export interface Waiting {
  readonly snapshot: ActivitySnapshot;
  readonly approvals: readonly Approval[];
  readonly question: AuthorizationRequest;
  /** The member of the root quorum whose credentials or contacts it would change. */
  readonly member: string | undefined;
}

/**
 * Findings about a request, kept while it is away to be read or prepared, so that a decision on the same state
 * continues where it stopped.
 */
export interface FoundOut {
  couldBeAllowed?: boolean;
  waiting?: Waiting;
  authorization?: Authorization;
}

/**
 * Thrown if a decision needs something that takes long to read; the decision is made again once that was read
 * elsewhere.
 */
export class ReadFirst extends Error {
  constructor(readonly ahead: ToReadAhead) {
    super('something is to be read first');
  }
}

/** Who submits, and with which credential. */
export interface Voter {
  readonly userId: string;
  readonly credential: PolicyCredential;
  /** The parent, if it acts for its sub-organization: then its users and policies decide (docs/protocol.md, who may stamp what). */
  readonly authority?: { readonly organization: OrganizationView; readonly revision: number } | undefined;
}

/** A submit as history keeps it, with its assigned id. */
export interface Submission {
  readonly activityId: string;
  readonly type: string;
  /** The newest version's intent. */
  readonly intent: object;
  /** As submitted. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly fingerprint: string;
  readonly timestampMs: string;
  readonly generateAppProofs: boolean | undefined;
  /** Why it is decided in this organization although its body names only the parent. */
  readonly found?: Found | undefined;
}

/** Output of `prepare`, or why it failed; undefined until it has run. */
export type Prepared = { readonly value: unknown } | { readonly refusal: CoordinatorError } | undefined;

export type DecisionResult =
  | {
      readonly kind: 'decided';
      readonly events: readonly OrganizationEvent[];
      readonly outcome: Authorization['outcome'];
      /** Set if it was recorded as failed; the caller gets this error. */
      readonly refusal?: CoordinatorError | undefined;
      /** What is left to do once the events are recorded. */
      readonly afterwards?: ((ports: PreparePorts) => void) | undefined;
    }
  /** It is allowed, and `prepare` has to run before it can be decided. */
  | { readonly kind: 'prepare' };

/** One budget for one decision, which parses each clause once. */
export function metered(context: DecisionContext): MeteredContext {
  if (isMetered(context)) return context;
  const { steps = new Steps(decisionSteps), clauses = clausesOf(context) } = context;
  return { ...context, steps, clauses };
}

function isMetered(context: DecisionContext): context is MeteredContext {
  return context.steps !== undefined && context.clauses !== undefined;
}

/** Parses the clauses of an organization's policies once for several decisions. */
export function clausesOf({ registry, organization }: Pick<DecisionContext, 'registry' | 'organization'>): ClausesRead {
  return new ClausesRead(registry.policyEnvironment, tenantOf(organization));
}

/** A parent and its sub-organizations share one part of the cache. */
export function tenantOf({ organizationId, parentOrganizationId }: OrganizationView): string {
  return parentOrganizationId ?? organizationId;
}

/** The limits of a decision, in the organization and in one that it founds. */
export function limitsToCheck({
  organization: { parentOrganizationId },
  limits: set,
}: Pick<DecisionContext, 'organization' | 'limits'>): LimitsToCheck {
  return {
    limits: limitsInForce(parentOrganizationId !== undefined, set?.organization),
    subOrganizationLimits: limitsInForce(true, set?.subOrganizations),
  };
}
