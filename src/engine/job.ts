import type { ToReadAhead } from '../activities/define-activity.js';
import type { FoundOut, Prepared } from '../decide/basis.js';
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
import type { DenialLog } from './denials.js';
import type { VerifiedPasskey } from '../decide/caller.js';
import type { SubmitRequest } from './requests.js';

/** Which activity a request was about, and what became of it. */
export interface DriveAnswer {
  readonly organizationId: string;
  readonly activityId: string;
  readonly callerUserId: string;
  /** The activity as the events just recorded leave it; undefined for a finished one that was known before. */
  readonly record: ActivityRecord<User | undefined> | undefined;
  /** The organization as it is decided on from here on; rights in the answer are told from it. */
  readonly organization: OrganizationView;
  /** Position that a reader must have passed to see what is answered. */
  readonly position: bigint;
  /** The meter of the request: the rights in its answer are told with the rest. */
  readonly meter: Meter;
  /** This very request was recorded as the submission, with what `prepare` gave. */
  readonly appended?: { readonly prepared: unknown };
}

/** It is allowed, and `prepare` runs before it can be decided; for whom it was submitted. */
export interface PrepareFirst {
  readonly submitterId: string;
  /** What it prepares leaves traces outside, so it must have been allowed at the newest revision. */
  readonly leavesTraces: boolean;
}

/** Something takes long to read, and is to be read before it can be decided. */
export interface ReadingFirst {
  readonly ahead: ToReadAhead;
}

/** A decision that has begun: on one state of the organization and of its parent, at one time. */
interface Begun {
  /** Hashes of the last events of both. */
  readonly heads: string;
  readonly now: number;
  readonly steps: Steps;
  readonly clauses: ClausesRead;
  readonly found: FoundOut;
}

/** How far a request has come, however often it is sent away to be read or prepared. */
export interface Course {
  readonly meter: Meter;
  begun?: Begun;
}

export interface Job {
  readonly request: SubmitRequest;
  readonly course: Course;
  readonly passkey: VerifiedPasskey | undefined;
  /** What `prepare` gave, once it has run; kept over retries so that the world is touched once. */
  readonly prepared: Prepared;
  /** The run that gave it. */
  readonly attempt: Attempt | undefined;
  /** Who asked, once that is known. */
  callerUserId: string;
  readonly resolve: (outcome: DriveAnswer | PrepareFirst | ReadingFirst) => void;
  readonly reject: (error: unknown) => void;
}

/** What one job adds to the batch, before anything is recorded. */
export interface Decided {
  readonly job: Job;
  readonly answer: Omit<DriveAnswer, 'position'>;
  /** Empty when the request was known before. */
  readonly added: readonly OrganizationEvent[];
  /** It was recorded as failed, and the caller is told why. */
  readonly refusal?: CoordinatorError | undefined;
  readonly afterwards?: ((ports: PreparePorts) => void) | undefined;
}

export interface DriverPorts {
  readonly store: EventStore;
  readonly loader: OrganizationLoader;
  readonly registry: Registry;
  readonly known: KnownActivities;
  readonly denials: DenialLog;
  readonly counters: PasskeyCounters;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly proofs: ProofSigner;
  /** Where passkeys may be used unless an organization or its parent says so; empty is the rule of `stamps/webauthn.ts`. */
  readonly passkeyOrigins: readonly string[];
  /** The world for one run of `prepare`: what it seals there is destroyed unless what is recorded names it. */
  readonly prepare: (attempt: Attempt) => PreparePorts;
  readonly children: Pick<Children, 'found'>;
  /** Destroys the secrets of a vault; reports a failure by itself, as what was decided stands. */
  readonly shred: (vaultId: string) => Promise<void>;
  /** Told of an activity that has begun to wait, and of who may approve it. Takes no time, and reports a failure by itself. */
  readonly votesWanted?: (
    open: OpenActivity,
    organization: OrganizationView,
    approvers: readonly User[],
    wouldSign: readonly DecodedFact[],
  ) => void;
  /** Without it everything is read where it is needed. */
  readonly reading?: ReadingPort;
  /** Limits that the operator has set; without it the usual ones hold. */
  readonly limits?: LimitsOfOperator;
  readonly metrics: DriverMetrics;
  /** How long a request that other writers get ahead of is decided again, in milliseconds; 5 000 unless told. */
  readonly patienceMs?: number;
}
