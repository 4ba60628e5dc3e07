import type { PolicyType } from 'countersign/internal';
import { and, apply, howMany, ite, no, not, or, same, yes, type Script, type Term } from './smt-script.js';

/** Values of the policy language that are not known yet: terms in place of values. */

/** A text. `literal` is its value, if the policy has it; a `lower` one has no letter whose case could matter. */
export interface OpenText {
  readonly kind: 'text';
  readonly term: Term;
  readonly isLower: boolean;
  readonly literal?: string;
  /** Literals of which it is one, and when it is which; at most one holds. */
  readonly among?: readonly PossibleLiteral[] | undefined;
  /** It may stand for other texts than it shows. */
  readonly isVague?: boolean;
}

/** What a text may be, and when it is. */
interface PossibleLiteral {
  readonly when: Term;
  readonly literal: string;
}

/** The literals of which a text is one; undefined if it can be any text. */
export function literalsOf({ literal, among }: OpenText): readonly PossibleLiteral[] | undefined {
  return literal === undefined ? among : [{ when: yes, literal }];
}

/** One element that a list may have. The order of those that are there is that of the list. */
export interface OpenElement {
  readonly isThere: Term;
  readonly value: Open;
}

/** A value of which at most the type is known; a dynamic one is what its `tag` says. */
export type OpenValue =
  | { readonly kind: 'bool'; readonly term: Term }
  | { readonly kind: 'integer'; readonly term: Term }
  | OpenText
  | { readonly kind: 'list'; readonly elements: readonly OpenElement[] }
  | { readonly kind: 'record'; field(name: string): Open }
  | { readonly kind: 'map'; entry(key: string): Open; anyEntry(): Open }
  | OpenDynamic;

/** The types that a dynamic value can have once it is read, by their tags. */
export const tags = { bool: '0', integer: '1', text: '2', list: '3', record: '4' } as const;

/** A value whose type is open too. Only what `tag` says counts; the others are made when they are asked for. */
export interface OpenDynamic {
  readonly kind: 'dynamic';
  readonly tag: Term;
  bool(): Term;
  integer(): Term;
  text(): OpenText;
  elements(): readonly OpenElement[];
  entry(key: string): Open;
  anyEntry(): Open;
}

/** A value, or its absence: at most one of `isUnreadable` and `isNotApplicable` is true, and then `value` says nothing. */
export interface Open {
  readonly isUnreadable: Term;
  readonly isNotApplicable: Term;
  readonly value: OpenValue;
}

/** What is there for certain. */
export const present = (value: OpenValue): Open => ({ isUnreadable: no, isNotApplicable: no, value });

/** Whether it is absent, in whichever way. */
export const isAbsent = ({ isUnreadable, isNotApplicable }: Open): Term => or(isUnreadable, isNotApplicable);

/** Whether it is there, and true. */
export function isTrue(open: Open): Term {
  if (open.value.kind !== 'bool') throw new Error(`a ${open.value.kind} is no outcome`);
  return and(open.value.term, not(open.isUnreadable), not(open.isNotApplicable));
}

/** The term of an integer. */
export function integerOf({ value }: Open): Term {
  if (value.kind !== 'integer') throw new Error(`a ${value.kind} is no integer`);
  return value.term;
}

/** The elements of a list. */
export function elementsOf({ value }: Open): readonly OpenElement[] {
  if (value.kind !== 'list') throw new Error(`a ${value.kind} is no list`);
  return value.elements;
}

/** How an operation without a value of its own lacks one: unreadable goes before not applicable. */
export function absences(script: Script, operands: readonly Open[], own: Term = no): Omit<Open, 'value'> {
  const isUnreadable = script.name(or(own, ...operands.map((one) => one.isUnreadable)));
  const isNotApplicable = script.name(and(not(isUnreadable), or(...operands.map((one) => one.isNotApplicable))));
  return { isUnreadable, isNotApplicable };
}

/** The elements, with how many others are there before each. */
export function numbered(script: Script, elements: readonly OpenElement[]) {
  return elements.map((element, index) => ({
    ...element,
    before: script.name(howMany(elements.slice(0, index).map(({ isThere }) => isThere)), 'Int'),
  }));
}

/** One of several values of one type, of which at most one is chosen; unreadable if none is. */
export function chosen(
  script: Script,
  cases: readonly { readonly when: Term; readonly open: Open }[],
  type: PolicyType,
): Open {
  const possible = cases.filter(({ when }) => when !== no);
  const [only] = possible;
  if (only?.when === yes) return only.open;
  const isChosen = or(...possible.map(({ when }) => when));
  const lacking = (of: (open: Open) => Term) => or(...possible.map(({ when, open }) => and(when, of(open))));
  return {
    isUnreadable: script.name(
      or(
        not(isChosen),
        lacking((open) => open.isUnreadable),
      ),
    ),
    isNotApplicable: script.name(lacking((open) => open.isNotApplicable)),
    value: chosenValue(script, possible, type),
  };
}

type Cases = readonly { readonly when: Term; readonly open: Open }[];

function chosenValue(script: Script, cases: Cases, type: PolicyType): OpenValue {
  const among = <Value extends OpenValue>(kind: Value['kind'], of: (value: Value) => Term, none: Term): Term =>
    cases.reduceRight((rest, { when, open: { value } }) => {
      if (value.kind !== kind) throw new Error(`a ${value.kind} where others are of kind ${kind}`);
      return ite(when, of(value as Value), rest);
    }, none);
  const each = (of: (value: OpenValue) => Open, part: PolicyType): Open =>
    chosen(
      script,
      cases.map(({ when, open }) => ({ when, open: of(open.value) })),
      part,
    );
  switch (type.kind) {
    case 'bool':
      return { kind: 'bool', term: script.name(among<Extract<OpenValue, { kind: 'bool' }>>('bool', termOf, no)) };
    case 'int':
    case 'uint':
    case 'timestamp':
      return {
        kind: 'integer',
        term: script.name(among<Extract<OpenValue, { kind: 'integer' }>>('integer', termOf, '0'), 'Int'),
      };
    case 'string': {
      const texts = cases.map(({ open }) => open.value as OpenText);
      return {
        kind: 'text',
        term: script.name(among<OpenText>('text', termOf, '""'), 'String'),
        isLower: texts.every(({ isLower }) => isLower),
        isVague: texts.some(({ isVague }) => isVague === true),
        among: amongAll(cases.map(({ when }, place) => ({ when, text: texts[place]! }))),
      };
    }
    case 'list':
      return {
        kind: 'list',
        elements: cases.flatMap(({ when, open }) =>
          elementsOf(open).map(({ isThere, value }) => ({ isThere: script.name(and(when, isThere)), value })),
        ),
      };
    case 'record':
      return { kind: 'record', field: (name) => each((value) => fieldOf(value, name), type.fields[name]!) };
    case 'map':
      return {
        kind: 'map',
        entry: (key) => each((value) => entryOf(value, key), type.of),
        anyEntry: () => each((value) => anyEntryOf(value), type.of),
      };
    case 'dynamic':
      return chosenDynamic(script, cases, type);
  }
}

/** The literals of which one of some texts is one. */
function amongAll(
  cases: readonly { readonly when: Term; readonly text: OpenText }[],
): readonly PossibleLiteral[] | undefined {
  const all: PossibleLiteral[] = [];
  for (const { when, text } of cases) {
    const literals = literalsOf(text);
    if (!literals) return undefined;
    all.push(...literals.map((one) => ({ when: and(when, one.when), literal: one.literal })));
  }
  return all;
}

function chosenDynamic(script: Script, cases: Cases, type: PolicyType): OpenDynamic {
  const all = cases.map(({ when, open }) => ({ when, value: open.value as OpenDynamic }));
  const pick = (of: (value: OpenDynamic) => Term, none: Term) =>
    all.reduceRight((rest, { when, value }) => ite(when, of(value), rest), none);
  const each = (of: (value: OpenDynamic) => Open) =>
    chosen(
      script,
      all.map(({ when, value }) => ({ when, open: of(value) })),
      type,
    );
  return {
    kind: 'dynamic',
    tag: script.name(
      pick(({ tag }) => tag, tags.bool),
      'Int',
    ),
    bool: () => script.name(pick((value) => value.bool(), no)),
    integer: () =>
      script.name(
        pick((value) => value.integer(), '0'),
        'Int',
      ),
    text: () => ({
      kind: 'text',
      term: script.name(
        pick((value) => value.text().term, '""'),
        'String',
      ),
      isLower: false,
      isVague: all.some(({ value }) => value.text().isVague === true),
    }),
    elements: () =>
      all.flatMap(({ when, value }) =>
        value.elements().map((element) => ({ ...element, isThere: script.name(and(when, element.isThere)) })),
      ),
    entry: (key) => each((value) => value.entry(key)),
    anyEntry: () => each((value) => value.anyEntry()),
  };
}

const termOf = ({ term }: { readonly term: Term }): Term => term;

/** A field of a record. */
export function fieldOf(value: OpenValue, name: string): Open {
  if (value.kind !== 'record') throw new Error(`a ${value.kind} has no fields`);
  return value.field(name);
}

/** What a map, or a dynamic record, has under a key. */
export function entryOf(value: OpenValue, key: string): Open {
  if (value.kind !== 'map' && value.kind !== 'dynamic') throw new Error(`a ${value.kind} has no entries`);
  return value.entry(key);
}

/** What a map, or a dynamic record, has under a key that is open: anything. */
export function anyEntryOf(value: OpenValue): Open {
  if (value.kind !== 'map' && value.kind !== 'dynamic') throw new Error(`a ${value.kind} has no entries`);
  return value.anyEntry();
}

/** The element, or the character, at a place; its absence is that of what is chosen. */
export function elementAt(script: Script, elements: readonly OpenElement[], place: Term, type: PolicyType): Open {
  const cases = numbered(script, elements).map(({ isThere, before, value }) => ({
    when: script.name(and(isThere, same(before, place))),
    open: value,
  }));
  return chosen(script, cases, type);
}

/** A part of a text. */
export function partOfText(script: Script, of: OpenText, from: Term, length: Term): OpenText {
  const { isLower, isVague = false } = of;
  return { kind: 'text', term: script.name(apply('str.substr', of.term, from, length), 'String'), isLower, isVague };
}
