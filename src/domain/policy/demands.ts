import type { CheckedExpression } from './syntax.js';
import type { AuthorizationRequest, PolicyValue } from './types.js';

/** What conditions demand of the activity itself, found from their text alone. */

/** From the attribute that tells most activities apart to the one that tells fewest. */
export const attributes = ['type', 'kind', 'action', 'resource'] as const;
type Attribute = (typeof attributes)[number];

export type ActivityAttributes = Pick<AuthorizationRequest['activity'], Attribute>;

/** These values only, or all but these. */
interface Values {
  readonly isOnly: boolean;
  readonly values: ReadonlySet<string>;
}

/** For each attribute, the values that it may have; any, if it is absent. */
export type Demands = { readonly [Name in Attribute]?: Values };

/** The activities for which an expression may come out other than false, and other than true. */
interface Possible {
  readonly notFalse: Demands;
  readonly notTrue: Demands;
}

/** More values than that demand nothing, so that the work is bounded by the length of the text. */
const mostValues = 256;

const anything: Demands = {};
const unknown: Possible = { notFalse: anything, notTrue: anything };

/**
 * What a condition demands: **for any other activity it is false**, whatever else the request has. It may be false for
 * more. `&&` is false if one operand is, even if others are in doubt; nothing else about an operand that reads more than
 * the activity's own attributes is taken for known.
 */
export function demandsOf(condition: CheckedExpression): Demands {
  return possible(condition).notFalse;
}

/** Whether an activity is none that is demanded. An attribute that it lacks is unreadable, which is not false. */
export function isExcluded(demands: Demands, activity: ActivityAttributes): boolean {
  for (const name of attributes) {
    const value = activity[name];
    const demanded = demands[name];
    if (demanded && value !== undefined && demanded.values.has(value) !== demanded.isOnly) return true;
  }
  return false;
}

function possible(node: CheckedExpression): Possible {
  switch (node.kind) {
    case 'not': {
      const { notFalse, notTrue } = possible(node.operand);
      return { notFalse: notTrue, notTrue: notFalse };
    }
    case 'logical': {
      const operands = node.operands.map(possible);
      const notFalse = operands.map((operand) => operand.notFalse);
      const notTrue = operands.map((operand) => operand.notTrue);
      return node.operator === '&&'
        ? { notFalse: allOf(notFalse), notTrue: anyOf(notTrue) }
        : { notFalse: anyOf(notFalse), notTrue: allOf(notTrue) };
    }
    case 'comparison': {
      if (node.operator !== '==' && node.operator !== '!=') return unknown;
      const among = amongOf(node.left, node.right) ?? amongOf(node.right, node.left) ?? unknown;
      return node.operator === '==' ? among : { notFalse: among.notTrue, notTrue: among.notFalse };
    }
    case 'call':
      return (node.seeks && amongOf(node.seeks.item, node.seeks.of)) ?? unknown;
    case 'constant':
    case 'root':
    case 'variable':
    case 'list':
    case 'field':
    case 'index':
    case 'slice':
    case 'cast':
      return unknown;
  }
}

/** An attribute that is equal to a literal, or to one of a list of literals. */
function amongOf(item: CheckedExpression, literal: CheckedExpression): Possible | undefined {
  const name = attributeOf(item);
  if (!name || literal.kind !== 'constant') return undefined;
  const input: readonly PolicyValue[] = Array.isArray(literal.value)
    ? (literal.value as readonly PolicyValue[])
    : [literal.value];
  const values = new Set<string>();
  for (const value of input) {
    if (typeof value !== 'string' || values.size >= mostValues) return undefined;
    values.add(value);
  }
  return { notFalse: { [name]: { isOnly: true, values } }, notTrue: { [name]: { isOnly: false, values } } };
}

/** Attributes are texts whose letter case matters, so two are equal if they are the same. */
function attributeOf(node: CheckedExpression): Attribute | undefined {
  if (node.kind !== 'field' || node.of.kind !== 'root' || node.of.name !== 'activity') return undefined;
  return attributes.find((name) => name === node.field);
}

/** What all of these demand together. */
function allOf(demands: readonly Demands[]): Demands {
  return eachAttribute((name) => {
    const input = demands.flatMap((one) => one[name] ?? []);
    return input.length === 0 ? undefined : shared(input);
  });
}

/** What each of these demands, or more: an attribute that one of them leaves open is open. */
function anyOf(demands: readonly Demands[]): Demands {
  return eachAttribute((name) => {
    const input = demands.flatMap((one) => one[name] ?? []);
    if (input.length < demands.length) return undefined;
    const { isOnly, values } = shared(input.map(complement));
    return { isOnly: !isOnly, values };
  });
}

function eachAttribute(of: (name: Attribute) => Values | undefined): Demands {
  const demands: { [Name in Attribute]?: Values } = {};
  for (const name of attributes) {
    const values = of(name);
    if (values && values.values.size <= mostValues) demands[name] = values;
  }
  return demands;
}

function complement({ isOnly, values }: Values): Values {
  return { isOnly: !isOnly, values };
}

/** The values that are in all of them. */
function shared(input: readonly Values[]): Values {
  const [first, ...others] = input.filter(({ isOnly }) => isOnly);
  const excluded = new Set(input.flatMap(({ isOnly, values }) => (isOnly ? [] : [...values])));
  if (!first) return { isOnly: false, values: excluded };
  const values = [...first.values].filter(
    (value) => !excluded.has(value) && others.every((other) => other.values.has(value)),
  );
  return { isOnly: true, values: new Set(values) };
}
