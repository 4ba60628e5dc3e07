import type { LimitsToCheck, ToReadAhead } from '../activities/define-activity.js';
import type { ActivitySnapshot } from '../domain/activity/machine.js';
import type { PreparePorts } from '../ports/prepare.js';
import { rulesNumber } from '../domain/activity/rules.js';
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
 * What decisions are made on. Everything in this room is a function of what it is given: the organization at a revision,
 * the recorded time, the request, and what `prepare` gave. Live requests and replay go through the same door, so they
 * cannot differ.
 */

export interface Basis {
  readonly registry: Registry;
  readonly organization: OrganizationView;
  /** Last revision of the organization's stream that `organization` has seen. */
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** What the decision may take; all that one may by its rules unless told. */
  readonly steps?: Steps;
  /** Clauses of the organization's policies that were read for the same page. */
  readonly clauses?: ClausesRead;
  /** Number of the rules that decide; today's unless history is decided again. */
  readonly rules?: number;
  /** What may be read here; for what takes more, `ReadFirst` is thrown. Without it everything is read where it is needed. */
  readonly reading?: Steps;
  /** What was found out about the request before, with the same steps, on the same state and at the same time. */
  readonly found?: FoundOut;
  /** Limits that the operator or a parent have set, as the decision records them. */
  readonly limits?: LimitsOfDecision;
}

/** An activity that waits, under today's users, policies and quorum: its machine, who has approved, what policies are asked. */
export interface Waiting {
  readonly snapshot: ActivitySnapshot;
  readonly approvals: readonly Approval[];
  readonly question: AuthorizationRequest;
  /** The member of the root quorum whose credentials or contacts it would change. */
  readonly member: string | undefined;
}

/**
 * What was found out about a request, kept while it is away to be read or prepared: a decision on the same state goes on
 * where it was.
 */
export interface FoundOut {
  couldBeAllowed?: boolean;
  waiting?: Waiting;
  authorization?: Authorization;
}

/** Thrown where a decision needs what takes long to read, and is to be made again once that was read elsewhere. */
export class ReadFirst extends Error {
  constructor(readonly ahead: ToReadAhead) {
    super('something is to be read first');
  }
}

/** Who asks, and with what. */
export interface Voter {
  readonly userId: string;
  readonly credential: PolicyCredential;
  /** The parent, when it acts for its sub-organization: its users and policies decide (client protocol 1.4). */
  readonly authority?: { readonly organization: OrganizationView; readonly revision: number };
}

/** A submit as history keeps it, with the id that it is given. */
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
  /** Why it is decided in this organization, when its body names the parent only. */
  readonly found?: Found | undefined;
}

/** What `prepare` gave, or why it could not; undefined as long as it has not run. */
export type Prepared = { readonly value: unknown } | { readonly refusal: CoordinatorError } | undefined;

/** `prepare-first`: it is allowed, and needs something from the world before it can be decided. */
export type DecisionResult =
  | {
      readonly events: readonly OrganizationEvent[];
      readonly outcome: Authorization['outcome'];
      /** It was recorded as failed, and the caller is told so. */
      readonly refusal?: CoordinatorError;
      /** What is left to do once the events are recorded. */
      readonly afterwards?: (ports: PreparePorts) => void;
    }
  | 'prepare-first';

/** One budget for one decision, and each clause read once for it. */
export function metered(basis: Basis): Basis & Required<Pick<Basis, 'steps' | 'clauses'>> {
  const { steps = new Steps(decisionSteps(basis.rules ?? rulesNumber)), clauses = clausesOf(basis) } = basis;
  return { ...basis, steps, clauses };
}

/** Where the clauses of an organization's policies are read once for several decisions. */
export function clausesOf({ registry, organization }: Pick<Basis, 'registry' | 'organization'>): ClausesRead {
  return new ClausesRead(registry.policyEnvironment, tenantOf(organization));
}

/** A parent and its sub-organizations have a share of what is kept in memory together. */
export function tenantOf({ organizationId, parentOrganizationId }: OrganizationView): string {
  return parentOrganizationId ?? organizationId;
}

/** The limits that a decision holds to, in the organization and where that founds another. */
export function limitsToCheck({
  organization: { parentOrganizationId },
  limits: set,
  rules,
}: Pick<Basis, 'organization' | 'limits' | 'rules'>): LimitsToCheck {
  return {
    limits: limitsInForce(parentOrganizationId !== undefined, set?.organization, rules),
    subOrganizationLimits: limitsInForce(true, set?.subOrganizations, rules),
  };
}
