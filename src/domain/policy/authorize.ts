import { rulesNumber } from '../activity/rules.js';
import { MeterSpent, OutOfSteps, Steps } from '../steps.js';
import { Voters, type VoteBounds } from './consensus.js';
import { decidingPart, type DecidingPart } from './deciding-part.js';
import { conjunction, evaluate, isCertain, type Reading, type Scope } from './evaluate.js';
import { ClausesRead } from './language.js';
import type { PolicyEnvironment } from './namespaces.js';
import { rootsOf } from './roots.js';
import { PolicyError, type CheckedExpression } from './syntax.js';
import {
  Unreadable,
  unreadable,
  type Approval,
  type AuthorizationRequest,
  type Clause,
  type Doubt,
  type Policy,
  type PolicyOutcome,
  type PolicyUser,
  type PolicyValue,
  type RequestPart,
  type UserApproval,
} from './types.js';

export type { Approval, AuthorizationRequest, PolicyCredential, PolicyUser } from './types.js';

/** The organization at the revision decided at. `now` is milliseconds since the epoch. */
export interface AuthorizationContext {
  readonly policies: Iterable<Policy>;
  readonly rootQuorum: { readonly threshold: number; readonly userIds: readonly string[] };
  readonly users: Iterable<PolicyUser>;
  /** One of `users`, where that is faster than to look through all of them. */
  readonly user?: (userId: string) => PolicyUser | undefined;
  readonly environment: PolicyEnvironment;
  readonly now: number;
  /** Number of the rules that decide; today's unless history is decided again. */
  readonly rules?: number;
  /** What the request may still spend; all of it unless told. */
  readonly steps?: Steps;
  /** Clauses that were read for other requests of the same page. */
  readonly clauses?: ClausesRead;
  /** Who pays for the memory of compiled clauses. */
  readonly tenant?: string;
}

/** By rules 1 each clause had a budget of its own, and nothing had one together; questions about votes had these bounds. */
const voteBoundsOfRules1: VoteBounds = { question: 200_000, all: 1_000_000 };

/** What one policy said. */
interface Evaluation {
  readonly policyId: string;
  readonly outcome: PolicyOutcome;
  /** Why it is in doubt. */
  readonly error?: string;
  /**
   * `unreadable`: something that the policy speaks of is there and cannot be read; a DENY then applies. `not-applicable`:
   * the request has no such thing. An ALLOW in doubt never applies.
   */
  readonly doubt?: Doubt['kind'];
  /** Which payload it said it of, where it did not say the same of all. */
  readonly of?: string;
}

/** The decision, what it rests on, and what each policy said, in the order of `policies`. */
export interface Authorization {
  readonly outcome: 'allow' | 'deny-explicit' | 'deny-implicit' | 'consensus-needed';
  readonly by: 'root-quorum' | 'policy' | 'own-credentials' | 'none';
  readonly evaluations: readonly Evaluation[];
}

/**
 * Decides one request (client protocol 9.4 and 9.5, design section 5). `approvals` are the live ones in vote order. Only
 * the first of a user counts, only with a credential of that user, and for policies only of users in `context.users`. A doubt
 * never allows, and denies where a DENY has it; without an approval nothing is allowed. Of several payloads each is decided
 * alone, and the worst counts.
 */
export function authorize(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): Authorization {
  const { rootQuorum } = context;
  if (isRootQuorumMet(rootQuorum, approvals)) return { outcome: 'allow', by: 'root-quorum', evaluations: [] };
  const isRootPathOpen = isRootPossible(rootQuorum, request.submitterId);
  if (request.rootQuorumOnly) {
    return { outcome: isRootPathOpen ? 'consensus-needed' : 'deny-implicit', by: 'none', evaluations: [] };
  }
  const question = new Question(request, approvals, context);
  return combined(
    partsOf(request).map((part) => ({
      of: part.name,
      ...authorizePart(request, question.about(part), isRootPathOpen),
    })),
  );
}

function authorizePart(request: AuthorizationRequest, ofPart: PartQuestion, isRootPathOpen: boolean): Authorization {
  const { answers } = ofPart;
  const evaluations = answers.map(({ evaluation }) => evaluation);
  const says = (outcome: PolicyOutcome) => evaluations.some((evaluation) => evaluation.outcome === outcome);

  // The root quorum stands above denials, so a member of it may still collect the others' approvals.
  if (says('OUTCOME_DENY_EXPLICIT')) {
    return isRootPathOpen
      ? { outcome: 'consensus-needed', by: 'none', evaluations }
      : { outcome: 'deny-explicit', by: 'policy', evaluations };
  }
  if (says('OUTCOME_ALLOW')) return { outcome: 'allow', by: 'policy', evaluations };
  if (
    request.ownCredentials &&
    ofPart.hasApproved(request.submitterId) &&
    (request.ownCredentials === 'session' || !answers.some(({ isSpokenTo }) => isSpokenTo))
  ) {
    return { outcome: 'allow', by: 'own-credentials', evaluations };
  }
  const isOpen = isRootPathOpen || says('OUTCOME_REQUIRES_CONSENSUS');
  return { outcome: isOpen ? 'consensus-needed' : 'deny-implicit', by: 'none', evaluations };
}

/**
 * Ids of the users whose approval can count now: the root quorum's members while its way is open, and whoever can matter
 * to an ALLOW policy that applies but for its consensus and that votes can still fulfil. Who has approved already is
 * named too: whether one may vote twice is not asked here.
 */
export function eligibleApprovers(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): ReadonlySet<string> {
  const eligible = new Set<string>();
  if (isRootPossible(context.rootQuorum, request.submitterId)) {
    for (const userId of context.rootQuorum.userIds) eligible.add(userId);
  }
  if (request.rootQuorumOnly) return eligible;
  const question = new Question(request, approvals, context);
  const contributors: string[] = [];
  for (const part of partsOf(request)) {
    const ofPart = question.about(part);
    if (ofPart.answers.some(({ evaluation }) => evaluation.outcome === 'OUTCOME_DENY_EXPLICIT')) return eligible;
    const toPart = ofPart.contributors;
    // What no vote can get for one payload, none can get for the request.
    if (toPart.length === 0) return eligible;
    contributors.push(...toPart);
  }
  for (const userId of contributors) eligible.add(userId);
  return eligible;
}

/**
 * Whether anything could allow a request, or make it wait for votes, whatever its resources are: they are not looked at.
 * Asked before they are read, where that is costly: who may do nothing pays for nothing.
 */
export function couldAllow(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): boolean {
  const { rootQuorum } = context;
  if (isRootQuorumMet(rootQuorum, approvals) || isRootPossible(rootQuorum, request.submitterId)) return true;
  if (request.rootQuorumOnly) return false;
  if (request.ownCredentials) return true;
  const { parts: _parts, ...rest } = request;
  const resources = unreadable('it was not read');
  return new Question({ ...rest, resources }, approvals, context).about({ resources }).couldAllow();
}

/**
 * Whether the approval of a user could count, whatever the resources of the request are: they are not looked at. Asked before
 * they are read for somebody who only wants to know.
 */
export function couldContribute(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
  userId: string,
): boolean {
  const { rootQuorum } = context;
  if (rootQuorum.userIds.includes(userId) && isRootPossible(rootQuorum, request.submitterId)) return true;
  if (request.rootQuorumOnly) return false;
  const { parts: _parts, ...rest } = request;
  const resources = unreadable('it was not read');
  return new Question({ ...rest, resources }, approvals, context).about({ resources }).couldAllow(userId);
}

/** Most steps that explaining a decision may take, of what the request has left: 10 ms. */
const maxStepsToExplain = 100_000;
/** Most characters of policies' texts in one explanation. */
const maxExplained = 8_192;

/** What decided first, as there is not room for every policy. */
const worthTelling: readonly PolicyOutcome[] = [
  'OUTCOME_DENY_EXPLICIT',
  'OUTCOME_REQUIRES_CONSENSUS',
  'OUTCOME_ERROR',
  'OUTCOME_DENY_IMPLICIT',
  'OUTCOME_TIME_INACTIVE',
];

/**
 * For each evaluation of a decision just made, the part of the policy's text that decided it. Undefined for an ALLOW that
 * applies, for a DENY on everything, and for what is too much to tell: an explanation has a budget, and changes no decision.
 */
export function explain(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
  evaluations: readonly Evaluation[],
): readonly (DecidingPart | undefined)[] {
  const steps = (context.steps ?? new Steps()).upTo(maxStepsToExplain);
  const question = new Question(request, approvals, { ...context, steps });
  const policies = new Map(Array.from(context.policies, (policy) => [policy.policyId, policy]));
  const parts = partsOf(request);
  const asked = new Map<Part, PartQuestion>();
  const told = new Map<Evaluation, DecidingPart>();
  let room = maxExplained;
  const inOrder = evaluations.toSorted((a, b) => worthTelling.indexOf(a.outcome) - worthTelling.indexOf(b.outcome));
  for (const evaluation of inOrder) {
    const policy = policies.get(evaluation.policyId);
    const part = parts.find(({ name }) => name !== undefined && name === evaluation.of) ?? parts[0];
    if (!policy || !part) continue;
    const ofPart = asked.get(part) ?? question.about(part);
    asked.set(part, ofPart);
    const because = withinSteps(() => ofPart.decidingPart(policy, evaluation));
    // What ran out of steps on the way is not what it seems.
    if (steps.isSpent || steps.left <= 0) break;
    if (!because || because.text.length > room) continue;
    room -= because.text.length;
    told.set(evaluation, because);
  }
  return evaluations.map((evaluation) => told.get(evaluation));
}

/** Nothing, where the steps of the decision or of its request are used up: what was decided stands without a reason. */
function withinSteps<Answer>(ask: () => Answer): Answer | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof OutOfSteps || error instanceof MeterSpent) return undefined;
    throw error;
  }
}

/** What votes could still bring about. */
export interface VotesMissing {
  /** By the policies that wait for them, one of which is enough; for each payload, where those differ. */
  readonly policies: readonly {
    readonly policyId: string;
    readonly of?: string;
    /** The part of its consensus that is not met. */
    readonly because?: DecidingPart;
    /** Fewest approvals that would do; undefined where that takes too long to tell. */
    readonly fewest?: number;
    /** Whose could count. */
    readonly userIds: readonly string[];
  }[];
  /** By the root quorum, where the submitter belongs to it. */
  readonly rootQuorum?: { readonly fewest: number; readonly userIds: readonly string[] };
}

/** What a request that waits for votes waits for, as far as its budget suffices to tell. */
export function votesMissing(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): VotesMissing {
  const approved = new Set(approvals.map(({ userId }) => userId));
  const { threshold, userIds } = context.rootQuorum;
  const members = userIds.filter((userId) => !approved.has(userId));
  const rootQuorum = isRootPossible(context.rootQuorum, request.submitterId)
    ? { rootQuorum: { fewest: threshold - (userIds.length - members.length), userIds: members } }
    : {};
  if (request.rootQuorumOnly) return { policies: [], ...rootQuorum };
  const steps = (context.steps ?? new Steps()).upTo(maxStepsToExplain);
  const question = new Question(request, approvals, { ...context, steps });
  const found: VotesMissing['policies'][number][] = [];
  for (const part of partsOf(request)) {
    const ofPart = question.about(part);
    const evaluations = ofPart.answers.map(({ evaluation }) => evaluation);
    if (evaluations.some(({ outcome }) => outcome === 'OUTCOME_DENY_EXPLICIT')) return { policies: [], ...rootQuorum };
    if (evaluations.some(({ outcome }) => outcome === 'OUTCOME_ALLOW')) continue;
    for (const policy of context.policies) {
      const evaluation = evaluations.find(({ policyId }) => policyId === policy.policyId);
      if (evaluation?.outcome !== 'OUTCOME_REQUIRES_CONSENSUS') continue;
      if (steps.left <= 0) return { policies: found, ...rootQuorum };
      const because = ofPart.decidingPart(policy, evaluation);
      const missing = question.missingFor(policy);
      found.push({
        policyId: policy.policyId,
        ...(part.name === undefined ? {} : { of: part.name }),
        ...(because ? { because } : {}),
        ...missing,
        userIds: missing.userIds.filter((userId) => !approved.has(userId)),
      });
    }
  }
  return { policies: alikeOnce(found, partsOf(request).length), ...rootQuorum };
}

/** What is missing for every payload is said once. */
function alikeOnce(found: VotesMissing['policies'], parts: number): VotesMissing['policies'] {
  return found.flatMap((one, index) => {
    const ofPolicy = found.filter(({ policyId }) => policyId === one.policyId);
    if (ofPolicy.length < parts) return [one];
    const { of: _of, ...alike } = one;
    return found.findIndex(({ policyId }) => policyId === one.policyId) === index ? [alike] : [];
  });
}

/** What there is to decide on: the payloads of a request, or the request itself. */
type Part = { readonly name?: string } & Pick<AuthorizationRequest, 'resources'>;

function partsOf({ resources, parts }: AuthorizationRequest): readonly Part[] {
  return parts && parts.length > 0 ? parts : [{ resources }];
}

/** The names whose values are not the same in all payloads. */
function differingNames([first, ...others]: readonly RequestPart[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { resources } of others) {
    for (const name of Object.keys({ ...first?.resources, ...resources })) {
      if (resources[name] !== first?.resources[name]) names.add(name);
    }
  }
  return names;
}

/** From the best to the worst. */
const severity = ['allow', 'consensus-needed', 'deny-implicit', 'deny-explicit'] as const;

/** The decision about several payloads: the worst about any. What a policy said of all alike, it has said once. */
function combined(parts: readonly (Authorization & { readonly of: string | undefined })[]): Authorization {
  const [first, ...others] = parts;
  if (!first) throw new Error('there is nothing to decide on');
  if (others.length === 0) return { outcome: first.outcome, by: first.by, evaluations: first.evaluations };
  const worst = parts.reduce((a, b) => (severity.indexOf(b.outcome) > severity.indexOf(a.outcome) ? b : a));
  const evaluations = first.evaluations.flatMap((_, index) => {
    const said = parts.map(({ of, evaluations }) => ({ ...evaluations[index]!, ...(of === undefined ? {} : { of }) }));
    const distinct = new Map(said.toReversed().map((one) => [`${one.outcome} ${one.doubt ?? ''}`, one]));
    if (distinct.size === 1) {
      const { of: _of, ...alike } = said[0]!;
      return [alike];
    }
    return [...distinct.values()].toReversed();
  });
  return { outcome: worst.outcome, by: worst.by, evaluations };
}

type RootQuorum = AuthorizationContext['rootQuorum'];

function isRootQuorumMet({ threshold, userIds }: RootQuorum, approvals: readonly Approval[]): boolean {
  let count = 0;
  for (const [index, { userId, credential }] of approvals.entries()) {
    const isRepeated = approvals.findIndex((approval) => approval.userId === userId) < index;
    if (!isRepeated && credential.userId === userId && userIds.includes(userId)) count += 1;
  }
  return isThreshold(threshold) && count >= threshold;
}

function isRootPossible({ threshold, userIds }: RootQuorum, submitterId: string): boolean {
  return userIds.includes(submitterId) && isThreshold(threshold) && new Set(userIds).size >= threshold;
}

/** A threshold of zero, or none, would let anybody through: it lets nobody. */
function isThreshold(threshold: number): boolean {
  return threshold >= 1;
}

/** What one policy says of one part of a request. */
interface Answer {
  readonly evaluation: Evaluation;
  /** It is an ALLOW with a condition of its own that is true or in doubt, and it does not apply. */
  readonly isSpokenTo: boolean;
  /** Ids of the users who can matter to it, if it is an ALLOW and votes are all that it may lack. */
  contributors(): readonly string[];
}

/** A consensus, and what it is of the approvals there are. */
interface ConsensusReading {
  readonly expression: CheckedExpression;
  readonly reading: Reading;
  /** Nobody's approval is no consensus, whatever the expression says of an empty list. */
  readonly isMet: boolean;
}

/** One request under one state of the organization. Makes nothing before a policy asks for it. */
class Question {
  private readonly values = new Map<string, PolicyValue | undefined>();
  private readonly consensuses = new Map<string, ConsensusReading | Unreadable>();
  private readonly differing: ReadonlySet<string>;
  private readonly isOnOneMeter: boolean;
  private readonly steps: Steps;
  private readonly clauses: ClausesRead;
  private knownVoters: Voters | undefined;
  private knownApprovals: readonly UserApproval[] | undefined;
  private knownUsers: readonly PolicyUser[] | undefined;
  private readonly policies: readonly Policy[];

  constructor(
    readonly request: AuthorizationRequest,
    private readonly approvals: readonly Approval[],
    readonly context: AuthorizationContext,
  ) {
    const { rules = rulesNumber, environment, tenant = '' } = context;
    this.isOnOneMeter = rules >= 2;
    this.steps = this.isOnOneMeter ? (context.steps ?? new Steps()) : new Steps(Infinity);
    this.clauses = context.clauses ?? new ClausesRead(environment, tenant);
    this.policies = [...context.policies];
    this.differing = differingNames(request.parts ?? []);
  }

  /** `part` is one payload of the request, or all of it. */
  about(part: Part): PartQuestion {
    const { parts: _parts, ...request } = this.request;
    const { resources } = part;
    return new PartQuestion(this, this.policies, part, {
      ...request,
      ...(resources === undefined ? {} : { resources }),
    });
  }

  /** What a consensus is of the approvals, or why it has no meaning; it cannot differ between the parts of a request. */
  consensus(text: string | undefined): ConsensusReading | Unreadable {
    if (text === undefined)
      return { expression: anybody, reading: { truth: 'true' }, isMet: this.userApprovals.length > 0 };
    let known = this.consensuses.get(text);
    if (!known) {
      const expression = this.compile(text, 'consensus');
      known = expression instanceof Unreadable ? expression : { expression, ...this.voters.read(expression) };
      this.consensuses.set(text, known);
    }
    return known;
  }

  compile(text: string, clause: Clause): CheckedExpression | Unreadable {
    try {
      const compiled = this.clauses.read(text, clause, this.steps);
      // It had a meaning when it was written: what it would say now is not known.
      return compiled instanceof PolicyError ? new Unreadable(compiled.message) : compiled;
    } catch (error) {
      if (error instanceof OutOfSteps) return outOf(error);
      throw error;
    }
  }

  /** Counts that a policy is asked; says so when the budget of the request is used up. */
  ask(): Unreadable | undefined {
    try {
      this.steps.take('policyAsked');
      return undefined;
    } catch (error) {
      if (error instanceof OutOfSteps) return outOf(error);
      throw error;
    }
  }

  /**
   * What a condition or time is of one part. One that speaks of nothing in which the parts differ is evaluated once, also
   * for several questions about the same request: approvals are no matter to it.
   */
  read(expression: CheckedExpression, scope: Scope, part: Part): Reading {
    const isShared = [...rootsOf(expression)].every((name) => !this.differing.has(name));
    const readings = this.clauses.readingsOf(isShared ? this.request : part);
    const known = readings.get(expression);
    if (known) return known;
    const reading = evaluate(expression, scope, this.steps);
    readings.set(expression, reading);
    return reading;
  }

  /** The value of a name that a condition cannot speak of, or that does not differ between the parts of a request. */
  valueOf(name: string): PolicyValue | undefined {
    if (this.values.has(name)) return this.values.get(name);
    const value = this.namespaceValue(name, this.request);
    this.values.set(name, value);
    return value;
  }

  namespaceValue(name: string, request: AuthorizationRequest): PolicyValue | undefined {
    const namespace = this.context.environment.namespaces.get(name);
    const { userApprovals } = this;
    return namespace?.value(request, userApprovals, {
      now: this.context.now,
      user: (userId) => this.user(userId),
    });
  }

  /** What votes the consensus of a policy lacks. */
  missingFor({ consensus: text }: Policy): { readonly fewest?: number; readonly userIds: readonly string[] } {
    const consensus = this.consensus(text);
    if (consensus instanceof Unreadable) return { userIds: [] };
    const fewest = this.voters.fewestMore(consensus.expression);
    const userIds = this.voters.contributors(consensus.expression);
    return { ...(fewest === undefined ? {} : { fewest }), userIds };
  }

  get voters(): Voters {
    const scope: Scope = { now: this.context.now, value: (name) => this.valueOf(name) };
    this.knownVoters ??= new Voters(
      () => this.users,
      this.userApprovals,
      scope,
      this.steps,
      this.isOnOneMeter ? undefined : voteBoundsOfRules1,
    );
    return this.knownVoters;
  }

  get userApprovals(): readonly UserApproval[] {
    this.knownApprovals ??= this.resolveApprovals();
    return this.knownApprovals;
  }

  private get users(): readonly PolicyUser[] {
    const { users } = this.context;
    this.knownUsers ??= Array.isArray(users) ? (users as readonly PolicyUser[]) : [...users];
    return this.knownUsers;
  }

  private user(userId: string): PolicyUser | undefined {
    const { user } = this.context;
    return user ? user(userId) : this.users.find((one) => one.userId === userId);
  }

  private resolveApprovals(): UserApproval[] {
    const resolved = new Map<string, UserApproval>();
    for (const { userId, credential } of this.approvals) {
      if (credential.userId !== userId || resolved.has(userId)) continue;
      const user = this.user(userId);
      if (user) resolved.set(userId, { user, credential });
    }
    return [...resolved.values()];
  }
}

/** What the policies say of one part of a request. */
class PartQuestion {
  private readonly values = new Map<string, PolicyValue | undefined>();
  private readonly scope: Scope;
  private knownAnswers: readonly Answer[] | undefined;

  constructor(
    private readonly question: Question,
    private readonly policies: readonly Policy[],
    private readonly part: Part,
    private readonly request: AuthorizationRequest,
  ) {
    this.scope = { now: question.context.now, value: (name) => this.valueOf(name) };
  }

  hasApproved(userId: string): boolean {
    return this.question.userApprovals.some(({ user }) => user.userId === userId);
  }

  get answers(): readonly Answer[] {
    if (!this.knownAnswers) {
      // In the order of their ids, so that which of them the steps are too few for does not depend on their history.
      const inOrder = [...this.policies].sort(byId);
      const answers = new Map(inOrder.map((policy) => [policy, this.answerOf(policy)]));
      this.knownAnswers = this.policies.map((policy) => answers.get(policy)!);
    }
    return this.knownAnswers;
  }

  /** Ids of the users who can matter to some ALLOW. */
  get contributors(): readonly string[] {
    return this.answers.flatMap((answer) => answer.contributors());
  }

  /**
   * Whether some ALLOW could apply, or wait for votes, if only what it reads of the request's resources were as it wants; with
   * `userId`, whether that user's approval could matter to it.
   */
  couldAllow(userId?: string): boolean {
    return [...this.policies].sort(byId).some((policy) => {
      if (policy.effect !== 'EFFECT_ALLOW') return false;
      // What runs out of steps is for the decision itself.
      if (this.question.ask()) return true;
      const time = this.read(policy.time, 'time');
      if (!isCertain(time)) return false;
      const { truth } = this.read(policy.condition, 'condition');
      if (truth === 'false' || truth === 'not-applicable') return false;
      const consensus = this.question.consensus(policy.consensus);
      if (consensus instanceof Unreadable || consensus.reading.doubt) return false;
      if (userId !== undefined) return this.question.voters.contributes(consensus.expression, userId);
      return consensus.isMet || this.isWaiting(consensus.expression);
    });
  }

  private answerOf(policy: Policy): Answer {
    const { policyId, effect } = policy;
    const spent = this.question.ask();
    if (spent) {
      if (effect === 'EFFECT_DENY') return denial(policyId, [unreadableBy(spent)]);
      const evaluation: Evaluation = { policyId, outcome: 'OUTCOME_ERROR', ...inDoubt(spent) };
      return { ...silent(evaluation), isSpokenTo: policy.condition !== undefined };
    }
    const time = this.read(policy.time, 'time');
    if (time.truth === 'false') return silent({ policyId, outcome: 'OUTCOME_TIME_INACTIVE' });
    const condition = this.read(policy.condition, 'condition');
    const consensus = this.question.consensus(policy.consensus);
    return effect === 'EFFECT_DENY'
      ? denial(policyId, [
          time,
          condition,
          consensus instanceof Unreadable ? unreadableBy(consensus) : consensus.reading,
        ])
      : this.permission(policy, time, condition, consensus);
  }

  /** Why a policy said what it said. */
  decidingPart(policy: Policy, { outcome, doubt }: Evaluation): DecidingPart | undefined {
    const truth = truthBehind(policy, outcome, doubt);
    if (truth === undefined) return undefined;
    const isDoubted = policy.effect === 'EFFECT_ALLOW' && outcome === 'OUTCOME_ERROR';
    // An ALLOW in doubt that is false besides would not apply without the doubt either: that says more.
    const falsePart = isDoubted ? this.partThatIs('false', policy, undefined, true) : undefined;
    return falsePart ?? this.partThatIs(truth, policy, isDoubted ? doubt : undefined);
  }

  private partThatIs(
    truth: Reading['truth'],
    policy: Policy,
    doubt: Evaluation['doubt'] = undefined,
    isForGood = false,
  ): DecidingPart | undefined {
    for (const clause of ['time', 'condition', 'consensus'] as const) {
      const text = policy[clause];
      if (text === undefined || clause === skipped(policy, truth)) continue;
      const compiled = this.question.compile(text, clause);
      if (compiled instanceof Unreadable) continue;
      const isConsensus = clause === 'consensus';
      const read = (part: CheckedExpression): Reading =>
        isConsensus ? this.question.voters.read(part).reading : this.question.read(part, this.scope, this.part);
      const reading = read(compiled);
      if (doubt === undefined ? reading.truth !== truth : reading.doubt?.kind !== doubt) continue;
      // A consensus that votes may still meet is not what keeps it from applying.
      if (isForGood && isConsensus && this.isWaiting(compiled)) continue;
      return decidingPart(clause, text, compiled, read, doubt === undefined ? 'outcome' : 'doubt');
    }
    return undefined;
  }

  private permission(
    { policyId, condition: text }: Policy,
    time: Reading,
    condition: Reading,
    consensus: ConsensusReading | Unreadable,
  ): Answer {
    const isDoubtOrTrue = (['true', 'unreadable'] as const).some(
      (truth) => conjunction([time.truth, condition.truth]) === truth,
    );
    const isSpeaking = text !== undefined && isDoubtOrTrue;
    const doubts = [time.doubt, condition.doubt, consensus instanceof Unreadable ? consensus : consensus.reading.doubt];
    const doubt = doubts.find((one) => one instanceof Unreadable) ?? doubts.find((one) => one !== undefined);
    if (doubt || consensus instanceof Unreadable) {
      const evaluation: Evaluation = { policyId, outcome: 'OUTCOME_ERROR', ...inDoubt(doubt) };
      return { ...silent(evaluation), isSpokenTo: isSpeaking };
    }
    const isTrue = condition.truth === 'true';
    const { expression, isMet } = consensus;
    let outcome: PolicyOutcome = 'OUTCOME_DENY_IMPLICIT';
    if (isTrue && isMet) outcome = 'OUTCOME_ALLOW';
    else if (isTrue && this.isWaiting(expression)) outcome = 'OUTCOME_REQUIRES_CONSENSUS';
    return {
      evaluation: { policyId, outcome },
      isSpokenTo: isSpeaking && !isMet,
      contributors: () => {
        const { voters } = this.question;
        return isTrue && (isMet || voters.isReachable(expression)) ? voters.contributors(expression) : [];
      },
    };
  }

  /**
   * Whether votes of others may still fulfil the consensus, and the submitter may ask for them: its own is one that
   * counts, or the consensus says itself what the part of the requester is.
   */
  private isWaiting(consensus: CheckedExpression): boolean {
    const { voters } = this.question;
    const mayAsk = rootsOf(consensus).has('requester') || voters.contributes(consensus, this.request.submitterId);
    return mayAsk && voters.isReachable(consensus);
  }

  /** A clause that is left out restricts nothing. */
  private read(text: string | undefined, clause: 'condition' | 'time'): Reading {
    if (text === undefined) return { truth: 'true' };
    const compiled = this.question.compile(text, clause);
    return compiled instanceof Unreadable
      ? unreadableBy(compiled)
      : this.question.read(compiled, this.scope, this.part);
  }

  private valueOf(name: string): PolicyValue | undefined {
    if (this.values.has(name)) return this.values.get(name);
    const value = this.question.namespaceValue(name, this.request);
    this.values.set(name, value);
    return value;
  }
}

/** What a clause is that decides for an outcome; undefined where none does more than another. */
function truthBehind(
  { effect }: Policy,
  outcome: PolicyOutcome,
  doubt: Doubt['kind'] | undefined,
): Reading['truth'] | undefined {
  switch (outcome) {
    case 'OUTCOME_DENY_EXPLICIT':
      return doubt ?? 'true';
    case 'OUTCOME_ERROR':
      return effect === 'EFFECT_ALLOW' ? doubt : 'not-applicable';
    case 'OUTCOME_ALLOW':
      return undefined;
    default:
      return 'false';
  }
}

/** That a DENY is in force now says less than what it denies. */
function skipped({ condition, consensus }: Policy, truth: Reading['truth']): Clause | undefined {
  return truth === 'true' && (condition ?? consensus) !== undefined ? 'time' : undefined;
}

function byId(a: Policy, b: Policy): number {
  return a.policyId < b.policyId ? -1 : 1;
}

/** A DENY applies when all that it says is true, or cannot be told to be false. */
function denial(policyId: string, readings: readonly Reading[]): Answer {
  const truth = conjunction(readings.map((reading) => reading.truth));
  switch (truth) {
    case 'true':
      return silent({ policyId, outcome: 'OUTCOME_DENY_EXPLICIT' });
    case 'false':
      return silent({ policyId, outcome: 'OUTCOME_DENY_IMPLICIT' });
    default: {
      const outcome = truth === 'unreadable' ? 'OUTCOME_DENY_EXPLICIT' : 'OUTCOME_ERROR';
      const error = readings.find((reading) => reading.truth === truth)?.doubt?.reason;
      return silent({ policyId, outcome, ...(error === undefined ? {} : { error }), doubt: truth });
    }
  }
}

function silent(evaluation: Evaluation): Answer {
  return { evaluation, isSpokenTo: false, contributors: () => [] };
}

function outOf({ budget }: OutOfSteps): Unreadable {
  return new Unreadable(`more than ${budget} steps are needed`);
}

function unreadableBy(doubt: Unreadable): Reading {
  return { truth: 'unreadable', doubt };
}

function inDoubt(doubt: Doubt | undefined): Pick<Evaluation, 'error' | 'doubt'> {
  return doubt ? { error: doubt.reason, doubt: doubt.kind } : {};
}

/** The consensus of a policy that has none: anybody's approval will do. */
const anybody: CheckedExpression = {
  kind: 'constant',
  value: true,
  type: { kind: 'bool' },
  at: { line: 1, column: 1 },
};
