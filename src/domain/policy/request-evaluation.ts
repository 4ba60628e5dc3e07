import { OutOfSteps, Steps, weights } from '../steps.js';
import { Voters } from './consensus.js';
import type { Reading } from './doubt.js';
import { evaluate, type Scope } from './evaluate.js';
import { ClausesRead } from './language.js';
import { approvalNamespaces, type PolicyEnvironment } from './namespaces.js';
import { PartQuestion, type Answer, type DecidedByVotes } from './part-evaluation.js';
import { policySetOf, type PolicySet } from './policy-set.js';
import { rootsOf } from './roots.js';
import { PolicyError, type CheckedExpression } from './syntax.js';
import {
  Unreadable,
  type Approval,
  type AuthorizationRequest,
  type Clause,
  type Policy,
  type PolicyUser,
  type PolicyValue,
  type RequestPart,
  type UserApproval,
} from './types.js';

/** The organization at the revision of the decision. `now` is milliseconds since the epoch. */
export interface AuthorizationContext {
  readonly policies: Iterable<Policy>;
  readonly rootQuorum: { readonly threshold: number; readonly userIds: readonly string[] };
  readonly users: Iterable<PolicyUser>;
  /** One of `users`, if that is faster than searching all of them. */
  readonly user?: (userId: string) => PolicyUser | undefined;
  readonly environment: PolicyEnvironment;
  readonly now: number;
  /** The request's remaining budget; by default, all of it. */
  readonly steps?: Steps | undefined;
  /** Clauses parsed for other requests of the same page. */
  readonly clauses?: ClausesRead | undefined;
  /** Who pays for the memory of compiled clauses. */
  readonly tenant?: string;
}

/** What to decide on: the payloads of a request, or the request itself. */
export type Part = { readonly name?: string } & Pick<AuthorizationRequest, 'resources'>;

/** What is decided on, one by one. */
export function partsOf({ resources, parts }: AuthorizationRequest): readonly Part[] {
  return parts && parts.length > 0 ? parts : [{ resources }];
}

/** The request with other resources, and without parts. */
export function withResources(
  { activity, submitterId, rootQuorumOnly, ownCredentials }: AuthorizationRequest,
  resources: AuthorizationRequest['resources'],
): AuthorizationRequest {
  return { activity, resources, submitterId, rootQuorumOnly, ownCredentials };
}

const noNames: ReadonlySet<string> = new Set();

/** The names whose values differ between payloads. */
function differingNames(parts: readonly RequestPart[] = []): ReadonlySet<string> {
  if (parts.length < 2) return noNames;
  const [first, ...others] = parts;
  const names = new Set<string>();
  for (const { resources } of others) {
    for (const name of Object.keys({ ...first?.resources, ...resources })) {
      if (resources[name] !== first?.resources[name]) names.add(name);
    }
  }
  return names;
}

/** A consensus, and its value for the approvals so far. */
export interface ConsensusReading {
  readonly expression: CheckedExpression;
  readonly reading: Reading;
  /** No approval at all is no consensus, whatever the expression says of an empty list. */
  readonly isMet: boolean;
}

/** One request in one state of the organization. Builds nothing before a policy reads it. */
export class Question {
  private readonly values = new Map<string, PolicyValue | undefined>();
  private consensuses: Map<string, ConsensusReading | Unreadable> | undefined;
  private readonly differing: ReadonlySet<string>;
  private shared: Map<CheckedExpression, boolean> | undefined;
  private readonly steps: Steps;
  private readonly clauses: ClausesRead;
  private knownVoters: Voters | undefined;
  private knownApprovals: readonly UserApproval[] | undefined;
  private knownUsers: readonly PolicyUser[] | undefined;
  private readonly policies: readonly Policy[];
  private knownInOrder: readonly Policy[] | undefined;
  private knownAsked: readonly Policy[] | undefined;
  private placesAsked: readonly number[] | 'as they are' | undefined;
  private readonly tenant: string;
  /** What policies say of the parts that are asked about once the steps are used up. */
  readonly answersOnceSpent: OnceSpent<readonly Answer[]>;
  /** What votes decide about them. */
  readonly votesOnceSpent: OnceSpent<DecidedByVotes>;

  constructor(
    readonly request: AuthorizationRequest,
    private readonly approvals: readonly Approval[],
    readonly context: AuthorizationContext,
  ) {
    const { environment, tenant = '' } = context;
    this.tenant = tenant;
    this.steps = context.steps ?? new Steps();
    this.clauses = context.clauses ?? new ClausesRead(environment, tenant);
    this.policies = listed(context.policies);
    this.differing = differingNames(request.parts);
    const cost = (): number => weights.policyAsked * this.inOrder.length;
    this.answersOnceSpent = new OnceSpent(this.steps, cost);
    this.votesOnceSpent = new OnceSpent(this.steps, cost);
  }

  /** `part` is one payload of the request, or all of it. */
  about(part: Part): PartQuestion {
    const { resources = this.request.resources } = part;
    return new PartQuestion(this, part, withResources(this.request, resources));
  }

  /** The policies that are evaluated, in the order in which they are. */
  get inOrder(): readonly Policy[] {
    this.knownInOrder ??= this.thatCouldApply();
    return this.knownInOrder;
  }

  /** The same policies, in the order in which the organization has them. */
  get asked(): readonly Policy[] {
    this.knownAsked ??= this.among.asPlaced(this.inOrder);
    return this.knownAsked;
  }

  /** What was found for each of the policies `inOrder`, in the order of `asked`. */
  asPlaced<Found>(found: readonly Found[]): readonly Found[] {
    this.placesAsked ??= this.placesInOrder();
    return this.placesAsked === 'as they are' ? found : this.placesAsked.map((place) => found[place]!);
  }

  private placesInOrder(): readonly number[] | 'as they are' {
    if (this.asked.every((policy, place) => policy === this.inOrder[place])) return 'as they are';
    const places = new Map(this.inOrder.map((policy, place) => [policy, place]));
    return this.asked.map((policy) => places.get(policy)!);
  }

  /** All policies of the organization, of which only those that could apply are asked. */
  get among(): PolicySet {
    return policySetOf(this.policies, this.context.environment, this.tenant);
  }

  private thatCouldApply(): readonly Policy[] {
    const set = this.among;
    try {
      this.clauses.readConditionsOf(set, this.steps);
    } catch (error) {
      if (!(error instanceof OutOfSteps)) throw error;
      // What cannot be read excludes nothing: each of them is in doubt.
      return set.inOrder;
    }
    return set.thatCouldApplyTo(this.request.activity);
  }

  /**
   * The value of a consensus for the approvals, or why it is invalid; it cannot differ between the parts of a request.
   */
  consensus(text: string | undefined): ConsensusReading | Unreadable {
    if (text === undefined)
      return { expression: anybody, reading: { truth: 'true' }, isMet: this.userApprovals.length > 0 };
    this.consensuses ??= new Map();
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
      // It was valid when it was written: what it would say now is unknown.
      return compiled instanceof PolicyError ? new Unreadable(compiled.message) : compiled;
    } catch (error) {
      if (error instanceof OutOfSteps) return outOf(error);
      throw error;
    }
  }

  /** Counts the evaluation of a policy; reports when the budget of the request is used up. */
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
   * The value of a condition or time for one part. A clause that refers to nothing in which the parts differ is
   * evaluated once, even for several questions about the same request, because approvals do not affect it.
   */
  read(expression: CheckedExpression, scope: Scope, part: Part): Reading {
    const readings = this.clauses.readingsOf(this.isShared(expression) ? this.request : part);
    const known = readings.get(expression);
    if (known) return known;
    const reading = evaluate(expression, scope, this.steps);
    readings.set(expression, reading);
    return reading;
  }

  private isShared(expression: CheckedExpression): boolean {
    if (this.differing.size === 0) return true;
    this.shared ??= new Map();
    let isShared = this.shared.get(expression);
    if (isShared === undefined) {
      isShared = ![...rootsOf(expression)].some((name) => this.differing.has(name));
      this.shared.set(expression, isShared);
    }
    return isShared;
  }

  /** The value of a name that conditions cannot refer to, or that is the same in all parts of a request. */
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

  /** The votes that a policy's consensus lacks. */
  missingFor({ consensus: text }: Policy): { readonly fewest?: number; readonly userIds: readonly string[] } {
    const consensus = this.consensus(text);
    if (consensus instanceof Unreadable) return { userIds: [] };
    const fewest = this.voters.fewestMore(consensus.expression);
    const userIds = this.voters.contributors(consensus.expression);
    return { ...(fewest === undefined ? {} : { fewest }), userIds };
  }

  /** Whether a DENY with this consensus, whose other clauses are true or unreadable, applies whoever approves. */
  denialBy(consensus: string): 'always' | 'never' | 'by votes' {
    const expression = this.compile(consensus, 'consensus');
    if (expression instanceof Unreadable) return 'always';
    if ([...rootsOf(expression)].some((name) => approvalNamespaces.has(name))) return 'by votes';
    const { truth } = this.voters.read(expression).reading;
    return truth === 'true' || truth === 'unreadable' ? 'always' : 'never';
  }

  /** Whether a consensus is true now, and was not with only the first approval, the submitter's. */
  isMetByVotes(text: string | undefined): boolean {
    const [first, ...later] = this.userApprovals;
    const consensus = this.consensus(text);
    if (!first || later.length === 0 || consensus instanceof Unreadable) return false;
    const before = this.votersWith([first]).read(consensus.expression).reading.truth;
    return consensus.reading.truth === 'true' && before !== 'true';
  }

  get voters(): Voters {
    this.knownVoters ??= this.votersWith(this.userApprovals);
    return this.knownVoters;
  }

  private votersWith(approvals: readonly UserApproval[]): Voters {
    const scope: Scope = { now: this.context.now, value: (name) => this.valueOf(name) };
    return new Voters(() => this.users, approvals, scope, this.steps);
  }

  get userApprovals(): readonly UserApproval[] {
    this.knownApprovals ??= this.resolveApprovals();
    return this.knownApprovals;
  }

  private get users(): readonly PolicyUser[] {
    this.knownUsers ??= listed(this.context.users);
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

function listed<Element>(elements: Iterable<Element>): readonly Element[] {
  return Array.isArray(elements) ? (elements as readonly Element[]) : [...elements];
}

/**
 * Once the steps are used up, every policy is in doubt whatever the part is: that is found for one part and holds for
 * the others. Else a request of many payloads would cost most after it has nothing left to spend.
 */
class OnceSpent<Found> {
  private found: Found | undefined;

  /** `cost` is what asking about one part takes. */
  constructor(
    private readonly steps: Steps,
    private readonly cost: () => number,
  ) {}

  or(find: () => Found): Found {
    if (!this.steps.isSpent) return find();
    if (this.found === undefined) return (this.found = find());
    this.steps.note(this.cost());
    return this.found;
  }
}

function outOf({ budget }: OutOfSteps): Unreadable {
  return new Unreadable(`more than ${budget} steps are needed`);
}

/** The consensus of a policy without one: anyone's approval will do. */
const anybody: CheckedExpression = {
  kind: 'constant',
  value: true,
  type: { kind: 'bool' },
  at: { line: 1, column: 1 },
};
