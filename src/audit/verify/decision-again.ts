import { proofOf } from '../../decide/app-proofs.js';
import type { DecisionContext, DecisionResult, Submission, Voter } from '../../decide/decision-context.js';
import { fingerprintOf } from '../../stamps/fingerprint.js';
import { activityVersion, newestIntent } from '../../decide/registry.js';
import { decideSubmit } from '../../decide/submit.js';
import { decideVote } from '../../decide/vote.js';
import type { Found } from '../../domain/organization/claims.js';
import type { OpenActivity } from '../../domain/organization/open-activities.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import { derivedId } from '../../ledger/ids.js';
import type { ProofSigner } from '../../ports/proof-signer.js';
import { parseStrictJson } from '../../wire/strict-json.js';
import { validateParameters } from '../../wire/validate.js';
import { plain, type Deciding } from './deciding-events.js';
import { authorityOf, preparation, voterOf, type ParentAt } from './recorded-context.js';
import { withRecordedMessage } from './recorded-messages.js';

/** What history says about one decision, and the result of deciding it again. Events as plain JSON, type and data. */
export interface Redecided {
  readonly revision: number;
  readonly activityType: string;
  readonly recorded: readonly object[];
  readonly again: readonly object[];
  readonly outcome: string;
  readonly outcomeAgain: string;
}

/** A recorded decision: the events of one append. */
export interface RecordedDecision {
  readonly event: Deciding;
  readonly effects: readonly OrganizationEvent[];
  /** The app proofs that the coordinator has signed of it. */
  readonly issued: readonly OrganizationEvent[];
  readonly revision: number;
  readonly metadata: EventMetadata;
  /** Link of the organization's chain that it was based on; undefined if app proofs are not to be compared. */
  readonly link: string | undefined;
}

/**
 * Makes one decision again: from the state before it, from what the deciding event says of the request, and from the
 * signed bytes.
 * @throws {Error} if what is recorded cannot be a decision
 */
export function again(
  context: DecisionContext,
  { event, effects, issued, revision, metadata, link }: RecordedDecision,
  parentAt: ParentAt,
): Redecided {
  const { vote } = event.data;
  const { redacted = false } = metadata;
  const authority = event.type === 'ActivitySubmitted' ? authorityOf(event.data.decision, parentAt) : undefined;
  const voter = authority ? { ...voterOf({ ...context, ...authority }, vote), authority } : voterOf(context, vote);
  // Parts replaced in an export match no fingerprint; `verify` accepts such events only from an import.
  if (!redacted && fingerprintOf(vote.message) !== vote.fingerprint) {
    throw new Error(`the fingerprint of the vote at revision ${revision} is not that of its message`);
  }
  checkVoteFacts(event, metadata);
  const { activityType, outcome, result, submitted, prepared } =
    event.type === 'ActivitySubmitted'
      ? submitAgain(context, event, effects, voter)
      : voteAgain(context, event, effects, voter);
  if (result.kind === 'prepare') throw new Error(`${activityType} at revision ${revision} asks for what it had`);
  const recorded: OrganizationEvent[] = [event, ...effects];
  const made = [...withRecordedMessage(result.events.map(plain), recorded)];
  if (link !== undefined) {
    const links = { organization: link, parent: authority?.hash };
    recorded.push(...issued);
    made.push(...proofOf(context, submitted, prepared, made, links, sameSignatures(issued)));
  }
  return { revision, activityType, recorded, again: made, outcome, outcomeAgain: result.outcome };
}

/** Signs with the recorded signatures: only the key of a boot could make them again. */
function sameSignatures(issued: readonly OrganizationEvent[]): ProofSigner {
  const [first] = issued;
  const { publicKey = '', proofs = [] } = first?.type === 'AppProofsIssued' ? first.data : {};
  const signatures = proofs.map(({ signature }) => signature);
  return { publicKey, sign: () => signatures.shift() ?? '' };
}

/** What is recorded of a vote besides what was signed follows from it. */
function checkVoteFacts({ type, data: { activityId, vote } }: Deciding, metadata: EventMetadata): void {
  const selection = type === 'ActivityRejected' ? 'VOTE_SELECTION_REJECTED' : 'VOTE_SELECTION_APPROVED';
  if (vote.selection !== selection) throw new Error(`an ${type} with the selection \`${vote.selection}\``);
  // Its id is derived from the fingerprint of the request, which an export may have changed.
  if (metadata.redacted) return;
  if (metadata.$correlationId !== activityId || metadata.$causationId !== vote.fingerprint) {
    throw new Error(
      `it is recorded as of activity \`${metadata.$correlationId}\`, caused by \`${metadata.$causationId}\``,
    );
  }
  const voteId = derivedId(activityId, 'vote', vote.userId, vote.fingerprint);
  if (vote.voteId !== voteId) throw new Error(`the vote has the id \`${vote.voteId}\`, not \`${voteId}\``);
}

function submitAgain(
  context: DecisionContext,
  { data }: Extract<Deciding, { type: 'ActivitySubmitted' }>,
  effects: readonly OrganizationEvent[],
  voter: Voter,
) {
  const { activityId, type, intent: parameters, fingerprint, timestampMs, generateAppProofs, vote, decision } = data;
  const version = activityVersion(context.registry, type);
  const prepared = preparation(context.registry, type, parameters, effects, context.organization);
  const { resolution: found } = decision;
  const rest = { activityId, type, parameters, fingerprint, timestampMs, generateAppProofs, found };
  const decide = (submission: Submission) => decideSubmit(context, submission, vote, voter, prepared);
  const result = decide({ ...rest, intent: newestIntent(version, parameters) });

  // Deciding from the signed bytes must give the same as from what was kept of them.
  const signed = parseStrictJson(Buffer.from(vote.message), Infinity).value;
  const submitted = validateParameters(version.intent, signed['parameters'] as object);
  const fromBytes = decide({ ...rest, intent: newestIntent(version, submitted) });
  sameResult(result, fromBytes);
  const { parameters: signedParameters, type: signedType, timestampMs: signedTime } = signed;
  const kept = JSON.stringify([signedParameters, signedType, signedTime]);
  if (kept !== JSON.stringify([parameters, type, timestampMs])) {
    throw new Error(`activity \`${activityId}\` does not keep what was signed: ${kept}`);
  }
  const proofs = signed['generateAppProofs'] ?? (signedParameters as Record<string, unknown>)['generateAppProofs'];
  if (proofs !== generateAppProofs) {
    throw new Error(`activity \`${activityId}\` does not keep what was signed of generateAppProofs`);
  }
  if (fingerprint !== vote.fingerprint) {
    throw new Error(`activity \`${activityId}\` has the fingerprint ${fingerprint}, not that of what was signed`);
  }
  checkSignedFor(context, signed['organizationId'], found);
  return { activityType: type, outcome: decision.outcome, result, submitted: rest, prepared };
}

function voteAgain(
  context: DecisionContext,
  event: Exclude<Deciding, { type: 'ActivitySubmitted' }>,
  effects: readonly OrganizationEvent[],
  voter: Voter,
) {
  const { activityId, vote } = event.data;
  const open = context.organization.openActivities.get(activityId);
  if (!open) throw new Error(`a vote on activity \`${activityId}\`, which is not waiting for votes`);
  checkWord(context, event, open);
  const prepared = preparation(context.registry, open.type, open.intent, effects, context.organization);
  // A vote whose approval is not enough yet is recorded with the outcome of the policies.
  const ofRejection = event.data.status === 'ACTIVITY_STATUS_REJECTED' ? 'deny-explicit' : 'consensus-needed';
  const recorded = event.type === 'ActivityApproved' ? event.data.decision.outcome : ofRejection;
  const outcome = recorded === 'deny-implicit' ? 'consensus-needed' : recorded;
  const result = decideVote(context, open, vote, voter, prepared);
  return { activityType: open.type, outcome, result, submitted: open, prepared };
}

/**
 * A body may name the organization that it is recorded in, or its parent (docs/protocol.md, who may stamp what).
 * @param found for a submit, why it is here although its body names the parent
 */
function checkSignedFor({ organization }: DecisionContext, signedFor: unknown, found?: Found): void {
  const { organizationId, parentOrganizationId } = organization;
  const named = typeof signedFor === 'string' ? signedFor.toLowerCase() : signedFor;
  const isOwn = named === organizationId.toLowerCase();
  if (found && (isOwn || found.parentOrganizationId !== parentOrganizationId)) {
    throw new Error(`it is recorded as resolved by \`${found.parentOrganizationId}\`, which is not what was signed`);
  }
  if (isOwn || named === parentOrganizationId?.toLowerCase()) return;
  throw new Error(`the signed request is for organization \`${String(signedFor)}\`, not for this one`);
}

/** A signed vote names its activity and agrees with the event; or it is the body that is voted on. */
function checkWord(
  context: DecisionContext,
  { type, data: { vote } }: Exclude<Deciding, { type: 'ActivitySubmitted' }>,
  open: OpenActivity,
): void {
  const words = [open.fingerprint, ...open.votes.map(({ fingerprint }) => fingerprint)];
  const signed = parseStrictJson(Buffer.from(vote.message), Infinity).value;
  checkSignedFor(context, signed['organizationId']);
  if (words.includes(vote.fingerprint)) {
    const same = open.votes.find(({ fingerprint }) => fingerprint === vote.fingerprint);
    if (same && same.selection !== vote.selection) throw new Error('the same signed vote counts for and against');
    return;
  }
  const definition = context.registry.versions.get(String(signed['type']))?.definition;
  if (definition?.kind !== 'vote')
    throw new Error(`the signed request is not a vote, but \`${String(signed['type'])}\``);
  const said = definition.selection === 'VOTE_SELECTION_APPROVED' ? 'ActivityApproved' : 'ActivityRejected';
  if (said !== type) throw new Error(`what was signed is \`${definition.selection}\``);
  const { fingerprint } = signed['parameters'] as { readonly fingerprint?: unknown };
  if (!words.includes(String(fingerprint))) {
    throw new Error(`the signed vote is on \`${String(fingerprint)}\`, not on activity \`${open.activityId}\``);
  }
}

function sameResult(one: DecisionResult, other: DecisionResult): void {
  const text = (result: DecisionResult) => JSON.stringify(result);
  if (text(one) !== text(other))
    throw new Error(`the signed bytes lead to a different decision:\n${text(one)}\n${text(other)}`);
}
