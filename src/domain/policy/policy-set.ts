import { attributes, demandsOf, isExcluded, type ActivityAttributes, type Demands } from './demands.js';
import { readClause } from './language.js';
import type { PolicyEnvironment } from './namespaces.js';
import type { Evaluation } from './part-evaluation.js';
import { PolicyError } from './syntax.js';
import type { Policy } from './types.js';

/** What is known of a policy before any request, and what reading its condition costs. */
interface Known {
  readonly environment: PolicyEnvironment;
  readonly demands: Demands;
  readonly parts: number;
}

/** Pure functions of policies, by their identity: a policy that changes is another object. */
const knownPolicies = new WeakMap<Policy, Known>();
/** By their last policy. */
const knownSets = new WeakMap<Policy, PolicySet>();

/**
 * The policies of an organization, indexed by what their conditions demand of an activity. Keeps no compiled clause:
 * those have a memory of their own, with a share for each tenant.
 */
export class PolicySet {
  /** In the order of their ids, so that their history does not determine for which of them the steps run out. */
  readonly inOrder: readonly Policy[];
  /** The texts of all conditions. A request reads each of them, whether or not its policy can apply. */
  readonly conditions: ReadonlySet<string>;
  readonly characters: number;
  readonly parts: number;
  private readonly demands: readonly Demands[];
  private readonly positions: ReadonlyMap<Policy, number>;
  /** Places of policies by the attribute that they are found by, and its value. */
  private readonly places: readonly {
    readonly name: (typeof attributes)[number];
    readonly of: Map<string, number[]>;
  }[] = attributes.map((name) => ({ name, of: new Map() }));
  /** Places of the policies that are found by no attribute. */
  private readonly open: number[] = [];

  constructor(
    /** As the organization has them. */
    readonly policies: readonly Policy[],
    readonly environment: PolicyEnvironment,
    tenant: string,
  ) {
    this.inOrder = [...policies].sort(byId);
    const known = this.inOrder.map((policy) => knownOf(policy, environment, tenant));
    this.positions = new Map(policies.map((policy, position) => [policy, position]));
    this.demands = known.map(({ demands }) => demands);
    const texts = new Map<string, number>();
    for (const [place, { condition }] of this.inOrder.entries()) {
      if (condition !== undefined) texts.set(condition, known[place]!.parts);
      this.file(place);
    }
    this.conditions = new Set(texts.keys());
    this.characters = [...texts.keys()].reduce((sum, text) => sum + text.length, 0);
    this.parts = [...texts.values()].reduce((sum, parts) => sum + parts, 0);
  }

  /** The policies whose condition can come out other than false for an activity, in the order of their ids. */
  thatCouldApplyTo(activity: ActivityAttributes): readonly Policy[] {
    const found = [...this.open];
    for (const { name, of } of this.places) {
      if (of.size === 0) continue;
      const value = activity[name];
      if (value !== undefined) found.push(...(of.get(value) ?? []));
      // What is not there is unreadable, so it excludes nothing; a policy may be filed under several values.
      else found.push(...new Set([...of.values()].flat()));
    }
    const fitting = found.filter((place) => !isExcluded(this.demands[place]!, activity));
    if (fitting.length === this.inOrder.length) return this.inOrder;
    return fitting.sort((one, other) => one - other).map((place) => this.inOrder[place]!);
  }

  /** Some of the policies, in the order in which the organization has them. */
  asPlaced(some: readonly Policy[]): readonly Policy[] {
    if (some.length === this.policies.length) return this.policies;
    return [...some].sort((one, other) => this.positions.get(one)! - this.positions.get(other)!);
  }

  private file(place: number): void {
    const demands = this.demands[place]!;
    const by = this.places.find(({ name }) => demands[name]?.isOnly);
    // What no value fits is found for an activity that has none.
    if (!by || demands[by.name]!.values.size === 0) {
      this.open.push(place);
      return;
    }
    for (const value of demands[by.name]!.values) {
      const places = by.of.get(value);
      if (places) places.push(place);
      else by.of.set(value, [place]);
    }
  }
}

/**
 * The set of these policies. The index is made once, and again when one of them is not the same any more; `tenant` pays
 * for the memory of compiled clauses.
 */
export function policySetOf(policies: Iterable<Policy>, environment: PolicyEnvironment, tenant: string): PolicySet {
  const input: readonly Policy[] = Array.isArray(policies) ? (policies as readonly Policy[]) : [...policies];
  const last = input.at(-1);
  const known = last && knownSets.get(last);
  if (known?.environment === environment && isSame(known.policies, input)) return known;
  const set = new PolicySet(input, environment, tenant);
  if (last) knownSets.set(last, set);
  return set;
}

function isSame(some: readonly Policy[], others: readonly Policy[]): boolean {
  if (some.length !== others.length) return false;
  for (let place = 0; place < some.length; place++) if (some[place] !== others[place]) return false;
  return true;
}

function knownOf(policy: Policy, environment: PolicyEnvironment, tenant: string): Known {
  let known = knownPolicies.get(policy);
  if (known?.environment !== environment) {
    known = { environment, ...read(policy, environment, tenant) };
    knownPolicies.set(policy, known);
  }
  return known;
}

function read({ condition }: Policy, environment: PolicyEnvironment, tenant: string): Omit<Known, 'environment'> {
  if (condition === undefined) return { demands: {}, parts: 0 };
  const { compiled, parts } = readClause(condition, 'condition', environment, tenant);
  // What is not valid any more is unreadable for every request.
  return { demands: compiled instanceof PolicyError ? {} : demandsOf(compiled), parts };
}

function byId(a: Policy, b: Policy): number {
  return a.policyId < b.policyId ? -1 : 1;
}

/**
 * The outcomes of all policies, in the order of `policies`, from those of the policies that could apply: a policy whose
 * condition demands another activity does not apply.
 */
export function withTheRest(
  evaluations: readonly Evaluation[],
  policies: Iterable<Pick<Policy, 'policyId'>>,
): readonly Evaluation[] {
  const recorded = new Map<string, Evaluation[]>();
  for (const evaluation of evaluations) {
    const { policyId } = evaluation;
    const ofPolicy = recorded.get(policyId);
    if (ofPolicy) ofPolicy.push(evaluation);
    else recorded.set(policyId, [evaluation]);
  }
  return Array.from(policies, ({ policyId }) => recorded.get(policyId) ?? [notApplying(policyId)]).flat();
}

function notApplying(policyId: string): Evaluation {
  return { policyId, outcome: 'OUTCOME_DENY_IMPLICIT' };
}
