import type { Scope } from '../../domain/policy/evaluate.js';
import { Evaluation, type Place } from '../../domain/policy/evaluate.js';
import { located, type CheckedExpression } from '../../domain/policy/syntax.js';
import { NotApplicable, Unreadable, type PolicyValue } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';

/** One part of an expression that was evaluated, with the parts that gave it its value, in the order of evaluation. */
export interface Traced {
  readonly node: CheckedExpression;
  /** Undefined if the steps were used up before it had one. */
  value: PolicyValue | undefined;
  readonly parts: Traced[];
}

/**
 * The evaluator itself, keeping the value of each part. It takes the same steps and comes to the same value; only the
 * reasons of doubts are each part's own.
 */
export class Trace extends Evaluation {
  whole: Traced | undefined;
  /** Some parts were not kept. */
  isCut = false;
  private readonly open: Traced[] = [];

  /** @param room the most parts to keep */
  constructor(
    scope: Scope,
    steps: Steps,
    private room: number,
  ) {
    super(scope, steps);
  }

  override value(node: CheckedExpression): PolicyValue {
    const traced = this.begin(node);
    if (!traced) return super.value(node);
    this.open.push(traced);
    try {
      traced.value = super.value(node);
      return traced.value;
    } finally {
      this.open.pop();
    }
  }

  override cannotRead(node: Place, reason: () => string): Unreadable {
    super.cannotRead(node, reason);
    return new Unreadable(located(reason(), node.at));
  }

  protected override lacks(node: Place, path: string): NotApplicable {
    super.lacks(node, path);
    return new NotApplicable(located(`missing field: ${path}`, node.at));
  }

  private begin(node: CheckedExpression): Traced | undefined {
    if (this.room-- <= 0) {
      this.isCut = true;
      return undefined;
    }
    const traced: Traced = { node, value: undefined, parts: [] };
    const parent = this.open.at(-1);
    if (parent) parent.parts.push(traced);
    else this.whole = traced;
    return traced;
  }
}
