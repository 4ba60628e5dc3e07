import type { AnyActivity, DecideContext, LimitsToCheck, ToReadAhead } from '../activities/define-activity.js';
import type { PreparePorts } from '../ports/prepare.js';
import { liveApprovals, type ActivityEvent, type Decision, type Vote } from '../domain/activity/events.js';
import {
  activityAt,
  activityStatus,
  afterEffects,
  afterSubmit,
  step,
  votingRights,
  type ActivitySnapshot,
} from '../domain/activity/machine.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { Steps } from '../domain/steps.js';
import { ClausesRead } from '../domain/policy/language.js';
import { CoordinatorError } from '../domain/errors.js';
import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import { checkQuorumMembers, mayChange, theirsAlone, type Word } from '../domain/organization/quorum-members.js';
import type { Found } from '../domain/organization/claims.js';
import { checkLimits, limitsInForce, type LimitsOfDecision } from '../domain/organization/limits.js';
import { checkRoomToWait, type OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import { checkQuorumReachable } from '../domain/organization/ways-in.js';
import {
  authorize,
  couldAllow,
  couldContribute,
  eligibleApprovers,
  type Approval,
  type Authorization,
  type AuthorizationContext,
  type AuthorizationRequest,
  type PolicyCredential,
  type PolicyUser,
} from '../domain/policy/authorize.js';
import { unreadable, type PolicyValue } from '../domain/policy/types.js';
import { derivedId } from '../ids.js';
import { permissionDenied, voteRefused } from './refusals.js';
import { activityVersion, newestIntent, type Registry } from './registry.js';
import { apiKeyCredential, attestedCredential, authenticatorCredential, invitedBy } from './resolve-caller.js';

/**
 * Decides submits and votes. Everything is a function of what it is given: the organization at a revision, the recorded
 * time, the request, and what `prepare` gave. Live requests and replay go through the same door, so they cannot differ.
 */

/** The state that is decided on. */
export interface Bench {
  readonly registry: Registry;
  readonly organization: OrganizationView;
  /** Last revision of the organization's stream that `organization` has seen. */
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** What the decision may take; all that a request may unless told. */
  readonly steps?: Steps;
  /** Clauses of the organization's policies that were read for the same page. */
  readonly clauses?: ClausesRead;
  /** Number of the rules that decide; today's unless history is decided again. */
  readonly rules?: number;
  /** Throws `ReadFirst` for what takes long to read; without it everything is read where it is needed. */
  readonly readsElsewhere?: boolean;
  /** Limits that the operator or a parent have set, as the decision records them. */
  readonly limits?: LimitsOfDecision;
}

/** Thrown where a decision needs what takes long to read, and is to be made again once that was read elsewhere. */
export class ReadFirst extends Error {
  constructor(readonly ahead: ToReadAhead) {
    super('something is to be read first');
  }
}

/** Who asks, and with what. */
export interface Party {
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
export type Verdict =
  | {
      readonly events: readonly OrganizationEvent[];
      readonly outcome: Authorization['outcome'];
      /** It was recorded as failed, and the caller is told so. */
      readonly refusal?: CoordinatorError;
      /** What is left to do once the events are recorded. */
      readonly afterwards?: (ports: PreparePorts) => void;
    }
  | 'prepare-first';

/**
 * A submit.
 * @throws {CoordinatorError} PERMISSION_DENIED with each policy's outcome, or the refusal of the activity itself
 */
export function decideSubmit(
  given: Bench,
  submission: Submission,
  vote: Vote,
  party: Party,
  prepared: Prepared,
): Verdict {
  const { activityId, type, intent, parameters, fingerprint, timestampMs, generateAppProofs, found } = submission;
  const bench = metered(given);
  const { definition } = activityVersion(bench.registry, type);
  const { authority } = party;
  // Not a user yet, and none of the others' while policies count who is here.
  const guest = definition.byInvitation ? invitedBy(vote.publicKey, bench.organization, bench.now) : undefined;
  const context = policyContext({ ...bench, ...authority }, guest?.user);
  const home = authority?.organization ?? bench.organization;
  const questionOn = (about: About) => questionOf(bench.registry, type, definition, intent, party.userId, home, about);
  if (readsResources(definition) && !couldAllow(questionOn({}), [party], context)) {
    const nothing = { resources: unreadable('it was not read, as nothing could allow it') };
    throw permissionDenied(authorize(questionOn(nothing), [party], context), context.policies);
  }
  const about = aboutOf(definition, intent, bench);
  const asked = authorize(questionOn(about), [party], context);
  const word = wordOf(asked, [party], authority !== undefined);
  const member = authority ? undefined : memberInTheWay(bench, definition, intent, asked, word);
  if (member !== undefined && !bench.organization.rootQuorum.userIds.includes(party.userId)) throw theirsAlone(member);
  const authorization = member === undefined ? asked : waitingForQuorum(asked);
  const { outcome } = authorization;
  // Votes are cast in the organization that an activity stands in, where users of the parent have none.
  // Nor would anybody be told a result that only the answer to its submission tells.
  const isOutOfReach = (authority ?? definition.reveal) !== undefined && outcome === 'consensus-needed';
  if (outcome === 'deny-explicit' || outcome === 'deny-implicit' || isOutOfReach)
    throw permissionDenied(authorization, context.policies);
  readFirst(definition, intent, bench);
  if (definition.prepare && !prepared) definition.check?.(intent, bench.organization, limitsToCheck(bench));
  if (outcome === 'allow' && definition.prepare && !prepared) return 'prepare-first';

  const snapshot = afterSubmit[outcome];
  const submitted: ActivityEvent = {
    type: 'ActivitySubmitted',
    data: {
      activityId,
      type,
      intent: parameters,
      fingerprint,
      timestampMs,
      ...(generateAppProofs === undefined ? {} : { generateAppProofs }),
      status: activityStatus(snapshot),
      vote,
      decision: {
        ...decisionOf(vote, authorization, bench),
        ...(authority
          ? { authority: { organizationId: authority.organization.organizationId, revision: authority.revision } }
          : {}),
        ...(found ? { found } : {}),
      },
    },
  };
  if (outcome === 'allow') {
    const effects = execute(bench, definition, intent, activityId, vote, prepared, word);
    const ending = endOf(activityId, snapshot, effects);
    const events = [submitted, ...effects.events, ending];
    return 'failure' in effects
      ? { outcome, events, refusal: effects.failure }
      : { outcome, events, ...afterwardsOf(definition, prepared) };
  }
  checkRoomToWait(bench.organization, party.userId, vote.message, limitsToCheck(bench).limits);
  // Decided, and thrown away, as long as votes are needed: what cannot be done should not be voted on.
  if (!definition.prepare) execute(bench, definition, intent, activityId, vote, prepared);
  return { outcome, events: [submitted] };
}

/**
 * A vote on an activity that waits.
 * @throws {CoordinatorError} when the voter may not say this, or a policy forbids the activity today
 */
export function decideVote(given: Bench, open: OpenActivity, vote: Vote, party: Party, prepared: Prepared): Verdict {
  const { activityId } = open;
  const { userId } = party;
  const bench = metered(given);
  const { snapshot, approvals, question } = waiting(bench, open);
  const wish = vote.selection === 'VOTE_SELECTION_APPROVED' ? 'approve' : 'reject';
  const isRepeated = approvals.some((approval) => approval.userId === userId);
  if (!snapshot.can({ type: wish, userId })) {
    if (wish === 'approve' && !isRepeated) {
      // Nobody's approval counts while a policy forbids it: the policy is the reason.
      const forbidden = authorize(question, [...approvals, party], policyContext(bench));
      if (forbidden.outcome === 'deny-explicit')
        throw permissionDenied(forbidden, bench.organization.policies.values());
    }
    throw voteRefused(open, wish, approvals, userId);
  }
  const voted = step(snapshot, { type: wish, userId });
  if (wish === 'reject') {
    const status = activityStatus(voted);
    return {
      outcome: 'deny-explicit',
      events: [{ type: 'ActivityRejected', data: { activityId, status, vote, rules: bench.rules ?? rulesNumber } }],
    };
  }

  const { definition, ...version } = activityVersion(bench.registry, open.type);
  const intent = newestIntent({ ...version, definition }, open.intent);
  const asked = authorize(question, [...approvals, party], policyContext(bench));
  const word = wordOf(asked, [...approvals, party], false);
  const member = memberInTheWay(bench, definition, intent, asked, word);
  const authorization = member === undefined ? asked : waitingForQuorum(asked);
  // A policy that forbids it today refuses the vote and leaves the activity open: policies may change again.
  if (authorization.outcome === 'deny-explicit')
    throw permissionDenied(authorization, bench.organization.policies.values());
  const isAllowed = authorization.outcome === 'allow';
  if (isAllowed) readFirstIfThere(definition, intent, bench);
  if (isAllowed && definition.prepare && !prepared && isPossible(definition, intent, bench)) {
    return 'prepare-first';
  }
  const next = step(voted, { type: 'evaluated', outcome: isAllowed ? 'allow' : 'consensus-needed' });
  const decision = decisionOf(vote, authorization, bench);
  const approved: ActivityEvent = {
    type: 'ActivityApproved',
    data: { activityId, status: activityStatus(next), vote, decision },
  };
  if (!isAllowed) return { outcome: 'consensus-needed', events: [approved] };
  try {
    const effects = execute(bench, definition, intent, activityId, submissionOf(open), prepared, word);
    const events = [approved, ...effects.events, endOf(activityId, next, effects)];
    return { outcome: 'allow', events, ...('failure' in effects ? {} : afterwardsOf(definition, prepared)) };
  } catch (error) {
    // The voters have done their part: that it could not be done is a fact of the activity, not of this request.
    if (!(error instanceof CoordinatorError)) throw error;
    return { outcome: 'allow', events: [approved, failed(activityId, next, error)] };
  }
}

/** What a user may do about an activity that waits for votes: the guards that would refuse the vote. */
export function rightsOf(given: Bench, open: OpenActivity, userId: string): ReturnType<typeof votingRights> {
  const bench = metered(given);
  // Whoever has approved may take it back, whatever it is about.
  if (standingApprovals(bench, open).some((approval) => approval.userId === userId)) {
    return { canApprove: false, canReject: true };
  }
  return couldHaveRights(bench, open, userId)
    ? votingRights(waiting(bench, open).snapshot, userId)
    : { canApprove: false, canReject: false };
}

/** Asked before what an activity is about is read: somebody whom nothing could let vote has nothing read. */
function couldHaveRights(bench: Bench, open: OpenActivity, userId: string): boolean {
  const { definition, ...version } = activityVersion(bench.registry, open.type);
  if (!readsResources(definition)) return true;
  const intent = newestIntent({ ...version, definition }, open.intent);
  if (changedMember(bench, definition, intent) === userId) return true;
  const { registry, organization } = bench;
  const question = questionOf(registry, open.type, definition, intent, submissionOf(open).userId, organization, {});
  return couldContribute(question, standingApprovals(bench, open), policyContext(bench), userId);
}

/** Ids of the users who may approve an activity that waits for votes, and have not. */
export function approversOf(bench: Bench, open: OpenActivity): ReadonlySet<string> {
  const { eligible, approved } = waiting(metered(bench), open).snapshot.context;
  return new Set(eligible.filter((userId) => !approved.includes(userId)));
}

/** One budget for one decision, and each clause read once for it. */
function metered(bench: Bench): Bench & Required<Pick<Bench, 'steps' | 'clauses'>> {
  const { steps = new Steps(), clauses = clausesOf(bench) } = bench;
  return { ...bench, steps, clauses };
}

/** Where the clauses of an organization's policies are read once for several decisions. */
export function clausesOf({ registry, organization }: Pick<Bench, 'registry' | 'organization'>): ClausesRead {
  return new ClausesRead(registry.policyEnvironment, tenantOf(organization));
}

/** Whether what policies read of a request has to be read out of something first. */
function readsResources({ resources, payloads }: AnyActivity): boolean {
  return resources !== undefined || payloads !== undefined;
}

/** Approvals of an activity that waits which still count, the oldest first. */
export function countedApprovals(bench: Bench, open: OpenActivity): readonly Vote[] {
  const standing = new Set(standingApprovals(bench, open).map(({ userId }) => userId));
  return liveApprovals(open.votes, bench.now).filter(({ userId }) => standing.has(userId));
}

/** The first vote is the submitter's. */
export function submissionOf(open: OpenActivity): Vote {
  return open.votes[0]!;
}

/** The machine of an open activity under today's users, policies and quorum. */
function waiting(bench: Bench, open: OpenActivity) {
  const { definition, ...version } = activityVersion(bench.registry, open.type);
  const intent = newestIntent({ ...version, definition }, open.intent);
  const about = aboutStillThere(definition, intent, bench);
  const question = questionOf(
    bench.registry,
    open.type,
    definition,
    intent,
    submissionOf(open).userId,
    bench.organization,
    about,
  );
  const approvals = standingApprovals(bench, open);
  const eligible = eligibleApprovers(question, approvals, policyContext(bench));
  const member = changedMember(bench, definition, intent);
  const snapshot = activityAt('consensusNeeded', {
    // Without the member's own word the others' may be in vain.
    eligible: [...eligible, ...(member === undefined || eligible.has(member) ? [] : [member])],
    approved: approvals.map(({ userId }) => userId),
  });
  return { snapshot, approvals, question };
}

/** Approvals that still count: young enough, by a user who is still here, with a credential that was not taken away. */
function standingApprovals({ organization, now }: Bench, open: OpenActivity): Approval[] {
  const standing = new Map<string, Approval>();
  for (const { userId, credentialId, attestation, publicKey } of liveApprovals(open.votes, now)) {
    const user = organization.users.get(userId);
    const credential = attestation
      ? user && attestedCredential(user, attestation, publicKey)
      : user && credentialsOf(user).find(({ id }) => id === credentialId);
    if (credential) standing.set(userId, { userId, credential });
  }
  return [...standing.values()];
}

/** Whose word it is that a decision rests on. */
function wordOf({ outcome, by }: Authorization, approvals: readonly Approval[], isParents: boolean): Word {
  return {
    isRootQuorums: outcome === 'allow' && by === 'root-quorum' && !isParents,
    userIds: isParents ? [] : approvals.map(({ userId }) => userId),
  };
}

/** The member of the root quorum whose credentials or contacts the intent would change. */
function changedMember({ organization }: Bench, definition: AnyActivity, intent: object): string | undefined {
  const userId = definition.changesWaysInOf?.(intent) ?? definition.ownCredentialsOf?.(intent);
  return userId !== undefined && organization.rootQuorum.userIds.includes(userId) ? userId : undefined;
}

/** The member without whose word, or the quorum's, what policies allow cannot happen. */
function memberInTheWay(
  bench: Bench,
  definition: AnyActivity,
  intent: object,
  { outcome }: Authorization,
  word: Word,
): string | undefined {
  const member = outcome === 'allow' ? changedMember(bench, definition, intent) : undefined;
  return member === undefined || mayChange(bench.organization, member, word) ? undefined : member;
}

function waitingForQuorum(authorization: Authorization): Authorization {
  return { ...authorization, outcome: 'consensus-needed', by: 'none' };
}

function isPossible(definition: AnyActivity, intent: object, bench: Bench): boolean {
  try {
    definition.check?.(intent, bench.organization, limitsToCheck(bench));
    return true;
  } catch (error) {
    if (error instanceof CoordinatorError) return false;
    throw error;
  }
}

/** Of an activity that waits: what cannot be read any more is what its `check` says. */
function readFirstIfThere(definition: AnyActivity, intent: object, bench: Bench): void {
  try {
    readFirst(definition, intent, bench);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
  }
}

/** What a request is about, as policies read it. */
type About = Pick<AuthorizationRequest, 'resources' | 'parts'>;

/** @throws {CoordinatorError} when it cannot be read */
function aboutOf(definition: AnyActivity, intent: object, bench: Bench): About {
  const { organization } = bench;
  if (definition.resources ?? definition.payloads) readFirst(definition, intent, bench);
  const parts = definition.payloads?.(intent, organization);
  return parts ? { parts } : { resources: definition.resources?.(intent, organization) };
}

/** Of an activity that waits. What it is about may be gone, or not be read any more: policies are told, and decide. */
function aboutStillThere(definition: AnyActivity, intent: object, bench: Bench): About {
  try {
    return aboutOf(definition, intent, bench);
  } catch (error) {
    if (error instanceof CoordinatorError) return { resources: unreadable(error.message) };
    throw error;
  }
}

/**
 * Sends the decision away to have read what takes long.
 * @throws {ReadFirst}
 */
function readFirst(definition: AnyActivity, intent: object, { organization, readsElsewhere }: Bench): void {
  const ahead = readsElsewhere ? definition.ahead?.(intent, organization) : undefined;
  if (ahead) throw new ReadFirst(ahead);
}

function questionOf(
  registry: Registry,
  type: string,
  definition: AnyActivity,
  intent: object,
  submitterId: string,
  submitterOrganization: OrganizationView,
  about: About,
): AuthorizationRequest {
  const { policy, params } = definition;
  const values: Record<string, PolicyValue | undefined> = {};
  for (const [name, param] of Object.entries(params ?? {})) values[name] = param.from(intent);
  const { kind } = registry.versions.get(type)!;
  return {
    activity: { type, kind, params: values, ...(policy === 'root-quorum-only' ? {} : policy) },
    ...about,
    submitterId,
    rootQuorumOnly: policy === 'root-quorum-only',
    // The user of an auth proxy is nobody's own: its policy says all that it may do.
    ownCredentials:
      !isAuthProxyUser(submitterOrganization, submitterId) && ownCredentials(definition, intent, submitterId),
  };
}

function ownCredentials(
  { ownSession, byInvitation, ownCredentialsOf }: AnyActivity,
  intent: object,
  submitterId: string,
): AuthorizationRequest['ownCredentials'] {
  return ownSession || byInvitation ? 'session' : ownCredentialsOf?.(intent) === submitterId;
}

function policyContext(bench: Bench, guest?: User): AuthorizationContext {
  const { registry, organization, now, steps, clauses, rules } = bench;
  const { policies, rootQuorum, users } = organization;
  return {
    policies: [...policies.values()],
    rootQuorum,
    user: (userId) => {
      const user = users.get(userId) ?? (guest?.userId === userId ? guest : undefined);
      return user && policyUser(user);
    },
    tenant: tenantOf(organization),
    ...(steps ? { steps } : {}),
    ...(clauses ? { clauses } : {}),
    ...(rules === undefined ? {} : { rules }),
    // Built only when a policy asks for it: the usual decision needs no list of all users.
    get users() {
      return [...users.values(), ...(guest && !users.has(guest.userId) ? [guest] : [])].map(policyUser);
    },
    environment: registry.policyEnvironment,
    now,
  };
}

/** A parent and its sub-organizations have a share of what is kept in memory together. */
function tenantOf({ organizationId, parentOrganizationId }: OrganizationView): string {
  return parentOrganizationId ?? organizationId;
}

function policyUser(user: User): PolicyUser {
  return {
    userId: user.userId,
    userName: user.userName,
    ...(user.userEmail ? { email: user.userEmail } : {}),
    tags: user.userTags,
    credentials: credentialsOf(user),
  };
}

function credentialsOf(user: User): PolicyCredential[] {
  return [
    ...user.apiKeys.map((key) => apiKeyCredential(user, key)),
    ...user.authenticators.map((one) => authenticatorCredential(user, one)),
  ];
}

/** The limits that a decision holds to, in the organization and where that founds another. */
export function limitsToCheck({
  organization: { parentOrganizationId },
  limits: set,
  rules,
}: Pick<Bench, 'organization' | 'limits' | 'rules'>): LimitsToCheck {
  return {
    limits: limitsInForce(parentOrganizationId !== undefined, set?.organization, rules),
    subOrganizationLimits: limitsInForce(true, set?.subOrganizations, rules),
  };
}

function execute(
  bench: Bench,
  definition: AnyActivity,
  intent: object,
  activityId: string,
  { userId: submitterId, credentialId, attestation }: Vote,
  prepared: Prepared,
  word?: Word,
) {
  const { registry, organization, now, rules = rulesNumber } = bench;
  const limits = limitsToCheck(bench);
  definition.check?.(intent, organization, limits);
  if (prepared && 'refusal' in prepared) throw prepared.refusal;
  let count = 0;
  const context: DecideContext = {
    organization,
    activityId,
    submitterId,
    credentialId,
    ...(attestation ? { attestation } : {}),
    now,
    newId: () => derivedId(activityId, String(count++)),
    policyEnvironment: registry.policyEnvironment,
    rules,
    ...limits,
  };
  const outcome = definition.decide(intent, context, prepared?.value);
  // By rules 1 and 2 each verb had asked for itself, and some did not.
  if (rules >= 3) checkLimits(organization, outcome.events, limits.limits);
  // Not while it is only tried out: the word that it lacks may still come.
  if (word) checkQuorumMembers(organization, outcome.events, word, 'login' in outcome ? outcome.login : undefined);
  if (!('leavesUnreachable' in outcome && outcome.leavesUnreachable)) {
    checkQuorumReachable(organization, outcome.events, now);
  }
  return outcome;
}

function afterwardsOf(definition: AnyActivity, prepared: Prepared) {
  if (!definition.afterwards || !prepared || 'refusal' in prepared) return {};
  return { afterwards: (ports: PreparePorts) => definition.afterwards?.(prepared.value, ports) };
}

function decisionOf(
  { voteId }: Vote,
  { outcome, by, evaluations }: Authorization,
  { revision, rules = rulesNumber, limits }: Bench,
): Decision {
  return { voteId, outcome, by, policies: evaluations, revision, rules, ...(limits ? { limits } : {}) };
}

function endOf(
  activityId: string,
  pending: ActivitySnapshot,
  effects: { readonly result: object } | { readonly failure: CoordinatorError },
): ActivityEvent {
  if ('failure' in effects) return failed(activityId, pending, effects.failure);
  const status = activityStatus(afterEffects(pending, 'completed'));
  return { type: 'ActivityCompleted', data: { activityId, status, result: { ...effects.result } } };
}

function failed(activityId: string, pending: ActivitySnapshot, { code, message }: CoordinatorError): ActivityEvent {
  const status = activityStatus(afterEffects(pending, 'failed'));
  return { type: 'ActivityFailed', data: { activityId, status, failure: { code, message } } };
}
