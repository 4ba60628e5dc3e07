import { weights } from '../../steps.js';
import type { ApprovalsReader, Place } from '../consensus-analysis.js';
import { graver, stronger, type Outcome } from '../doubt.js';
import { areDynamicallyEqual, areEqual, lowerCase, type Operand } from '../equality.js';
import type { Evaluation } from '../evaluate.js';
import { PolicyError, type CheckedExpression, type Equality, type Position } from '../syntax.js';
import { AmbiguousText, Doubt, type PolicyType, type PolicyValue } from '../types.js';
import { adapt, comparable, equalityOf, nameOf } from '../typing.js';
import { isOfType } from '../values.js';
import type { Reckoning } from '../worst-case.js';
import { FunctionCall, type Meaning, type PolicyFunction } from './function.js';

/** Whether something is an element of a list. */
export const contains: PolicyFunction = {
  name: 'contains',
  form: 'list.f(x)',
  check: ({ of, argument }, at, checking) =>
    membership(checking.check(argument), checking.listOf(of, 'contains', at), at),
};

/**
 * `item in list`, which means `list.contains(item)`.
 * @throws {PolicyError} if the item cannot be in the list
 */
export function membership(item: CheckedExpression, list: CheckedExpression, at: Position): CheckedExpression {
  const element = elementOf(list.type);
  const equality = equalityOf(item.type, element);
  const isDynamic = equality === 'dynamic';
  const adapted = isDynamic ? item : adapt(item, element);
  const of = adapted ? list : adapt(list, { kind: 'list', of: item.type });
  const allowed = comparable(isDynamic, true);
  if (!of || !allowed.has(element.kind) || !allowed.has(item.type.kind)) {
    throw new PolicyError(`${nameOf(item.type)} cannot be in ${nameOf(list.type)}`, at);
  }
  return new Contains({ item: adapted ?? item, of }, equality, at);
}

class Contains extends FunctionCall {
  readonly parts: readonly CheckedExpression[];
  readonly schedules = 0;
  readonly holds = 0;
  readonly each = undefined;
  readonly isFilter = false;
  readonly isCount = false;
  readonly meaning: Meaning;
  /** The elements of a constant list, in lower case if letter case never matters. */
  private readonly members: ReadonlySet<PolicyValue> | undefined;

  constructor(
    readonly seeks: { readonly item: CheckedExpression; readonly of: CheckedExpression },
    private readonly equality: Equality,
    at: Position,
  ) {
    super({ kind: 'bool' }, at);
    const { item, of } = seeks;
    this.parts = [item, of];
    this.meaning = { kind: 'contains', item, of, equality };
    this.members = of.kind === 'constant' ? membersOf(of.value as readonly PolicyValue[], equality) : undefined;
  }

  override evaluate(evaluation: Evaluation): PolicyValue {
    const item = evaluation.value(this.seeks.item);
    const list = evaluation.list(this.seeks.of);
    const doubt = graver(item, list);
    if (doubt) return doubt;
    const { equality, members } = this;
    if (members && !(item instanceof AmbiguousText)) {
      if (typeof item !== 'string') return members.has(item);
      evaluation.step(this, 'characterCompared', item.length);
      return members.has(equality === 'hex' ? lowerCase(evaluation, this, item) : item);
    }
    const elements = list as readonly PolicyValue[];
    evaluation.step(this, 'elementSought', elements.length);
    const type = elementOf(this.seeks.of.type);
    const sought = { value: item, type: this.seeks.item.type };
    let result: Outcome = false;
    for (const element of elements) {
      result = stronger(false, result, this.isSought(evaluation, { value: element, type }, sought));
    }
    return result;
  }

  override worstSteps(reckoning: Reckoning): number {
    const { item, of } = this.seeks;
    const parts = reckoning.steps(item) + reckoning.steps(of);
    return parts + (this.members ? 0 : reckoning.elements(of) * weights.elementSought);
  }

  override readApprovals(reader: ApprovalsReader, place: Place): void {
    const { item, of } = this.seeks;
    reader.compared(item, of.kind === 'constant', place);
    reader.visit(of, place);
  }

  private isSought(evaluation: Evaluation, { value, type }: Operand, sought: Operand): Outcome {
    if (value instanceof Doubt || !isOfType(value, type)) {
      const read = evaluation.typed(value, { at: this.at, type }, 'an element of the list');
      return read instanceof Doubt ? read : false;
    }
    return this.equality === 'dynamic'
      ? areDynamicallyEqual(evaluation, this, { value, type }, sought)
      : areEqual(evaluation, this, this.equality, value, sought.value);
  }
}

/** If letter case matters for only some texts, a look-up in a set is not enough. */
function membersOf(elements: readonly PolicyValue[], equality: Equality): ReadonlySet<PolicyValue> | undefined {
  if (equality === 'dynamic' || equality === 'prefixed-hex') return undefined;
  if (equality === 'exact') return new Set(elements);
  return new Set(elements.map((element) => (typeof element === 'string' ? element.toLowerCase() : element)));
}

function elementOf(type: PolicyType): PolicyType {
  return type.kind === 'list' ? type.of : type;
}
