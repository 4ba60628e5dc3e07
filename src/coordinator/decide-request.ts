import { proofOf } from '../decide/app-proofs.js';
import { decideSubmit } from '../decide/submit.js';
import { decideVote } from '../decide/vote.js';
import { submissionOf } from '../decide/approvals.js';
import { clausesOf, type DecisionContext, type DecisionResult } from '../decide/decision-context.js';
import { isVoteOf } from '../decide/rights.js';
import { callerOf, checkMaySubmit } from '../decide/caller.js';
import { noSuchActivity, notWaiting, organizationDeleted, signUpLapsed } from '../decide/refusals.js';
import { activityVersion } from '../decide/registry.js';
import type { Caller } from '../decide/resolve-caller.js';
import { checkParentsTime } from '../decide/decision-time.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { isActivityEvent, type Attestation, type Vote } from '../domain/activity/events.js';
import { evolveRecord, type ActivityRecord } from '../domain/activity/record.js';
import { CoordinatorError } from '../domain/errors.js';
import { isOfFalseTime } from '../domain/organization/clock-mends.js';
import { hasLapsed } from '../domain/organization/claims.js';
import { openByFingerprint, type OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import { uuidV7 } from '../ledger/ids.js';
import type { NewEvent } from '../ledger/event-store.js';
import type { LoadedOrganization } from '../ledger/loaded-organization.js';
import { assembleContext } from './assemble-context.js';
import type { CoordinatorPorts, Decided, PendingRequest, Progress, ToPrepare } from './pending-request.js';
import type { SubmitRequest } from './read-submit.js';
import { applyAndSeal } from './apply-and-seal.js';
import { checkCounter } from './passkeys.js';
import { voteOf } from './vote-of.js';

/**
 * How long a started decision remains usable while nothing is recorded: the tolerated clock difference, in
 * milliseconds.
 */
const longestDecisionMs = 5_000;

/** Decides requests on the folded state of their organization, each on the state left by the previous one. */
export class RequestDecider {
  constructor(private readonly ports: CoordinatorPorts) {}

  /** Decides one request, and adds the outcome to the folded state and to the batch. */
  decide(
    pending: PendingRequest,
    loaded: LoadedOrganization,
    parent: LoadedOrganization | undefined,
    batch: NewEvent[],
  ): Decided | ToPrepare {
    const { request } = pending;
    const { meter } = pending.progress;
    const { organization } = loaded;
    const { organizationId } = organization;
    const today = assembleContext(this.ports, organization, loaded.revision, parent?.organization, meter.reading);
    const context = this.underWay(pending.progress, today, loaded, parent);
    const caller = this.callerOf(pending, context, parent, today.now);
    const callerUserId = caller.user.userId;

    const known = this.knownActivity(loaded, request.fingerprint);
    if (known && !this.isVoteOfAnother(context, known, request, caller)) {
      const record = organization.openActivities.get(known);
      const result = { organizationId, organization, callerUserId, meter, activityId: known, record };
      return { kind: 'decided', pending, result, added: [] };
    }

    this.checkNeverDenied(organization, request);
    // After known fingerprints: repeating the deletion itself returns that it was done.
    if (organization.isDeleted) throw organizationDeleted(organization.organizationId);
    if (hasLapsed(organization, today.now)) throw signUpLapsed(organization.organizationId);
    if (pending.attempt?.isOver())
      return { kind: 'prepare', submitterId: pending.attempt.submitterId, hasSideEffects: true };
    // Also after those: the same bytes sent twice are one request.
    if (this.ports.counters.isStrict || !pending.progress.isCounterReported) {
      pending.progress.isCounterReported = checkCounter(pending.passkey, caller, this.ports.counters);
    }
    const outcome = this.submitOrVote(pending, caller, context, loaded, parent);
    if (outcome.kind === 'prepare') return outcome;
    const { activityId, events, refusal, afterwards } = outcome;
    const record = recordAfter(organization, activityId, events, context.now);
    batch.push(...applyAndSeal(loaded, events, activityId, request.fingerprint, context.now));
    const isSubmission = events.some(({ type }) => type === 'ActivitySubmitted');
    const input = pending.prepared && 'value' in pending.prepared ? pending.prepared.value : undefined;
    const appended = isSubmission ? { prepared: input } : undefined;
    const result = { organizationId, organization, callerUserId, meter, activityId, record, appended };
    return { kind: 'decided', pending, result, added: events, refusal, afterwards };
  }

  private callerOf(
    pending: PendingRequest,
    { organization, revision, now: at }: DecisionContext,
    loadedParent: LoadedOrganization | undefined,
    now: number,
  ): Caller {
    const { stamp, version, organizationId, attestation } = pending.request;
    const requested = { stamp, version, organizationId, attestation, passkey: pending.passkey };
    const parent = loadedParent?.organization;
    const caller = callerOf(requested, organization, parent, now);
    const isOfParent = caller.organizationId !== organization.organizationId;
    if (parent && (isOfParent || isIssuedBy(parent, attestation))) checkParentsTime(this.ports.clock, parent);
    const authority =
      loadedParent && isOfParent
        ? { organizationId: caller.organizationId, revision: loadedParent.revision }
        : undefined;
    // Set before this user can be denied: a denial names the user.
    pending.deniable = {
      userId: caller.user.userId,
      at,
      basis: { revision, rules: rulesNumber, ...(authority && { authority }) },
    };
    pending.request.onKnown?.(organizationId, caller.credential.id);
    checkMaySubmit(requested, caller, organization, parent);
    return caller;
  }

  /** The identical body from another user who may vote counts as that user's vote (docs/protocol.md, fingerprints). */
  private isVoteOfAnother(
    context: DecisionContext,
    activityId: string,
    { fingerprint, version: { definition } }: SubmitRequest,
    { user: { userId } }: Caller,
  ): boolean {
    const { organization } = context;
    const open = organization.openActivities.get(activityId);
    if (!open || open.votes.some((vote) => vote.fingerprint === fingerprint && vote.userId === userId)) return false;
    // Decided as a vote: a caller who may not cast it must be told so, not shown the activity as if it had counted.
    if (definition.kind === 'vote') return true;
    return !organization.isDeleted && organization.users.has(userId) && isVoteOf(context, open, userId);
  }

  /** The started decision if it was on the same state; otherwise a new one, with what is left of the meter. */
  private underWay(
    progress: Progress,
    today: DecisionContext,
    loaded: LoadedOrganization,
    parent: LoadedOrganization | undefined,
  ): DecisionContext {
    const heads = `${loaded.hash} ${parent?.hash}`;
    const { decision } = progress;
    if (decision?.heads !== heads || today.now - decision.now > longestDecisionMs) {
      const steps = progress.meter.decision();
      progress.decision = { heads, now: today.now, steps, clauses: clausesOf(today), found: {} };
    }
    const { now, steps, clauses, found } = progress.decision!;
    const { registry, organization, revision, reading, limits } = today;
    return { registry, organization, revision, now, reading, limits, steps, clauses, found };
  }

  private knownActivity({ recent, organization }: LoadedOrganization, fingerprint: string): string | undefined {
    return (
      recent.get(fingerprint)?.activityId ??
      this.ports.known.findByFingerprint(organization.organizationId, fingerprint)
    );
  }

  /**
   * A request that was denied while the clock was ahead may be of today's time by now. Others may have read it, so it is not decided
   * again.
   */
  private checkNeverDenied(organization: OrganizationView, { timestampMs, fingerprint }: SubmitRequest): void {
    if (!isOfFalseTime(organization, Number(timestampMs))) return;
    if (!this.ports.known.wasDenied(organization.organizationId, fingerprint)) return;
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `request \`${fingerprint}\` was denied when the clock of this organization was wrong: stamp it again with today's timestampMs`,
      { category: 'INVALID_TIME' },
    );
  }

  private submitOrVote(
    pending: PendingRequest,
    caller: Caller,
    context: DecisionContext,
    loaded: LoadedOrganization,
    parent: LoadedOrganization | undefined,
  ): (Extract<DecisionResult, { kind: 'decided' }> & { readonly activityId: string }) | ToPrepare {
    const { request, passkey, prepared } = pending;
    const { version, intent, fingerprint } = request;
    const isParents = caller.organizationId !== request.organizationId;
    const authority = isParents ? parent : undefined;
    const voter = { userId: caller.user.userId, credential: caller.credential, authority };
    const target = this.targetOf(request, loaded);
    const activityId = target?.activityId ?? uuidV7(this.ports.clock, this.ports.randomness);
    let outcome: DecisionResult;
    if (target) {
      const selection = version.definition.kind === 'vote' ? version.definition.selection : 'VOTE_SELECTION_APPROVED';
      const vote = voteOf(request, passkey, caller, activityId, selection);
      outcome = decideVote(context, target, vote, voter, prepared);
    } else {
      const { parameters, timestampMs, generateAppProofs, found } = request;
      const { type } = version;
      const vote = voteOf(request, passkey, caller, activityId, 'VOTE_SELECTION_APPROVED');
      const submission = { activityId, type, intent, parameters, fingerprint, timestampMs, generateAppProofs, found };
      outcome = decideSubmit(context, submission, vote, voter, prepared);
    }
    if (outcome.kind === 'prepare') {
      const { definition } = activityVersion(this.ports.registry, target?.type ?? version.type);
      const submitterId = target ? submissionOf(target).userId : voter.userId;
      return { kind: 'prepare', submitterId, hasSideEffects: definition.sign === undefined };
    }
    this.ports.metrics.decided(outcome.outcome, target?.type ?? version.type);
    const links = { organization: loaded.hash, parent: authority?.hash };
    const submitted = target ?? { ...request, type: version.type };
    const proof = proofOf(context, submitted, prepared, outcome.events, links, this.ports.proofs);
    const { refusal, afterwards } = outcome;
    return {
      kind: 'decided',
      activityId,
      outcome: outcome.outcome,
      events: [...outcome.events, ...proof],
      refusal,
      afterwards,
    };
  }

  /** The open activity that a request votes on; undefined for a new submit. */
  private targetOf(
    { version, intent, fingerprint }: SubmitRequest,
    loaded: LoadedOrganization,
  ): OpenActivity | undefined {
    const { organization } = loaded;
    if (version.definition.kind === 'activity') return openByFingerprint(organization, fingerprint);
    const { fingerprint: wanted } = intent as { fingerprint: string };
    const target = openByFingerprint(organization, wanted);
    if (target) return target;
    const finished = this.knownActivity(loaded, wanted);
    // An activity that is known and open was named by a vote's fingerprint, not by its own.
    const isUnknown = finished === undefined || organization.openActivities.has(finished);
    throw isUnknown ? noSuchActivity(wanted) : notWaiting(finished);
  }
}

/** Whether a contact token of that organization vouches for the caller. */
function isIssuedBy({ organizationId }: OrganizationView, attestation: Attestation | undefined): boolean {
  return attestation?.kind === 'contact' && attestation.organizationId === organizationId;
}

/** The activity as the events will leave it, with each voter's current data. */
function recordAfter(
  organization: OrganizationView,
  activityId: string,
  events: readonly OrganizationEvent[],
  at: number,
): ActivityRecord<User | undefined> | undefined {
  const voter = ({ userId }: Vote) => organization.users.get(userId);
  const recording = { organizationId: organization.organizationId, at, voter };
  return events
    .filter(isActivityEvent)
    .reduce<OpenActivity | undefined>(
      (record, event) => evolveRecord(record, event, recording),
      organization.openActivities.get(activityId),
    );
}
