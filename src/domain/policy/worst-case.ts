import { decisionSteps, weights } from '../steps.js';
import { maxStepsInAll } from './consensus.js';
import { maxSteps } from './evaluate.js';
import { readClause } from './language.js';
import { approvalNamespaces, type PolicyEnvironment } from './namespaces.js';
import { partsOf } from './roots.js';
import { PolicyError, type CheckedExpression } from './syntax.js';
import type { Clause } from './types.js';

/**
 * Sizes assumed when a policy is written: approvals given, elements of a list in a request, and elements of a list
 * within an element. A request with more may use up its steps, and is then in doubt.
 */
export const reckoned = { approvals: 100, elements: 256, nested: 16 } as const;

/**
 * Maximum estimated steps of all clauses of an organization's policies: what a decision has, less what votes may take.
 */
export const maxPolicySteps = decisionSteps - maxStepsInAll;

/** Caches a pure function of an expression, by its identity. */
const known = new WeakMap<CheckedExpression, number>();

/** Maximum steps of evaluating a clause, for lists of the assumed sizes. */
function worstSteps(clause: CheckedExpression): number {
  let steps = known.get(clause);
  if (steps === undefined) {
    steps = Math.ceil(worst(clause));
    known.set(clause, steps);
  }
  return steps;
}

/** Maximum steps of parsing and evaluating these clauses. A clause that cannot be parsed is not evaluated. */
export function worstStepsOf(
  clauses: { readonly [Name in Clause]?: string },
  environment: PolicyEnvironment,
  tenant: string,
): number {
  let steps: number = weights.policyAsked;
  for (const clause of ['condition', 'consensus', 'time'] as const) {
    const text = clauses[clause];
    if (text === undefined) continue;
    const { compiled, parts, schedules } = readClause(text, clause, environment, tenant);
    steps += text.length * weights.clauseCharacter + parts * weights.clausePart + schedules * weights.scheduleRead;
    if (!(compiled instanceof PolicyError)) steps += worstSteps(compiled);
  }
  return Math.ceil(steps);
}

/** Why a clause may not be written, if it could take more steps than an evaluation has. */
export function tooCostly(clause: CheckedExpression): string | undefined {
  const steps = worstSteps(clause);
  if (steps <= maxSteps) return undefined;
  const { approvals, elements } = reckoned;
  return `it could take ${steps} steps with ${approvals} approvals and lists of ${elements} elements, the most is ${maxSteps}: relate fewer lists to each other`;
}

/** How a function of the language estimates its cost. */
export interface Reckoning {
  /** Maximum steps of a part. */
  steps(part: CheckedExpression): number;
  /** The assumed number of elements of a list. */
  elements(list: CheckedExpression): number;
}

const reckoning: Reckoning = { steps: worst, elements: longest };

function worst(node: CheckedExpression): number {
  const own: number = weights.policyNode;
  switch (node.kind) {
    case 'call':
      return own + node.worstSteps(reckoning);
    case 'root':
      return node.type.kind === 'list' ? own + longest(node) * weights.voteCopied : own;
    case 'constant':
    case 'variable':
    case 'list':
    case 'field':
    case 'index':
    case 'slice':
    case 'not':
    case 'logical':
    case 'comparison':
    case 'cast':
      return partsOf(node).reduce<number>((sum, part) => sum + worst(part), own);
  }
}

function longest(list: CheckedExpression): number {
  switch (list.kind) {
    case 'constant':
      return Array.isArray(list.value) ? list.value.length : 1;
    case 'list':
      return list.items.length;
    case 'slice':
    case 'cast':
      return longest(list.of);
    case 'call':
      return list.each ? longest(list.each.of) : reckoned.elements;
    case 'root':
      return approvalNamespaces.has(list.name) ? reckoned.approvals : reckoned.elements;
    case 'variable':
    case 'field':
    case 'index':
      return isWithinElement(list) ? reckoned.nested : reckoned.elements;
    case 'not':
    case 'logical':
    case 'comparison':
      return reckoned.elements;
  }
}

/** Whether it is read from a variable: there is one such list for each element of another. */
function isWithinElement(node: CheckedExpression): boolean {
  if (node.kind === 'variable') return true;
  return (node.kind === 'field' || node.kind === 'index' || node.kind === 'cast') && isWithinElement(node.of);
}
