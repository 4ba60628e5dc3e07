import type { Authorization } from '../policy/authorize.js';
import type { ErrorCode } from '../errors.js';
import type { Found } from '../organization/claims.js';
import type { DomainEvent } from '../organization/event.js';
import type { LimitsOfDecision } from '../organization/limits.js';
import type { OtpType } from '../organization/otps.js';
import type { AppProof } from './app-proof.js';

/** Statuses as the wire names them. CREATED exists for completeness and is never answered. */
export const activityStatuses = [
  'ACTIVITY_STATUS_CREATED',
  'ACTIVITY_STATUS_PENDING',
  'ACTIVITY_STATUS_COMPLETED',
  'ACTIVITY_STATUS_FAILED',
  'ACTIVITY_STATUS_CONSENSUS_NEEDED',
  'ACTIVITY_STATUS_REJECTED',
  'ACTIVITY_STATUS_AUTHENTICATORS_NEEDED',
] as const;

export type ActivityStatus = (typeof activityStatuses)[number];

export type VoteSelection = 'VOTE_SELECTION_APPROVED' | 'VOTE_SELECTION_REJECTED';

/** What a token has proved of whoever stamped with the key that it is bound to (client protocol, section 1.3). */
export type Attestation =
  | {
      readonly kind: 'contact';
      readonly tokenId: string;
      readonly verificationType: OtpType;
      readonly contact: string;
      /** The organization that issued the verification token. */
      readonly organizationId: string;
      /** Its own members have asked for the code, so that the token opens the issuer itself too. */
      readonly logsInToIssuer?: true;
      /** Milliseconds since the epoch. */
      readonly expiresAt: number;
    }
  | { readonly kind: 'identity'; readonly issuer: string; readonly audience: string; readonly subject: string };

/**
 * One user's word on an activity, with everything needed to verify it again from the event alone: what was signed,
 * with which key, and the signature. The submitter's is the first.
 */
export interface Vote {
  readonly voteId: string;
  readonly userId: string;
  readonly selection: VoteSelection;
  /** The exact request body that was stamped, as text. */
  readonly message: string;
  /** Fingerprint of that body: makes a repeated vote the same vote. */
  readonly fingerprint: string;
  /** Lower-case hex; for a passkey the COSE key, base64url. */
  readonly publicKey: string;
  /** Hex as stamped; for a passkey base64url. */
  readonly signature: string;
  readonly scheme: string;
  /** Our id of the API key or authenticator that stamped; of an attested stamp, of the identity or the token. */
  readonly credentialId: string;
  /** Whose word it is when the key itself is nobody's. */
  readonly attestation?: Attestation;
  /** What a passkey signs besides the challenge; absent for API keys. */
  readonly webauthn?: {
    readonly credentialId: string;
    readonly authenticatorData: string;
    readonly clientDataJson: string;
    readonly signCount: number;
  };
}

/** A vote and when it was recorded (milliseconds since the epoch). */
export type RecordedVote = Vote & { readonly at: number };

/** Why an activity went on, or did not: each policy's outcome on the state at `revision`, with the vote just cast. */
export interface Decision {
  readonly voteId: string;
  readonly outcome: Authorization['outcome'];
  readonly by: Authorization['by'];
  readonly policies: Authorization['evaluations'];
  /** Last revision of the organization's stream that the decision has seen. */
  readonly revision: number;
  /** The number of the rules it was made by; absent in history from before rules were numbered. */
  readonly rules?: number;
  /** Limits that the operator or the organization's parent had set to other values than usual. */
  readonly limits?: LimitsOfDecision;
  /** Whose users and policies have allowed it, when it was not the organization's own: its parent's. */
  readonly authority?: { readonly organizationId: string; readonly revision: number };
  /** Why it was decided here, of a submit that names the parent only (docs/adr/0028). */
  readonly found?: Found;
}

/** Why an activity failed after it had been allowed. */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
}

export type ActivityEvent =
  | DomainEvent<
      'ActivitySubmitted',
      {
        activityId: string;
        type: string;
        /** The submitted parameters, without null members. */
        intent: Readonly<Record<string, unknown>>;
        fingerprint: string;
        timestampMs: string;
        generateAppProofs?: boolean;
        status: ActivityStatus;
        vote: Vote;
        decision: Decision;
      }
    >
  | DomainEvent<'ActivityApproved', { activityId: string; status: ActivityStatus; vote: Vote; decision: Decision }>
  | DomainEvent<'ActivityRejected', { activityId: string; status: ActivityStatus; vote: Vote; rules?: number }>
  | DomainEvent<
      'ActivityCompleted',
      { activityId: string; status: ActivityStatus; result: Readonly<Record<string, unknown>> }
    >
  | DomainEvent<'ActivityFailed', { activityId: string; status: ActivityStatus; failure: Failure }>
  /** It has ended, and asked for app proofs; `publicKey` is that of the boot which has signed them. */
  | DomainEvent<
      'ActivityProved',
      { activityId: string; publicKey: string; proofs: readonly Pick<AppProof, 'proofPayload' | 'signature'>[] }
    >;

/** Approvals count for this long after they were given; the activity itself stays open (client protocol 2.2). */
const approvalLifeMs = 24 * 60 * 60 * 1000;

/** The approvals of an open activity that still count by their age, oldest first. */
export function liveApprovals(votes: readonly RecordedVote[], now: number): readonly RecordedVote[] {
  return votes.filter(({ selection, at }) => selection === 'VOTE_SELECTION_APPROVED' && now - at < approvalLifeMs);
}
