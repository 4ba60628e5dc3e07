import type { Authorization } from '../policy/authorize.js';
import type { ErrorCode } from '../errors.js';
import type { Found } from '../organization/claims.js';
import type { DomainEvent } from '../organization/event.js';
import type { LimitsOfDecision } from '../organization/limits.js';
import type { OtpType } from '../organization/otps.js';
import type { AppProof } from './app-proof.js';

/** Statuses as the wire names them. CREATED exists for completeness and is never returned. */
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

/** What a token proves about the holder of the key that it is bound to (docs/protocol.md, attested stamps). */
export type Attestation =
  | {
      readonly kind: 'contact';
      readonly tokenId: string;
      readonly verificationType: OtpType;
      readonly contact: string;
      /** The organization that issued the verification token. */
      readonly organizationId: string;
      /** Its own members requested the code, so the token is also valid for the issuer itself. */
      readonly logsInToIssuer?: true;
      /** Milliseconds since the epoch. */
      readonly expiresAt: number;
    }
  | { readonly kind: 'identity'; readonly issuer: string; readonly audience: string; readonly subject: string };

/**
 * One user's vote on an activity, with everything needed to verify it again from the event alone: what was signed, with
 * which key, and the signature. The submitter's vote is the first.
 */
export interface Vote {
  readonly voteId: string;
  readonly userId: string;
  readonly selection: VoteSelection;
  /** The exact request body that was stamped, as text. */
  readonly message: string;
  /** Fingerprint of that body: a repeated vote is the same vote. */
  readonly fingerprint: string;
  /** Lower-case hex; for a passkey the COSE key, base64url. */
  readonly publicKey: string;
  /** Hex as stamped; for a passkey base64url. */
  readonly signature: string;
  readonly scheme: string;
  /** Our id of the API key or authenticator that stamped; for an attested stamp, of the identity or the token. */
  readonly credentialId: string;
  /** Whose vote it is if the key itself belongs to no user. */
  readonly attestation?: Attestation | undefined;
  /** What a passkey signs in addition to the challenge; absent for API keys. */
  readonly webauthn?:
    | {
        readonly credentialId: string;
        readonly authenticatorData: string;
        readonly clientDataJson: string;
        readonly signCount: number;
      }
    | undefined;
}

/** A vote and when it was recorded (milliseconds since the epoch). */
export type RecordedVote = Vote & { readonly at: number };

/**
 * Why an activity continued, or did not: the outcome of each policy that could apply, on the state at `revision`,
 * including the vote just cast.
 */
export interface Decision {
  readonly voteId: string;
  readonly outcome: Authorization['outcome'];
  readonly decidedBy: Authorization['by'];
  readonly evaluations: Authorization['evaluations'];
  /**
   * All policies of the organization that decided, if some have no outcome in `evaluations`: their conditions demand another
   * activity, so they do not apply (`OUTCOME_DENY_IMPLICIT`). `digest` is SHA-256, hex, as in docs/adr/0010.
   */
  readonly policySet?: { readonly count: number; readonly digest: string } | undefined;
  /** Last revision of the organization's stream that the decision is based on. */
  readonly revision: number;
  /** The number of the rules that applied. */
  readonly rules: number;
  /** Limits that the operator or the organization's parent had set to other than the usual values. */
  readonly limits?: LimitsOfDecision | undefined;
  /** Whose users and policies allowed it, if not the organization's own: its parent's. */
  readonly authority?: { readonly organizationId: string; readonly revision: number } | undefined;
  /** Why it was decided here, for a submit that names only the parent (docs/adr/0016). */
  readonly resolution?: Found | undefined;
}

/** Why an activity failed after it was allowed. */
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
  | DomainEvent<'ActivityRejected', { activityId: string; status: ActivityStatus; vote: Vote; rules: number }>
  | DomainEvent<
      'ActivityCompleted',
      { activityId: string; status: ActivityStatus; result: Readonly<Record<string, unknown>> }
    >
  | DomainEvent<'ActivityFailed', { activityId: string; status: ActivityStatus; failure: Failure }>
  /** It has ended, and requested app proofs; `publicKey` is that of the boot that signed them. */
  | DomainEvent<
      'AppProofsIssued',
      { activityId: string; publicKey: string; proofs: readonly Pick<AppProof, 'proofPayload' | 'signature'>[] }
    >;

const activityEventTypes: Readonly<Record<ActivityEvent['type'], true>> = {
  ActivitySubmitted: true,
  ActivityApproved: true,
  ActivityRejected: true,
  ActivityCompleted: true,
  ActivityFailed: true,
  AppProofsIssued: true,
};

/** Whether an event says what becomes of an activity, and nothing of what the activity does. */
export function isActivityEvent(event: { readonly type: string }): event is ActivityEvent {
  return Object.hasOwn(activityEventTypes, event.type);
}

/** How long an approval counts; the activity itself stays open (docs/protocol.md, statuses). */
const approvalLifeMs = 24 * 60 * 60 * 1000;

/** The approvals of an open activity that are recent enough to count and were not taken back, oldest first. */
export function liveApprovals(votes: readonly RecordedVote[], now: number): readonly RecordedVote[] {
  const rejectedAt = new Map<string, number>();
  for (const [index, vote] of votes.entries()) if (isRejection(vote)) rejectedAt.set(vote.userId, index);
  return votes.filter(
    (vote, index) =>
      !isRejection(vote) && now - vote.at < approvalLifeMs && (rejectedAt.get(vote.userId) ?? -1) < index,
  );
}

export function isRejection({ selection }: Pick<Vote, 'selection'>): boolean {
  return selection === 'VOTE_SELECTION_REJECTED';
}
