import { weights } from '../../steps.js';
import type { ApprovalsReader, Place, Summary } from '../consensus-analysis.js';
import { graver, stronger, type Outcome } from '../doubt.js';
import type { Evaluation } from '../evaluate.js';
import type { CheckedExpression, Position } from '../syntax.js';
import { Doubt, type PolicyType, type PolicyValue } from '../types.js';
import type { Reckoning } from '../worst-case.js';
import { FunctionCall, type Meaning, type PolicyFunction, type Predicate } from './function.js';

const bool: PolicyType = { kind: 'bool' };

/** Whether a predicate is true of every element. */
export const all: PolicyFunction = {
  name: 'all',
  form: 'list.f(v, p)',
  check: (input, at, checking) => {
    const of = checking.listOf(input.of, 'all', at);
    return new Quantifier(everyElement, { of, ...checking.predicateOf(of, input, 'all', at) }, at);
  },
};

/** Whether a predicate is true of some element. */
export const any: PolicyFunction = {
  name: 'any',
  form: 'list.f(v, p)',
  check: (input, at, checking) => {
    const of = checking.listOf(input.of, 'any', at);
    return new Quantifier(someElement, { of, ...checking.predicateOf(of, input, 'any', at) }, at);
  },
};

/** The elements of which a predicate is true. */
export const filter: PolicyFunction = {
  name: 'filter',
  form: 'list.f(v, p)',
  check: (input, at, checking) => {
    const of = checking.listOf(input.of, 'filter', at);
    return new Filter({ of, ...checking.predicateOf(of, input, 'filter', at) }, of.type, at);
  },
};

const everyElement: Summary = { letter: 'f', neutral: true, of: (elements) => elements === 0 };
const someElement: Summary = { letter: 't', neutral: false, of: (elements) => elements > 0 };

/** It looks at every element, whatever the others' values. */
abstract class OverElements extends FunctionCall {
  readonly parts: readonly CheckedExpression[];
  readonly schedules = 0;
  readonly holds = 1;
  readonly seeks = undefined;
  readonly isCount = false;

  constructor(
    readonly each: { readonly of: CheckedExpression } & Predicate,
    type: PolicyType,
    at: Position,
  ) {
    super(type, at);
    this.parts = [each.of, each.body];
  }

  override worstSteps(reckoning: Reckoning): number {
    const { of, body } = this.each;
    return reckoning.steps(of) + reckoning.elements(of) * (weights.listElement + reckoning.steps(body));
  }

  override readApprovals(reader: ApprovalsReader, place: Place): void {
    const { of, body } = this.each;
    reader.visit(of, place);
    reader.visit(body, reader.sourceOf(of) || place === 'in-approvals' ? 'in-approvals' : 'in-list');
  }

  protected elements(evaluation: Evaluation): readonly PolicyValue[] | Doubt {
    const list = evaluation.list(this.each.of);
    if (!(list instanceof Doubt)) evaluation.step(this, 'listElement', list.length);
    return list;
  }

  protected of(element: PolicyValue, evaluation: Evaluation): Outcome {
    const { slot, body } = this.each;
    evaluation.variables[slot] = element;
    return evaluation.outcome(body);
  }
}

class Quantifier extends OverElements {
  readonly isFilter = false;
  readonly meaning: Meaning;
  private readonly isAll: boolean;

  constructor(
    private readonly summary: Summary,
    each: OverElements['each'],
    at: Position,
  ) {
    super(each, bool, at);
    this.isAll = summary.neutral === true;
    this.meaning = { kind: this.isAll ? 'all' : 'any', ...each };
  }

  override get isTrueOfNothing(): boolean {
    return this.isAll;
  }

  override evaluate(evaluation: Evaluation): PolicyValue {
    const list = this.elements(evaluation);
    if (list instanceof Doubt) return list;
    const { isAll } = this;
    let result: Outcome = isAll;
    for (const element of list) result = stronger(isAll, result, this.of(element, evaluation));
    return result;
  }

  override readApprovals(reader: ApprovalsReader, place: Place): void {
    const { of, body, slot } = this.each;
    const source = reader.sourceOf(of);
    if (!source) return super.readApprovals(reader, place);
    reader.term({ node: this, ...source, each: { body, slot }, summary: this.summary }, place);
  }
}

class Filter extends OverElements {
  readonly isFilter = true;
  readonly meaning: Meaning = { kind: 'filter', ...this.each };

  override evaluate(evaluation: Evaluation): PolicyValue {
    const list = this.elements(evaluation);
    if (list instanceof Doubt) return list;
    const kept: PolicyValue[] = [];
    let doubt: Doubt | undefined;
    for (const element of list) {
      const outcome = this.of(element, evaluation);
      if (outcome === true) kept.push(element);
      else if (outcome !== false) doubt = doubt ? graver(doubt, outcome) : outcome;
    }
    return doubt ?? kept;
  }
}
