import type { ApprovalsReader, Place, Summary } from '../consensus-analysis.js';
import type { Evaluation } from '../evaluate.js';
import type { CheckedExpression, Position } from '../syntax.js';
import { Doubt, type PolicyValue } from '../types.js';
import type { Reckoning } from '../worst-case.js';
import { FunctionCall, type Meaning, type PolicyFunction } from './function.js';

/** How many elements a list has. */
export const count: PolicyFunction = {
  name: 'count',
  form: 'list.f()',
  check: ({ of }, at, checking) => new Count(checking.listOf(of, 'count', at), at),
};

const counted: Summary = { letter: 'c', neutral: undefined, of: (elements) => BigInt(elements) };

class Count extends FunctionCall {
  readonly parts: readonly CheckedExpression[];
  readonly schedules = 0;
  readonly holds = 1;
  readonly each = undefined;
  readonly isFilter = false;
  readonly seeks = undefined;
  readonly isCount = true;
  readonly meaning: Meaning;

  constructor(
    private readonly list: CheckedExpression,
    at: Position,
  ) {
    super({ kind: 'int' }, at);
    this.parts = [list];
    this.meaning = { kind: 'count', of: list };
  }

  override evaluate(evaluation: Evaluation): PolicyValue {
    const list = evaluation.list(this.list);
    return list instanceof Doubt ? list : BigInt(list.length);
  }

  override worstSteps(reckoning: Reckoning): number {
    return reckoning.steps(this.list);
  }

  override readApprovals(reader: ApprovalsReader, place: Place, isWithConstant: boolean): void {
    const source = reader.sourceOf(this.list);
    if (!source) {
      reader.visit(this.list, place);
      return;
    }
    reader.term({ node: this, ...source, summary: counted }, place);
    // Compared with anything but constants, a count may matter beyond every number in the text.
    if (!isWithConstant) reader.countsWithoutEnd();
  }
}
