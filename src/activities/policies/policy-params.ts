import { presentMembers } from '../../domain/organization/event.js';
import { checkPolicyNameFree, policyNameTaken, type PolicyEvent } from '../../domain/organization/policies.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { CoordinatorError } from '../../domain/errors.js';
import { checkKnownLiterals } from '../../domain/policy/known-literals.js';
import { checkPolicyText, compileClause } from '../../domain/policy/language.js';
import { maxPolicySteps, reckoned, tooCostly, worstStepsOf } from '../../domain/policy/worst-case.js';
import { maxTextLength } from '../../domain/policy/tokens.js';
import type { PolicyEnvironment } from '../../domain/policy/namespaces.js';
import type { Clause, Policy } from '../../domain/policy/types.js';
import { Label, OneOf, Text } from '../../wire/fields.js';
import type { DecideContext } from '../define-activity.js';

/** The effect of a policy that applies. */
export const effects: readonly Policy['effect'][] = ['EFFECT_ALLOW', 'EFFECT_DENY'];

/** One new policy, for `create_policy` and in the list of `create_policies`. */
export class CreatePolicyIntentV3 {
  @Label({ about: 'The name of the policy; must be unique within the organization.' })
  policyName!: string;

  @OneOf(effects, { about: 'Effect of the policy when it applies.' })
  effect!: Policy['effect'];

  @Text({ optional: true, min: 1, max: maxTextLength, about: 'When the policy applies; if absent, to every activity.' })
  condition?: string;

  @Text({
    optional: true,
    min: 1,
    max: maxTextLength,
    about: 'Who must approve; if absent, the submitter alone is enough.',
  })
  consensus?: string;

  @Text({ optional: true, about: 'A free-form note.' })
  notes?: string;

  @Text({ optional: true, min: 1, max: maxTextLength, about: 'When the policy is active; if absent, always.' })
  time?: string;
}

/**
 * The events that create these policies, all or none, and their ids in the given order.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED, INVALID_ARGUMENT for a name that is taken or an invalid clause
 */
export function policiesCreated(
  policies: readonly CreatePolicyIntentV3[],
  context: DecideContext,
): { readonly policyIds: string[]; readonly events: PolicyEvent[] } {
  const { organization, policyEnvironment, newId, limits } = context;
  const count = organization.policies.size;
  if (count + policies.length > limits.policies) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `an organization may have ${limits.policies} policies: it has ${count}, and this request adds ${policies.length}; delete some first`,
    );
  }
  checkRoom(policies, context);
  const names = new Set<string>();
  const events = policies.map((policy, index): Extract<PolicyEvent, { type: 'PolicyCreated' }> => {
    const { policyName, effect, condition, consensus, time, notes = '' } = policy;
    checkPolicyNameFree(organization, policyName);
    if (names.has(policyName)) throw policyNameTaken(policyName, 'it appears twice in this request');
    names.add(policyName);
    const clauses = presentMembers({ condition, consensus, time });
    const where = policies.length > 1 ? ` (policies[${index}], \`${policyName}\`)` : '';
    checkClauses(clauses, policyEnvironment, organization, where);
    return { type: 'PolicyCreated', data: { policyId: newId(), policyName, effect, ...clauses, notes } };
  });
  checkBudget(policies, context);
  return { policyIds: events.map(({ data }) => data.policyId), events };
}

/** Clauses by name, of a policy being written. */
type Clauses = { readonly [Name in Clause]?: string };

/**
 * Refuses clauses that would be too long in total with those of the other policies, before any is parsed.
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED
 */
export function checkRoom(
  written: readonly Clauses[],
  { organization: { policies }, limits }: Pick<DecideContext, 'organization' | 'limits'>,
  replacedId?: string,
): void {
  const { policyCharacters: most } = limits;
  const others = [...policies.values()].filter(({ policyId }) => policyId !== replacedId);
  const before = others.reduce((sum, policy) => sum + charactersOf(policy), 0);
  const added = written.reduce((sum, policy) => sum + charactersOf(policy), 0);
  if (before + added <= most) return;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `the clauses of all policies of an organization may have ${most} characters in total: the existing ones have ${before}, and this request adds ${added}; shorten or delete some first`,
  );
}

/**
 * Refuses clauses that could use up a request's steps, for lists of the assumed sizes: every request would be denied.
 * @throws {CoordinatorError} INVALID_ARGUMENT for one that could alone, RESOURCE_EXHAUSTED for all together
 */
export function checkBudget(
  written: readonly Clauses[],
  { organization, policyEnvironment }: Pick<DecideContext, 'organization' | 'policyEnvironment'>,
  replacedId?: string,
): void {
  for (const clauses of written) checkSteps(clauses, policyEnvironment);
  const tenant = organization.parentOrganizationId ?? organization.organizationId;
  const steps = (policies: readonly Clauses[]) =>
    policies.reduce((sum, policy) => sum + worstStepsOf(policy, policyEnvironment, tenant), 0);
  const before = steps([...organization.policies.values()].filter(({ policyId }) => policyId !== replacedId));
  const added = steps(written);
  if (before + added <= maxPolicySteps) return;
  const { approvals, elements } = reckoned;
  throw new CoordinatorError(
    'RESOURCE_EXHAUSTED',
    `all policies of an organization may take ${maxPolicySteps} steps in total, with ${approvals} approvals and lists of ${elements} elements: the existing ones could take ${before}, and this request adds ${added}; simplify or delete some first`,
  );
}

function checkSteps(clauses: Clauses, environment: PolicyEnvironment): void {
  for (const clause of ['condition', 'consensus', 'time'] as const) {
    const text = clauses[clause];
    const reason = text === undefined ? undefined : tooCostly(compileClause(text, clause, environment));
    if (reason === undefined) continue;
    throw new CoordinatorError(
      'INVALID_ARGUMENT',
      `invalid policy ${clause}: Expression cannot be evaluated: ${reason}`,
      {
        category: 'REQUEST_INVALID',
      },
    );
  }
}

function charactersOf({ condition = '', consensus = '', time = '' }: Clauses): number {
  return condition.length + consensus.length + time.length;
}

/**
 * Parses and type-checks the clauses that are present, and looks up their literals; `where` is appended to the reason.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkClauses(
  clauses: Clauses,
  environment: PolicyEnvironment,
  organization: OrganizationView,
  where = '',
): void {
  try {
    for (const clause of ['condition', 'consensus', 'time'] as const) {
      const text = clauses[clause];
      if (text !== undefined) checkPolicyText(text, clause, environment);
    }
    checkKnownLiterals(clauses, environment, organization);
  } catch (error) {
    if (!(error instanceof CoordinatorError) || where === '') throw error;
    const { code, message, category, details, cause } = error;
    throw new CoordinatorError(code, `${message}${where}`, { ...(category ? { category } : {}), details, cause });
  }
}
