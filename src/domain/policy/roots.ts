import type { CheckedExpression } from './syntax.js';

/** Caches a pure function of an expression, by its identity. */
const known = new WeakMap<CheckedExpression, ReadonlySet<string>>();

/** The names of the namespaces that an expression refers to. */
export function rootsOf(expression: CheckedExpression): ReadonlySet<string> {
  let roots = known.get(expression);
  if (!roots) {
    const found = new Set<string>();
    collect(expression, found);
    roots = found;
    known.set(expression, roots);
  }
  return roots;
}

function collect(node: CheckedExpression, found: Set<string>): void {
  if (node.kind === 'root') found.add(node.name);
  for (const part of partsOf(node)) collect(part, found);
}

/** The expressions that an expression is made of. */
export function partsOf(node: CheckedExpression): readonly CheckedExpression[] {
  switch (node.kind) {
    case 'constant':
    case 'root':
    case 'variable':
      return [];
    case 'list':
      return node.items;
    case 'field':
    case 'cast':
      return [node.of];
    case 'index':
      return [node.of, node.index];
    case 'slice':
      return [node.of, node.from, node.to];
    case 'call':
      return node.parts;
    case 'not':
      return [node.operand];
    case 'logical':
      return node.operands;
    case 'comparison':
      return [node.left, node.right];
  }
}
