import { partsOf } from './roots.js';
import type { CheckedExpression, Position } from './syntax.js';

/** The literals that policies compare with, found from their text alone. */

/** A literal that a policy compares with something, named by its record and field: `Activity.resource`, `User.tags`. */
export interface Literal {
  readonly origin: string;
  readonly value: string;
  readonly at: Position;
}

/** Every literal that is compared with a field, or looked for in a list field. */
export function literalsOf(expression: CheckedExpression | undefined): readonly Literal[] {
  const found: Literal[] = [];
  const slots: (string | undefined)[] = [];

  /** The origin of a value, or of each element of a list. */
  const originOf = (node: CheckedExpression): string | undefined => {
    switch (node.kind) {
      case 'field':
        return node.of.type.kind === 'record' ? `${node.of.type.name}.${node.field}` : undefined;
      case 'variable':
        return slots[node.slot];
      case 'index':
      case 'slice':
        // Part of a text is not a whole name.
        return node.of.type.kind === 'list' ? originOf(node.of) : undefined;
      case 'call':
        return node.isFilter && node.each ? originOf(node.each.of) : undefined;
      case 'cast':
        return originOf(node.of);
      case 'constant':
      case 'root':
      case 'list':
      case 'not':
      case 'logical':
      case 'comparison':
        return undefined;
    }
  };

  const note = (compared: CheckedExpression, literal: CheckedExpression): void => {
    const origin = originOf(compared);
    if (origin === undefined) return;
    if (literal.kind === 'list') for (const item of literal.items) note(compared, item);
    if (literal.kind !== 'constant') return;
    const values = Array.isArray(literal.value) ? (literal.value as readonly unknown[]) : [literal.value];
    for (const value of values) if (typeof value === 'string') found.push({ origin, value, at: literal.at });
  };

  const visit = (node: CheckedExpression): void => {
    if (node.kind === 'comparison') {
      note(node.left, node.right);
      note(node.right, node.left);
    }
    const { seeks, each } = node.kind === 'call' ? node : {};
    if (seeks) {
      note(seeks.item, seeks.of);
      note(seeks.of, seeks.item);
    }
    for (const part of partsOf(node)) {
      if (each && part === each.body) slots[each.slot] = originOf(each.of);
      visit(part);
    }
  };
  if (expression) visit(expression);
  return found;
}

/** Whether a field of a record, named like an origin, is read anywhere. */
export function reads(node: CheckedExpression, fields: ReadonlySet<string>): boolean {
  if (node.kind === 'field' && node.of.type.kind === 'record' && fields.has(`${node.of.type.name}.${node.field}`)) {
    return true;
  }
  return partsOf(node).some((part) => reads(part, fields));
}

/** A condition's value for a call of a contract, whatever else the request has; undefined if that matters. */
export function truthFor(node: CheckedExpression, contract: string): boolean | undefined {
  const among = (of: CheckedExpression, texts: CheckedExpression): boolean | undefined => {
    const isTo = of.kind === 'field' && of.field === 'to' && of.of.type.kind === 'record';
    if (!isTo || of.of.type.name !== 'EthereumTransaction') return undefined;
    const values = constantsOf(texts);
    return values?.some((value) => typeof value === 'string' && value.toLowerCase() === contract);
  };
  const negated = (truth: boolean | undefined): boolean | undefined => (truth === undefined ? undefined : !truth);
  switch (node.kind) {
    case 'logical': {
      const truths = node.operands.map((operand) => truthFor(operand, contract));
      const decisive = node.operator === '||';
      if (truths.includes(decisive)) return decisive;
      return truths.includes(undefined) ? undefined : !decisive;
    }
    case 'not':
      return negated(truthFor(node.operand, contract));
    case 'comparison': {
      const isSame = among(node.left, node.right) ?? among(node.right, node.left);
      if (node.operator === '==') return isSame;
      return node.operator === '!=' ? negated(isSame) : undefined;
    }
    case 'call':
      return node.seeks && among(node.seeks.item, node.seeks.of);
    case 'constant':
    case 'root':
    case 'variable':
    case 'list':
    case 'field':
    case 'index':
    case 'slice':
    case 'cast':
      return undefined;
  }
}

/** The values of a literal, or of a list of literals. */
function constantsOf(node: CheckedExpression): readonly unknown[] | undefined {
  if (node.kind === 'constant') return Array.isArray(node.value) ? (node.value as readonly unknown[]) : [node.value];
  if (node.kind !== 'list') return undefined;
  const items = node.items.map(constantsOf);
  return items.every((item) => item !== undefined) ? items.flat() : undefined;
}
