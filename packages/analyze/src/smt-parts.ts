import { integerRange, type CheckedExpression, type PolicyType } from 'countersign/internal';
import { asDynamic } from './smt-dynamic.js';
import { and, apply, howMany, integer, no, not, or, same, type Script, type Term } from './smt-script.js';
import {
  absences,
  anyEntryOf,
  chosen,
  elementAt,
  entryOf,
  integerOf,
  numbered,
  partOfText,
  present,
  tags,
  type Open,
  type OpenElement,
  type OpenValue,
} from './smt-values.js';

const dynamic: PolicyType = { kind: 'dynamic' };
/** The integers of dynamic values. */
export const integerOf256: PolicyType = { kind: 'int' };

/** What is read of a value: a part of it, or the value as one of another type. */
export class OpenParts {
  /** `vague` gives a new term for each reading of a text that may stand for others: whether it is in doubt. */
  constructor(
    private readonly script: Script,
    private readonly vague: () => Term,
  ) {}

  /** A part of something: absent as that is, or else as the part is. */
  within(whole: Open, part: Open, own: Term = no): Open {
    return {
      isUnreadable: this.script.name(
        or(whole.isUnreadable, and(not(whole.isNotApplicable), or(own, part.isUnreadable))),
      ),
      isNotApplicable: this.script.name(
        or(whole.isNotApplicable, and(not(whole.isUnreadable), not(own), part.isNotApplicable)),
      ),
      value: part.value,
    };
  }

  /** An element, a character or an entry. */
  index(node: Extract<CheckedExpression, { kind: 'index' }>, of: Open, key: Open): Open {
    const operands = { ...absences(this.script, [of, key]), value: of.value };
    const { value } = of;
    if (node.index.type.kind === 'string') {
      const literal = key.value.kind === 'text' ? key.value.literal : undefined;
      const own = value.kind === 'dynamic' ? not(same(value.tag, tags.record)) : no;
      return this.within(operands, literal === undefined ? anyEntryOf(value) : entryOf(value, literal), own);
    }
    if (node.index.type.kind === 'dynamic') return this.byDynamicKey(operands, value, key.value, node.type);
    const place = integerOf(key);
    if (value.kind === 'text') return this.character(operands, value, place);
    if (value.kind === 'list') {
      return this.within(operands, elementAt(this.script, value.elements, place, node.type));
    }
    if (value.kind !== 'dynamic') throw new Error(`a ${value.kind} cannot be indexed`);
    return this.elementOfDynamic(operands, value, place);
  }

  private character(operands: Open, of: Extract<OpenValue, { kind: 'text' }>, place: Term): Open {
    const isOutside = or(apply('<', place, '0'), apply('>=', place, apply('str.len', of.term)), this.isVague(of));
    return this.within(operands, present(partOfText(this.script, of, place, '1')), isOutside);
  }

  /** A part of what may be another text cannot be read. */
  private isVague({ isVague }: Extract<OpenValue, { kind: 'text' }>): Term {
    return isVague ? this.vague() : no;
  }

  private elementOfDynamic(operands: Open, of: Extract<OpenValue, { kind: 'dynamic' }>, place: Term): Open {
    const { script } = this;
    const text = this.character(operands, of.text(), place);
    const element = elementAt(script, of.elements(), place, dynamic);
    return this.within(
      operands,
      chosen(
        script,
        [
          { when: same(of.tag, tags.text), open: { ...text, value: asDynamic(text.value) } },
          { when: same(of.tag, tags.list), open: element },
        ],
        dynamic,
      ),
    );
  }

  /** A key whose type is open: an element, or any entry. */
  private byDynamicKey(operands: Open, of: OpenValue, key: OpenValue, type: PolicyType): Open {
    if (of.kind !== 'dynamic' || key.kind !== 'dynamic') throw new Error(`a ${of.kind} has no dynamic keys`);
    const cases = [
      { when: same(key.tag, tags.integer), open: this.elementOfDynamic(operands, of, key.integer()) },
      { when: and(same(key.tag, tags.text), same(of.tag, tags.record)), open: of.anyEntry() },
    ];
    return this.within(operands, chosen(this.script, cases, type));
  }

  /** Some of the elements, or of the characters. */
  slice(of: Open, start: Open, end: Open): Open {
    const { script } = this;
    const [from, to] = [integerOf(start), integerOf(end)];
    const operands = { ...absences(script, [of, start, end]), value: of.value };
    const isOutside = (length: Term) => or(apply('<', from, '0'), apply('>', from, to), apply('>', to, length));
    const { value } = of;
    const ofText = (text: Extract<OpenValue, { kind: 'text' }>): Open =>
      this.within(
        operands,
        present(partOfText(script, text, from, apply('-', to, from))),
        or(isOutside(apply('str.len', text.term)), this.isVague(text)),
      );
    const ofList = (elements: readonly OpenElement[]): Open => {
      const kept = numbered(script, elements).map(({ isThere, before, value: element }) => ({
        isThere: script.name(and(isThere, apply('<=', from, before), apply('<', before, to))),
        value: element,
      }));
      const length = howMany(elements.map(({ isThere }) => isThere));
      return this.within(operands, present({ kind: 'list', elements: kept }), isOutside(length));
    };
    if (value.kind === 'text') return ofText(value);
    if (value.kind === 'list') return ofList(value.elements);
    if (value.kind !== 'dynamic') throw new Error(`a ${value.kind} cannot be sliced`);
    const cases = [
      { when: same(value.tag, tags.text), open: ofText(value.text()) },
      { when: same(value.tag, tags.list), open: ofList(value.elements()) },
    ].map(({ when, open }) => ({ when, open: { ...open, value: asDynamic(open.value) } }));
    return this.within(operands, chosen(script, cases, dynamic));
  }

  /** A dynamic value as one of a type, unreadable if it is of another; anything else unchanged. */
  cast(open: Open, type: PolicyType): Open {
    const { value } = open;
    if (value.kind !== 'dynamic') return open;
    const as = (tag: Term, made: OpenValue, isOutside: Term = no): Open =>
      this.within(open, present(made), or(not(same(value.tag, tag)), isOutside));
    switch (type.kind) {
      case 'bool':
        return as(tags.bool, { kind: 'bool', term: value.bool() });
      case 'int':
      case 'uint': {
        const term = value.integer();
        const { min, max } = type === integerOf256 ? integerRange.dynamic : integerRange[type.kind];
        return as(
          tags.integer,
          { kind: 'integer', term },
          or(apply('<', term, integer(min)), apply('>', term, integer(max))),
        );
      }
      case 'string':
        return as(tags.text, value.text());
      case 'list':
        return as(tags.list, { kind: 'list', elements: value.elements() });
      default:
        throw new Error(`a dynamic value is never needed as a ${type.kind}`);
    }
  }
}
