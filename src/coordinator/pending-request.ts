import type { ToReadAhead } from '../activities/define-activity.js';
import type { FoundOut, Prepared } from '../decide/decision-context.js';
import type { Registry } from '../decide/registry.js';
import type { ActivityRecord } from '../domain/activity/record.js';
import type { CoordinatorError } from '../domain/errors.js';
import type { LimitsOfOperator } from '../domain/organization/limits.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import type { DecodedFact } from '../domain/policy/decoded/account.js';
import type { ClausesRead } from '../domain/policy/language.js';
import type { Meter, Steps } from '../domain/steps.js';
import type { EventStore } from '../ledger/event-store.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { Clock } from '../ports/clock.js';
import type { DriverMetrics } from '../ports/driver-metrics.js';
import type { KnownActivities } from '../ports/known-activities.js';
import type { PasskeyCounters } from '../ports/passkeys.js';
import type { ProofSigner } from '../ports/proof-signer.js';
import type { Randomness } from '../ports/randomness.js';
import type { ReadingPort } from '../ports/reading.js';
import type { PreparePorts } from '../ports/prepare.js';
import type { Attempt } from './attempts.js';
import type { Children } from './children.js';
import type { Deniable, DenialLog } from './denials.js';
import type { VerifiedPasskey } from '../decide/caller.js';
import type { SubmitRequest } from './read-submit.js';

/** The activity that a request was about, and the outcome. */
export interface SubmitResult {
  readonly organizationId: string;
  readonly activityId: string;
  readonly callerUserId: string;
  /** The activity after the events just recorded; undefined for a finished one that was known before. */
  readonly record: ActivityRecord<User | undefined> | undefined;
  /** The organization as later decisions see it; the rights in the response derive from it. */
  readonly organization: OrganizationView;
  /** Position that a reader must have passed to see this outcome. */
  readonly position: bigint;
  /** The meter of the request, which also pays for the rights in the response. */
  readonly meter: Meter;
  /** This request itself was recorded as the submission, with the output of its `prepare`. */
  readonly appended?: { readonly prepared: unknown } | undefined;
}

/** It is allowed, and `prepare` must run before it can be decided. */
export interface ToPrepare {
  readonly kind: 'prepare';
  readonly submitterId: string;
  /** Preparing has external side effects, so it must have been allowed at the newest revision. */
  readonly hasSideEffects: boolean;
}

/** How a request left a batch, unless it was refused. */
export type Outcome =
  /** It is recorded. */
  | { readonly kind: 'settled'; readonly result: SubmitResult }
  | ToPrepare
  /** Something takes long to read, and must be read before the request can be decided. */
  | { readonly kind: 'read'; readonly ahead: ToReadAhead };

/** A started decision: on one state of the organization and of its parent, at one time. */
interface StartedDecision {
  /** Hashes of the last events of both. */
  readonly heads: string;
  readonly now: number;
  readonly steps: Steps;
  readonly clauses: ClausesRead;
  readonly found: FoundOut;
}

/** The progress of a request, however often it is sent off to be read or prepared. */
export interface Progress {
  readonly meter: Meter;
  decision?: StartedDecision;
  /** The signature counter of its passkey has not grown, and that was reported. */
  isCounterReported?: boolean;
}

/** A request in the queue of its organization. */
export interface PendingRequest {
  readonly request: SubmitRequest;
  readonly progress: Progress;
  readonly passkey: VerifiedPasskey | undefined;
  /** Output of `prepare`, once it has run; kept over retries so that side effects happen once. */
  readonly prepared: Prepared;
  /** The run that produced it. */
  readonly attempt: Attempt | undefined;
  /** Who would be denied, once the caller is known, and on what basis. */
  deniable?: Deniable;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** What one request adds to its batch, before anything is recorded. */
export interface Decided {
  readonly kind: 'decided';
  readonly pending: PendingRequest;
  readonly result: Omit<SubmitResult, 'position'>;
  /** Empty if the request was known before. */
  readonly added: readonly OrganizationEvent[];
  /** It was recorded as failed, and the caller gets this error. */
  readonly refusal?: CoordinatorError | undefined;
  readonly afterwards?: ((ports: PreparePorts) => void) | undefined;
}

export interface CoordinatorPorts {
  readonly store: EventStore;
  readonly loader: OrganizationLoader;
  readonly registry: Registry;
  readonly known: KnownActivities;
  readonly denials: DenialLog;
  readonly counters: PasskeyCounters;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly proofs: ProofSigner;
  /**
   * Origins where passkeys may be used, unless an organization or its parent names some; if empty, the rule in
   * `stamps/webauthn.ts` applies.
   */
  readonly passkeyOrigins: readonly string[];
  /** The ports for one run of `prepare`: what it seals is destroyed unless something recorded names it. */
  readonly prepare: (attempt: Attempt) => PreparePorts;
  readonly children: Pick<Children, 'found'>;
  /** Destroys the secrets of a vault; it reports failures itself, because the decision stands. */
  readonly shred: (vaultId: string) => Promise<void>;
  /**
   * Called for an activity that has started waiting, with those who may approve it. Must return at once, and reports
   * failures itself.
   */
  readonly votesWanted?: (
    open: OpenActivity,
    organization: OrganizationView,
    approvers: readonly User[],
    wouldSign: readonly DecodedFact[],
  ) => void;
  /** If absent, everything is read in place. */
  readonly reading?: ReadingPort;
  /** Limits set by the operator; the usual ones if absent. */
  readonly limits?: LimitsOfOperator;
  readonly metrics: DriverMetrics;
  /** Every request is refused, and nothing is recorded. */
  readonly isReadOnly?: boolean;
  /** How long a request is decided again once another writer got ahead, in milliseconds; 5 000 by default. */
  readonly patienceMs?: number;
}
