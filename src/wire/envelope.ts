import { grpcNumbers } from '../domain/errors.js';
import { userResource } from './resources.js';
import type { ActivityShape, DecodedShape, VoteShape, WaitsForShape } from './shapes.js';
import { timestamp } from '../domain/organization/timestamp.js';
import type { User } from '../domain/organization/users.js';
import type { ActivityRecord } from '../domain/activity/record.js';
import { readableActivity, type ReadableActivity } from '../domain/activity/redaction.js';

/** What the envelope needs besides the record itself. */
export interface EnvelopeContext {
  /** Names of the one key of `intent`, and of those of `result`, by the submitted version. */
  readonly keys: { readonly intentKey: string; readonly resultKeys: readonly string[] };
  /** Timestamp objects instead of text, for clients that decode strictly. */
  readonly timestampObjects?: boolean | undefined;
  /** When it is read, milliseconds since the epoch. */
  readonly now: number;
  /** The result as only its submitter gets it, if that differs from the recorded one. */
  readonly told?: Readonly<Record<string, unknown>> | undefined;
  /** It is the response to its submission: the submitter gets the request back as it was sent. */
  readonly asSubmitted?: boolean;
  /** The user who reads it by a query; others do not see the ids of the submitter's codes. */
  readonly readerId?: string;
  /** How the caller may still vote on it, if that was computed. */
  readonly rights: {
    readonly canApprove: boolean;
    readonly canReject: boolean;
    readonly notComputed?: true;
    /** What it waits for, in words and in members. */
    readonly waitsFor?: WaitsForShape;
    /** What it would sign, for approvers. */
    readonly decoded?: readonly DecodedShape[];
    readonly waitsForNotComputed?: true;
  };
}

/** The activity as returned by every submit, get_activity and list_activities (specification, section 2). */
export function activityEnvelope(
  recorded: ActivityRecord<User | undefined>,
  { keys, rights, now, told, asSubmitted = false, readerId, timestampObjects = false }: EnvelopeContext,
): ActivityShape {
  const record = readableActivity(recorded, now, { asSubmitted, readerId });
  const result = told ?? record.result;
  const intent: Record<string, unknown> = {};
  intent[keys.intentKey] = record.intent;
  const results: Record<string, unknown> = {};
  if (result) for (const name of keys.resultKeys) results[name] = result;
  const time = (at: number) => (timestampObjects ? timestamp(at) : new Date(at).toISOString());
  // What most activities do not have comes last: members that follow a spread cost more than all others (docs/performance.md).
  return {
    id: record.activityId,
    organizationId: record.organizationId,
    status: record.status,
    type: record.type,
    intent,
    result: results,
    votes: record.votes.map((vote) => voteResource(record.activityId, vote)),
    fingerprint: record.fingerprint,
    canApprove: rights.canApprove,
    canReject: rights.canReject,
    timestampMs: record.timestampMs,
    createdAt: time(record.createdAt),
    updatedAt: time(record.updatedAt),
    failure: record.failure
      ? { code: grpcNumbers[record.failure.code], message: record.failure.message, details: [] }
      : null,
    ...(record.appProofs ? { appProofs: record.appProofs } : {}),
    ...(rights.notComputed ? { rightsNotComputed: true as const } : {}),
    ...(rights.waitsFor ? { waitsFor: rights.waitsFor } : {}),
    ...(rights.decoded ? { decoded: rights.decoded } : {}),
    ...(rights.waitsForNotComputed ? { waitsForNotComputed: true as const } : {}),
    ...(record.redacted ? { redacted: true as const } : {}),
  };
}

/** What every submit answers. */
export type ActivityEnvelope = Readonly<ActivityShape>;

/** A voter who is no user of the organization: a member of its parent, or the holder of an invitation. Only the id is shown. */
function voterFromElsewhere(userId: string, at: number): User {
  const nothing = { apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] };
  return { userId, userName: '', ...nothing, createdAt: at, updatedAt: at };
}

function voteResource(activityId: string, vote: ReadableActivity<User | undefined>['votes'][number]): VoteShape {
  const { voteId, userId, voter, selection, message, publicKey, signature, scheme, webauthn, at, redacted } = vote;
  return {
    id: voteId,
    userId,
    user: userResource(voter ?? voterFromElsewhere(userId, at)),
    activityId,
    selection,
    message,
    publicKey,
    signature,
    scheme,
    createdAt: timestamp(at),
    // What a passkey signs in addition to the challenge; without it nobody could verify the vote again.
    ...(webauthn ? { authenticatorData: webauthn.authenticatorData, clientDataJson: webauthn.clientDataJson } : {}),
    ...(redacted ? { redacted } : {}),
  };
}
