import type { Outcome } from './doubt.js';
import type { Evaluation } from './evaluate.js';
import type { Equality, Position } from './syntax.js';
import { AmbiguousText, type PolicyType, type PolicyValue } from './types.js';
import { kindOf, textOf } from './values.js';

/** One side of a comparison, and its type when the policy was written. */
export interface Operand {
  readonly value: PolicyValue;
  readonly type: PolicyType;
}

/** What has a place in the text. */
interface Located {
  readonly at: Position;
}

/** Whether two present values are equal, by the rule for their types. */
export function areEqual(
  evaluation: Evaluation,
  node: Located,
  equality: Equality,
  left: PolicyValue,
  right: PolicyValue,
): Outcome {
  if (left instanceof AmbiguousText || right instanceof AmbiguousText) {
    return ambiguously(evaluation, node, equality, left, right);
  }
  if (typeof left === 'string' && typeof right === 'string' && left.length === right.length) {
    evaluation.step(node, 'characterCompared', left.length);
  }
  if (left === right) return true;
  if (equality === 'exact' || typeof left !== 'string' || typeof right !== 'string') return false;
  if (left.length !== right.length) return false;
  if (equality !== 'hex') {
    evaluation.step(node, 'characterFolded', left.length);
    if (!(isPrefixedHex(left) && isPrefixedHex(right))) return false;
  }
  return lowerCase(evaluation, node, left) === lowerCase(evaluation, node, right);
}

function ambiguously(
  evaluation: Evaluation,
  node: Located,
  equality: Equality,
  left: PolicyValue,
  right: PolicyValue,
): Outcome {
  const [a, b] = [textOf(left), textOf(right)];
  if (a === undefined || b === undefined) return false;
  const isSame = areEqual(evaluation, node, equality, a, b) === true;
  const doubtful =
    left instanceof AmbiguousText && left.mayBe(b)
      ? left
      : right instanceof AmbiguousText && right.mayBe(a)
        ? right
        : undefined;
  // Two that show the same text may still stand for different things, if that is all that they show.
  const areBothVague = left instanceof AmbiguousText && right instanceof AmbiguousText;
  if (!doubtful || (isSame && !areBothVague)) return isSame;
  return evaluation.cannotRead(node, () => doubtful.reason);
}

/** Like `areEqual`, for a type known only now. */
export function areDynamicallyEqual(evaluation: Evaluation, node: Located, left: Operand, right: Operand): Outcome {
  const isText = textOf(left.value) !== undefined && textOf(right.value) !== undefined;
  const isScalar = typeof left.value !== 'object' && typeof right.value !== 'object';
  if (isText || (isScalar && typeof left.value === typeof right.value)) {
    return areEqual(evaluation, node, 'prefixed-hex', left.value, right.value);
  }
  // Published policies write the integers of typed data in quotes.
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    if (typeof one.value !== 'bigint' || other.type.kind !== 'string' || typeof other.value !== 'string') continue;
    if (decimalPattern.test(other.value)) return String(one.value) === other.value;
  }
  return evaluation.cannotRead(node, () => `${kindOf(left.value)} cannot be compared with ${kindOf(right.value)}`);
}

/** A text in lower case; the conversion is counted. */
export function lowerCase(evaluation: Evaluation, node: Located, text: string): string {
  evaluation.step(node, 'characterFolded', text.length);
  return text.toLowerCase();
}

const decimalPattern = /^(?:0|-?[1-9][0-9]{0,77})$/;

function isPrefixedHex(text: string): boolean {
  return /^0x[0-9a-f]*$/i.test(text);
}
