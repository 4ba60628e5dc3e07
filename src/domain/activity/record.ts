import { appProofScheme, type AppProof } from './app-proof.js';
import type { ActivityEvent, ActivityStatus, Decision, Failure, RecordedVote, Vote } from './events.js';

/** Everything that history says about one activity. `Voter` is how the holder knows the user who voted. */
export interface ActivityRecord<Voter> {
  readonly activityId: string;
  readonly organizationId: string;
  readonly type: string;
  readonly status: ActivityStatus;
  readonly intent: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly failure?: Failure;
  /** It requested proofs; they exist once it has ended. */
  readonly generateAppProofs?: true;
  readonly appProofs?: readonly AppProof[];
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
  const evolved = evolveWithoutIntent(record, event, recording);
  return { ...evolved, intent: event.type === 'ActivitySubmitted' ? event.data.intent : record!.intent };
}

/** The same without reading the intent, which parses the signed body. */
export function evolveWithoutIntent<Voter>(
  record: RecordWithoutIntent<Voter> | undefined,
  { type, data }: ActivityEvent,
  { organizationId, at, voter }: Recording<Voter>,
): RecordWithoutIntent<Voter> {
  const recorded = (vote: Vote) => ({ ...vote, at, voter: voter(vote) });
  if (type === 'ActivitySubmitted') {
    const { activityId, fingerprint, timestampMs, generateAppProofs, status, vote, decision } = data;
    return {
      activityId,
      organizationId,
      type: data.type,
      status,
      fingerprint,
      timestampMs,
      ...(generateAppProofs ? { generateAppProofs } : {}),
      votes: [recorded(vote)],
      decisions: [{ ...decision, at }],
      createdAt: at,
      updatedAt: at,
    };
  }
  if (!record) throw new Error(`\`${type}\` of activity \`${data.activityId}\` comes before its submission`);
  if (type === 'ActivityProved') {
    const { publicKey, proofs } = data;
    return { ...record, appProofs: proofs.map((proof) => ({ scheme: appProofScheme, publicKey, ...proof })) };
  }
  const changed = { ...record, status: data.status, updatedAt: at };
  switch (type) {
    case 'ActivityApproved':
      return {
        ...changed,
        votes: [...record.votes, recorded(data.vote)],
        decisions: [...record.decisions, { ...data.decision, at }],
      };
    case 'ActivityRejected':
      return { ...changed, votes: [...record.votes, recorded(data.vote)] };
    case 'ActivityCompleted':
      return { ...changed, result: data.result };
    case 'ActivityFailed':
      return { ...changed, failure: data.failure };
  }
}
