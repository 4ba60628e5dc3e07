import type { CheckedExpression, Meaning, PolicyType } from 'countersign/internal';
import { asDynamic } from './smt-dynamic.js';
import { equalValues, type OpenOperand } from './smt-equality.js';
import { integerOf256, OpenParts } from './smt-parts.js';
import { and, apply, howMany, no, not, or, Untranslatable, yes, type Script, type Term } from './smt-script.js';
import { constantOf } from './smt-unknown.js';
import {
  absences,
  elementsOf,
  fieldOf,
  integerOf,
  isAbsent,
  isTrue,
  present,
  type Open,
  type OpenValue,
} from './smt-values.js';

/** What names mean, and what the solver may choose freely. */
export interface OpenScope {
  root(name: string): Open;
  /** Whether a schedule's window is open. */
  schedule(name: string): Term;
  /** Whether a text that may stand for others does, each time another term. */
  vague(): Term;
}

/** The value of a clause: at most one of the first three is true. `isDoubted`: something in its text is in doubt. */
export interface OpenReading {
  readonly isTrue: Term;
  readonly isUnreadable: Term;
  readonly isNotApplicable: Term;
  readonly isDoubted: Term;
}

/** The value of a checked expression for every request, by the rules of `evaluate`. */
export function readOpenly(script: Script, expression: CheckedExpression, scope: OpenScope): OpenReading {
  const reading = new Reading(script, scope);
  const open = reading.value(expression);
  return {
    isTrue: script.name(isTrue(open)),
    isUnreadable: open.isUnreadable,
    isNotApplicable: open.isNotApplicable,
    isDoubted: script.name(or(...reading.doubts)),
  };
}

class Reading {
  /** What is in doubt, wherever it is evaluated. */
  readonly doubts: Term[] = [];
  private readonly variables: Open[] = [];
  /** Whether this part is evaluated at all: an element's is, if it is there. */
  private guards: readonly Term[] = [];
  private readonly parts: OpenParts;

  constructor(
    private readonly script: Script,
    private readonly scope: OpenScope,
  ) {
    this.parts = new OpenParts(script, () => scope.vague());
  }

  value(node: CheckedExpression): Open {
    const open = this.valueOf(node);
    this.note(open);
    return open;
  }

  private note(open: Open): void {
    this.doubts.push(and(...this.guards, isAbsent(open)));
  }

  private valueOf(node: CheckedExpression): Open {
    switch (node.kind) {
      case 'constant':
        return constantOf(node.value, node.type);
      case 'root':
        return this.scope.root(node.name);
      case 'variable':
        return this.variables[node.slot]!;
      case 'list':
        return present({
          kind: 'list',
          elements: node.items.map((item) => ({ isThere: yes, value: this.inside(item, node.type) })),
        });
      case 'field': {
        const record = this.value(node.of);
        const field = fieldOf(record.value, node.field);
        return this.parts.within(record, field);
      }
      case 'index':
        return this.parts.index(node, this.value(node.of), this.value(node.index));
      case 'slice':
        return this.parts.slice(this.value(node.of), this.value(node.from), this.value(node.to));
      case 'call':
        return this.call(node.meaning);
      case 'not': {
        const { isUnreadable, isNotApplicable, ...rest } = this.value(node.operand);
        return { isUnreadable, isNotApplicable, value: { kind: 'bool', term: not(termOf(rest.value)) } };
      }
      case 'logical': {
        const outcomes = node.operands.map((operand) => ({ isThere: yes, open: this.value(operand) }));
        return this.joined(node.operator === '&&', outcomes, present({ kind: 'list', elements: [] }));
      }
      case 'comparison':
        return this.comparison(node);
      case 'cast':
        return this.parts.cast(this.value(node.of), node.type);
    }
  }

  /** An item of a list that is written out; dynamic ones and others are of one type only if the list's is dynamic. */
  private inside(item: CheckedExpression, list: PolicyType): Open {
    const open = this.value(item);
    const element = list.kind === 'list' ? list.of : list;
    return element.kind === 'dynamic' ? { ...open, value: asDynamic(open.value) } : open;
  }

  private call(meaning: Meaning): Open {
    const { script } = this;
    switch (meaning.kind) {
      case 'schedule':
        return present({ kind: 'bool', term: this.scope.schedule(meaning.name) });
      case 'count': {
        const list = this.value(meaning.of);
        return { ...list, value: { kind: 'integer', term: script.name(howMany(therein(list)), 'Int') } };
      }
      case 'any':
      case 'all': {
        const list = this.value(meaning.of);
        return this.joined(meaning.kind === 'all', this.outcomes(list, meaning), list);
      }
      case 'filter': {
        const list = this.value(meaning.of);
        const outcomes = this.outcomes(list, meaning);
        const doubted = outcomes.map(({ isThere, open }) => ({
          isUnreadable: and(isThere, open.isUnreadable),
          isNotApplicable: and(isThere, open.isNotApplicable),
          value: open.value,
        }));
        const elements = outcomes.map(({ isThere, open }, index) => ({
          isThere: script.name(and(isThere, isTrue(open))),
          value: elementsOf(list)[index]!.value,
        }));
        return this.parts.within(list, { ...absences(script, doubted), value: { kind: 'list', elements } });
      }
      case 'contains':
        return this.contains(meaning);
      case 'other':
        throw new Untranslatable('a function has no translation');
    }
  }

  /** The predicate's outcome for each element. */
  private outcomes(list: Open, { body, slot }: Extract<Meaning, { kind: 'any' | 'all' | 'filter' }>) {
    const { guards } = this;
    const outcomes = elementsOf(list).map(({ isThere, value }) => {
      this.guards = [...guards, isThere, not(isAbsent(list))];
      this.variables[slot] = value;
      return { isThere, open: this.value(body) };
    });
    this.guards = guards;
    return outcomes;
  }

  /** `&&` or `||` over outcomes, as far as they are there. */
  private joined(isAnd: boolean, outcomes: readonly { isThere: Term; open: Open }[], list: Open): Open {
    const { script } = this;
    const some = (is: (open: Open) => Term) => or(...outcomes.map(({ isThere, open }) => and(isThere, is(open))));
    const isUnreadable = some((open) => open.isUnreadable);
    const isNotApplicable = some((open) => open.isNotApplicable);
    const decisive = script.name(some((open) => (isAnd ? and(not(isTrue(open)), not(isAbsent(open))) : isTrue(open))));
    const [first, second] = isAnd ? [isNotApplicable, isUnreadable] : [isUnreadable, isNotApplicable];
    const graver = script.name(and(not(decisive), first));
    const lesser = script.name(and(not(decisive), not(first), second));
    const result: Open = {
      isUnreadable: isAnd ? lesser : graver,
      isNotApplicable: isAnd ? graver : lesser,
      value: { kind: 'bool', term: isAnd ? not(decisive) : decisive },
    };
    return this.parts.within(list, result);
  }

  private contains({ item, of, equality }: Extract<Meaning, { kind: 'contains' }>): Open {
    const { script } = this;
    const [sought, list] = [this.value(item), this.value(of)];
    const type = of.type.kind === 'list' ? of.type.of : of.type;
    const operands = { ...absences(script, [sought, list]), value: list.value };
    const { guards } = this;
    const outcomes = elementsOf(list).map(({ isThere, value }) => {
      this.guards = [...guards, isThere, not(isAbsent(operands))];
      const side: OpenOperand = { value: value.value, type };
      const found = equalValues(script, equality, side, { value: sought.value, type: item.type }, () =>
        this.scope.vague(),
      );
      const open = this.parts.within(value, {
        isUnreadable: found.isUnreadable,
        isNotApplicable: no,
        value: { kind: 'bool', term: found.isEqual },
      });
      this.note(open);
      return { isThere, open };
    });
    this.guards = guards;
    return this.joined(false, outcomes, operands);
  }

  private comparison({ operator, equality, left, right }: Extract<CheckedExpression, { kind: 'comparison' }>): Open {
    const { script } = this;
    const [a, b] = [this.value(left), this.value(right)];
    const operands = { ...absences(script, [a, b]), value: a.value };
    if (operator === '==' || operator === '!=') {
      const sides = [
        { value: a.value, type: left.type },
        { value: b.value, type: right.type },
      ] as const;
      const found = equalValues(script, equality, ...sides, () => this.scope.vague());
      const term = operator === '==' ? found.isEqual : not(found.isEqual);
      return this.parts.within(operands, present({ kind: 'bool', term }), found.isUnreadable);
    }
    const [first, second] = [this.parts.cast(a, integerOf256), this.parts.cast(b, integerOf256)];
    const own = or(first.isUnreadable, second.isUnreadable);
    const term = apply(operator, integerOf(first), integerOf(second));
    return this.parts.within(operands, present({ kind: 'bool', term }), own);
  }
}

function termOf(value: OpenValue): Term {
  if (value.kind !== 'bool') throw new Error(`a ${value.kind} is no outcome`);
  return value.term;
}

function therein(list: Open): readonly Term[] {
  return elementsOf(list).map(({ isThere }) => isThere);
}
