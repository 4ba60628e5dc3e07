import { appProofScheme, type AppProof } from './app-proof.js';
import type { ActivityEvent, ActivityStatus, Decision, Failure, RecordedVote, Vote } from './events.js';

/** Everything that history says about one activity. `Voter` is how the holder knows the user who voted. */
export interface ActivityRecord<Voter> {
  readonly activityId: string;
  readonly organizationId: string;
  readonly type: string;
  readonly status: ActivityStatus;
  readonly intent: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>> | undefined;
  readonly failure?: Failure | undefined;
  /** It requested proofs; they exist once it has ended. */
  readonly generateAppProofs?: true | undefined;
  readonly appProofs?: readonly AppProof[] | undefined;
  readonly fingerprint: string;
  readonly timestampMs: string;
  /** The submitter's vote comes first. */
  readonly votes: readonly (RecordedVote & { readonly voter: Voter })[];
  readonly decisions: readonly (Decision & { readonly at: number })[];
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A record whose intent is still in the body that its first vote signed. */
export type RecordWithoutIntent<Voter> = Omit<ActivityRecord<Voter>, 'intent'>;

/** What the holder adds to an event: its organization, its recorded time, and how it knows a voter. */
export interface Recording<Voter> {
  readonly organizationId: string;
  readonly at: number;
  readonly voter: (vote: Vote) => Voter;
}

/** The record after another of its events. One function for the folded state, the response and the read model. */
export function evolveRecord<Voter>(
  record: ActivityRecord<Voter> | undefined,
  event: ActivityEvent,
  recording: Recording<Voter>,
): ActivityRecord<Voter> {
  const intent = event.type === 'ActivitySubmitted' ? event.data.intent : record!.intent;
  return withIntent(evolveWithoutIntent(record, event, recording), intent);
}

/** The same without reading the intent, which parses the signed body. */
export function evolveWithoutIntent<Voter>(
  record: RecordWithoutIntent<Voter> | undefined,
  { type, data }: ActivityEvent,
  recording: Recording<Voter>,
): RecordWithoutIntent<Voter> {
  const { organizationId, at } = recording;
  if (type === 'ActivitySubmitted') {
    return {
      activityId: data.activityId,
      organizationId,
      type: data.type,
      status: data.status,
      result: undefined,
      failure: undefined,
      generateAppProofs: data.generateAppProofs || undefined,
      appProofs: undefined,
      fingerprint: data.fingerprint,
      timestampMs: data.timestampMs,
      votes: [recordedVote(data.vote, recording)],
      decisions: [recordedDecision(data.decision, at)],
      createdAt: at,
      updatedAt: at,
    };
  }
  if (!record) throw new Error(`\`${type}\` of activity \`${data.activityId}\` comes before its submission`);
  if (type === 'AppProofsIssued') {
    const { publicKey, proofs } = data;
    return changed(record, {
      appProofs: proofs.map((proof) => ({ scheme: appProofScheme, publicKey, ...proof })),
    });
  }
  const { status } = data;
  switch (type) {
    case 'ActivityApproved':
      return changed(record, {
        status,
        votes: [...record.votes, recordedVote(data.vote, recording)],
        decisions: [...record.decisions, recordedDecision(data.decision, at)],
        updatedAt: at,
      });
    case 'ActivityRejected':
      return changed(record, { status, votes: [...record.votes, recordedVote(data.vote, recording)], updatedAt: at });
    case 'ActivityCompleted':
      return changed(record, { status, result: data.result, updatedAt: at });
    case 'ActivityFailed':
      return changed(record, { status, failure: data.failure, updatedAt: at });
  }
}

// Member by member, so that all records, votes and decisions have the same hidden class: members that follow a spread are
// slow (docs/performance.md).

function withIntent<Voter>(
  record: RecordWithoutIntent<Voter>,
  intent: ActivityRecord<Voter>['intent'],
): ActivityRecord<Voter> {
  return {
    activityId: record.activityId,
    organizationId: record.organizationId,
    type: record.type,
    status: record.status,
    intent,
    result: record.result,
    failure: record.failure,
    generateAppProofs: record.generateAppProofs,
    appProofs: record.appProofs,
    fingerprint: record.fingerprint,
    timestampMs: record.timestampMs,
    votes: record.votes,
    decisions: record.decisions,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
  };
}

function changed<Voter>(
  record: RecordWithoutIntent<Voter>,
  changes: Partial<RecordWithoutIntent<Voter>>,
): RecordWithoutIntent<Voter> {
  return {
    activityId: record.activityId,
    organizationId: record.organizationId,
    type: record.type,
    status: changes.status ?? record.status,
    result: changes.result ?? record.result,
    failure: changes.failure ?? record.failure,
    generateAppProofs: record.generateAppProofs,
    appProofs: changes.appProofs ?? record.appProofs,
    fingerprint: record.fingerprint,
    timestampMs: record.timestampMs,
    votes: changes.votes ?? record.votes,
    decisions: changes.decisions ?? record.decisions,
    createdAt: record.createdAt,
    updatedAt: changes.updatedAt ?? record.updatedAt,
  };
}

function recordedVote<Voter>(vote: Vote, { at, voter }: Recording<Voter>): RecordedVote & { readonly voter: Voter } {
  return {
    voteId: vote.voteId,
    userId: vote.userId,
    selection: vote.selection,
    message: vote.message,
    fingerprint: vote.fingerprint,
    publicKey: vote.publicKey,
    signature: vote.signature,
    scheme: vote.scheme,
    credentialId: vote.credentialId,
    attestation: vote.attestation,
    webauthn: vote.webauthn,
    at,
    voter: voter(vote),
  };
}

function recordedDecision(decision: Decision, at: number): Decision & { readonly at: number } {
  return {
    voteId: decision.voteId,
    outcome: decision.outcome,
    decidedBy: decision.decidedBy,
    evaluations: decision.evaluations,
    policySet: decision.policySet,
    revision: decision.revision,
    rules: decision.rules,
    limits: decision.limits,
    authority: decision.authority,
    resolution: decision.resolution,
    at,
  };
}
