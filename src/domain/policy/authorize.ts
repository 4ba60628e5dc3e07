import { Electorate } from './consensus.js';
import { evaluate, type Scope } from './evaluate.js';
import { compileClause } from './language.js';
import type { PolicyEnvironment } from './namespaces.js';
import { PolicyError, PolicyEvaluationError, type CheckedExpression } from './syntax.js';
import type {
  Approval,
  AuthorizationRequest,
  Policy,
  PolicyOutcome,
  PolicyUser,
  PolicyValue,
  UserApproval,
} from './types.js';

export type { Approval, AuthorizationRequest, PolicyCredential, PolicyUser } from './types.js';

/** The organization at the revision decided at. `now` is milliseconds since the epoch. */
export interface AuthorizationContext {
  readonly policies: Iterable<Policy>;
  readonly rootQuorum: { readonly threshold: number; readonly userIds: readonly string[] };
  readonly users: Iterable<PolicyUser>;
  readonly environment: PolicyEnvironment;
  readonly now: number;
}

/** The decision, what it rests on, and what each policy said, in the order of `policies`. */
export interface Authorization {
  readonly outcome: 'allow' | 'deny-explicit' | 'deny-implicit' | 'consensus-needed';
  readonly by: 'root-quorum' | 'policy' | 'own-credentials' | 'none';
  readonly evaluations: readonly { policyId: string; outcome: PolicyOutcome; error?: string }[];
}

/**
 * Decides one request (client protocol 9.4 and 9.5, design section 5). `approvals` are the live ones in vote order. Only
 * the first of a user counts, only with a credential of that user, and for policies only of users in `context.users`. An error
 * never allows, and without an approval nothing is allowed.
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

  const hearing = new Hearing(request, approvals, context);
  const opinions: Opinion[] = [];
  for (const policy of context.policies) opinions.push(hearing.opinionOf(policy));
  const evaluations = opinions.map(({ evaluation }) => evaluation);
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
    hearing.hasApproved(request.submitterId) &&
    (request.ownCredentials === 'session' || !opinions.some(({ isSpokenTo }) => isSpokenTo))
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
  const hearing = new Hearing(request, approvals, context);
  const contributors: string[] = [];
  for (const policy of context.policies) {
    if (policy.effect === 'EFFECT_ALLOW') contributors.push(...hearing.contributorsTo(policy));
    else if (hearing.opinionOf(policy).evaluation.outcome === 'OUTCOME_DENY_EXPLICIT') return eligible;
  }
  for (const userId of contributors) eligible.add(userId);
  return eligible;
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

/** What one policy says. */
interface Opinion {
  readonly evaluation: Authorization['evaluations'][number];
  /** It is an ALLOW with a condition of its own that is true, and its consensus is not met. */
  readonly isSpokenTo: boolean;
}

/** The clauses of one policy that speak now, or why there are none. */
type Clauses =
  | { readonly kind: 'inactive' }
  | { readonly kind: 'error'; readonly error: string; readonly isConditionTrue: boolean }
  | {
      readonly kind: 'clauses';
      readonly isConditionTrue: boolean;
      readonly consensus: CheckedExpression;
      readonly isConsensusMet: boolean;
    };

/** One request under one state of the organization. Makes nothing before a policy asks for it. */
class Hearing {
  private readonly values = new Map<string, PolicyValue | undefined>();
  private readonly scope: Scope;
  private knownElectorate: Electorate | undefined;
  private knownApprovals: readonly UserApproval[] | undefined;
  private knownUsers: readonly PolicyUser[] | undefined;

  constructor(
    private readonly request: AuthorizationRequest,
    private readonly approvals: readonly Approval[],
    private readonly context: AuthorizationContext,
  ) {
    this.scope = { now: context.now, value: (name) => this.valueOf(name) };
  }

  hasApproved(userId: string): boolean {
    return this.userApprovals.some(({ user }) => user.userId === userId);
  }

  opinionOf(policy: Policy): Opinion {
    const { policyId, effect } = policy;
    const clauses = this.clausesOf(policy);
    const isAllow = effect === 'EFFECT_ALLOW';
    const isSpeaking = isAllow && policy.condition !== undefined;
    if (clauses.kind === 'inactive') {
      return { evaluation: { policyId, outcome: 'OUTCOME_TIME_INACTIVE' }, isSpokenTo: false };
    }
    const { isConditionTrue } = clauses;
    if (clauses.kind === 'error') {
      const { error } = clauses;
      return { evaluation: { policyId, outcome: 'OUTCOME_ERROR', error }, isSpokenTo: isSpeaking && isConditionTrue };
    }
    const { consensus, isConsensusMet } = clauses;
    let outcome: PolicyOutcome = 'OUTCOME_DENY_IMPLICIT';
    if (isConditionTrue && isConsensusMet) outcome = isAllow ? 'OUTCOME_ALLOW' : 'OUTCOME_DENY_EXPLICIT';
    else if (isAllow && isConditionTrue && this.isWaiting(consensus)) outcome = 'OUTCOME_REQUIRES_CONSENSUS';
    return { evaluation: { policyId, outcome }, isSpokenTo: isSpeaking && isConditionTrue && !isConsensusMet };
  }

  /** Ids of the users who can matter to this ALLOW policy, if votes are all that it may lack. */
  contributorsTo(policy: Policy): readonly string[] {
    const clauses = this.clausesOf(policy);
    if (clauses.kind !== 'clauses' || !clauses.isConditionTrue) return [];
    const { consensus, isConsensusMet } = clauses;
    return isConsensusMet || this.electorate.isReachable(consensus) ? this.electorate.contributors(consensus) : [];
  }

  /** Whether votes of others may still fulfil the consensus, and the submitter's is one that counts. */
  private isWaiting(consensus: CheckedExpression): boolean {
    return this.electorate.contributes(consensus, this.request.submitterId) && this.electorate.isReachable(consensus);
  }

  private clausesOf({ condition, consensus, time }: Policy): Clauses {
    let isConditionTrue = false;
    try {
      if (time !== undefined && !this.isTrue(time, 'time')) return { kind: 'inactive' };
      isConditionTrue = condition === undefined || this.isTrue(condition, 'condition');
      const compiled =
        consensus === undefined ? anybody : compileClause(consensus, 'consensus', this.context.environment);
      const isConsensusMet = this.electorate.isSatisfied(compiled);
      return { kind: 'clauses', isConditionTrue, consensus: compiled, isConsensusMet };
    } catch (error) {
      if (error instanceof PolicyEvaluationError || error instanceof PolicyError) {
        return { kind: 'error', error: error.message, isConditionTrue };
      }
      throw error;
    }
  }

  private isTrue(text: string, clause: 'condition' | 'time'): boolean {
    return evaluate(compileClause(text, clause, this.context.environment), this.scope) === true;
  }

  private valueOf(name: string): PolicyValue | undefined {
    if (this.values.has(name)) return this.values.get(name);
    const namespace = this.context.environment.namespaces.get(name);
    const value = namespace?.value(this.request, this.userApprovals, this.context);
    this.values.set(name, value);
    return value;
  }

  private get electorate(): Electorate {
    this.knownElectorate ??= new Electorate(this.users, this.userApprovals, this.scope);
    return this.knownElectorate;
  }

  private get users(): readonly PolicyUser[] {
    const { users } = this.context;
    this.knownUsers ??= Array.isArray(users) ? (users as readonly PolicyUser[]) : [...users];
    return this.knownUsers;
  }

  private get userApprovals(): readonly UserApproval[] {
    this.knownApprovals ??= this.resolveApprovals();
    return this.knownApprovals;
  }

  private resolveApprovals(): UserApproval[] {
    const resolved: UserApproval[] = [];
    for (const { userId, credential } of this.approvals) {
      if (credential.userId !== userId || resolved.some(({ user }) => user.userId === userId)) continue;
      const user = this.users.find((one) => one.userId === userId);
      if (user) resolved.push({ user, credential });
    }
    return resolved;
  }
}

/** The consensus of a policy that has none: anybody's approval will do. */
const anybody: CheckedExpression = {
  kind: 'constant',
  value: true,
  type: { kind: 'bool' },
  at: { line: 1, column: 1 },
};
