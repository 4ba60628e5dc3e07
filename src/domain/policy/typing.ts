import { integerRange, type CheckedExpression, type Equality } from './syntax.js';
import type { PolicyType, PolicyValue } from './types.js';

/** Which types fit each other, and which type a literal can take. */

const dynamic: PolicyType = { kind: 'dynamic' };

type Kinds = ReadonlySet<PolicyType['kind']>;

const scalars: Kinds = new Set<PolicyType['kind']>(['bool', 'int', 'uint', 'string', 'timestamp']);
const ordered: Kinds = new Set<PolicyType['kind']>(['int', 'uint', 'timestamp']);
/** The types that a dynamic value can be equal to, or ordered with: no request has a timestamp. */
const dynamicScalars: Kinds = new Set<PolicyType['kind']>(['bool', 'int', 'uint', 'string', 'dynamic']);
const dynamicOrdered: Kinds = new Set<PolicyType['kind']>(['int', 'uint', 'dynamic']);

/** What can be equal, or ordered, also if one side is dynamic. */
export function comparable(isDynamic: boolean, isEquality: boolean): Kinds {
  if (isDynamic) return isEquality ? dynamicScalars : dynamicOrdered;
  return isEquality ? scalars : ordered;
}

/** A dynamic value as one of `type`; anything else unchanged. */
export function cast(node: CheckedExpression, type: PolicyType): CheckedExpression {
  return node.type.kind === 'dynamic' ? { kind: 'cast', of: node, type, at: node.at } : node;
}

/** A dynamic value as a list; anything else unchanged. */
export function castToList(node: CheckedExpression): CheckedExpression {
  return cast(node, { kind: 'list', of: dynamic });
}

/** How values of two types are compared. */
export function equalityOf(a: PolicyType, b: PolicyType): Equality {
  if (a.kind === 'dynamic' || b.kind === 'dynamic') return 'dynamic';
  const hex = [a, b].map((type) => (type.kind === 'string' ? type.hex : undefined));
  if (hex.includes('always')) return 'hex';
  return hex.includes('prefixed') ? 'prefixed-hex' : 'exact';
}

/** The same expression with another type that an integer literal may take, or undefined if it does not fit. */
export function adapt(node: CheckedExpression, type: PolicyType): CheckedExpression | undefined {
  if (isSameType(node.type, type)) return node;
  if (node.kind === 'constant' && typeof node.value === 'bigint') {
    const isLiteral = node.type.kind === 'int' || node.type.kind === 'uint';
    if (!isLiteral || (type.kind !== 'int' && type.kind !== 'uint')) return undefined;
    return node.value <= integerRange[type.kind].max ? { ...node, type } : undefined;
  }
  if (type.kind !== 'list' || node.type.kind !== 'list') return undefined;
  const element = type.of;
  if (node.kind === 'constant') {
    const items = (node.value as readonly PolicyValue[]).map((value) =>
      adapt({ kind: 'constant', value, type: (node.type as { of: PolicyType }).of, at: node.at }, element),
    );
    return items.every((item) => item !== undefined) ? { ...node, type } : undefined;
  }
  if (node.kind !== 'list') return undefined;
  const items = node.items.map((item) => adapt(item, element));
  return items.every((item) => item !== undefined) ? { ...node, items, type } : undefined;
}

function isSameType(a: PolicyType, b: PolicyType): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind) return false;
  if (a.kind === 'list' || a.kind === 'map') return isSameType(a.of, (b as typeof a).of);
  return a.kind !== 'record' || (a.name === (b as typeof a).name && a.fields === (b as typeof a).fields);
}

/** The name of a type in messages. */
export function nameOf(type: PolicyType): string {
  if (type.kind === 'list' || type.kind === 'map') return `${type.kind}<${nameOf(type.of)}>`;
  return type.kind === 'record' ? type.name : type.kind;
}
