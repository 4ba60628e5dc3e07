import type { Equality, PolicyType } from 'countersign/internal';
import { and, apply, integer, ite, no, not, or, same, text, yes, type Script, type Term } from './smt-script.js';
import { literalsOf, tags, type OpenText, type OpenValue } from './smt-values.js';

/** Whether two values are equal, and whether that cannot be said. */
export interface OpenEquality {
  readonly isEqual: Term;
  readonly isUnreadable: Term;
}

/** One side, and its type when the policy was written. */
export interface OpenOperand {
  readonly value: OpenValue;
  readonly type: PolicyType;
}

const said = (isEqual: Term): OpenEquality => ({ isEqual, isUnreadable: no });

/**
 * Equality by the rule for the types, as `equality.ts` of the language has it. `vague` gives a new term for each comparison
 * of a text that may stand for others: whether it is in doubt.
 */
export function equalValues(
  script: Script,
  equality: Equality,
  left: OpenOperand,
  right: OpenOperand,
  vague: () => Term,
): OpenEquality {
  const [a, b] = [left.value, right.value];
  if (equality === 'dynamic') return equalDynamically(script, left, right, vague);
  if (a.kind === 'text' && b.kind === 'text') return equalTexts(script, equality, a, b, vague);
  if ((a.kind === 'bool' && b.kind === 'bool') || (a.kind === 'integer' && b.kind === 'integer')) {
    return said(same(a.term, b.term));
  }
  throw new Error(`a ${a.kind} and a ${b.kind} cannot be equal`);
}

function equalTexts(script: Script, equality: Equality, a: OpenText, b: OpenText, vague: () => Term): OpenEquality {
  const isEqual = script.name(sameText(equality, a, b));
  const isVague = a.isVague || b.isVague ? vague() : no;
  // Two that show the same are the same, unless that is all that both show.
  const isSure = a.isVague && b.isVague ? no : isEqual;
  return { isEqual, isUnreadable: and(isVague, not(isSure)) };
}

function sameText(equality: Equality, a: OpenText, b: OpenText): Term {
  const [literals, others] = [literalsOf(a), literalsOf(b)];
  if (literals && others) {
    // Said case by case: texts that the solver would have to compare take it a second.
    const pairs = literals.flatMap((one) => others.map((other) => ({ one, other })));
    const equal = pairs.filter(({ one, other }) => areSameLiterals(equality, one.literal, other.literal));
    return or(...equal.map(({ one, other }) => and(one.when, other.when)));
  }
  if (equality === 'exact') return same(a.term, b.term);
  const [literal, other] = a.literal === undefined ? [b, a] : [a, b];
  if (literal.literal !== undefined) {
    const isFolded = equality === 'hex' || /^0x[0-9a-f]*$/i.test(literal.literal);
    return isFolded ? isLiteralInAnyCase(literal.literal, other) : same(other.term, literal.term);
  }
  const isSame = same(lower(a), lower(b));
  if (equality === 'hex') return isSame;
  return or(same(a.term, b.term), and(isPrefixedHex(a.term), isPrefixedHex(b.term), isSame));
}

function areSameLiterals(equality: Equality, a: string, b: string): boolean {
  return a === b || (equality !== 'exact' && isFoldedAlike(equality, a, b));
}

function isFoldedAlike(equality: Equality, a: string, b: string): boolean {
  const isFolded = equality === 'hex' || [a, b].every((one) => /^0x[0-9a-f]*$/i.test(one));
  return isFolded && a.length === b.length && a.toLowerCase() === b.toLowerCase();
}

function isLiteralInAnyCase(literal: string, other: OpenText): Term {
  if (other.isLower) return same(other.term, text(literal.toLowerCase()));
  const letters = Array.from(literal, (letter) => {
    const cases = [...new Set([letter.toLowerCase(), letter.toUpperCase()])];
    const each = cases.map((one) => apply('str.to_re', text(one)));
    return each.length === 1 ? each[0]! : apply('re.union', ...each);
  });
  if (letters.length === 0) return same(other.term, '""');
  return apply('str.in_re', other.term, letters.length === 1 ? letters[0]! : apply('re.++', ...letters));
}

/** Only letters that hexadecimal has: one side always is. */
function lower({ term, isLower }: OpenText): Term {
  if (isLower) return term;
  return ['A', 'B', 'C', 'D', 'E', 'F', 'X'].reduce(
    (folded, letter) => apply('str.replace_all', folded, text(letter), text(letter.toLowerCase())),
    term,
  );
}

const isPrefixedHex = (term: Term): Term =>
  apply(
    'str.in_re',
    term,
    '(re.++ (str.to_re "0") (re.union (str.to_re "x") (str.to_re "X")) ' +
      '(re.* (re.union (re.range "0" "9") (re.range "a" "f") (re.range "A" "F"))))',
  );

/** What a value is, and what it is then. */
interface Views {
  readonly isBool: Term;
  readonly isInteger: Term;
  readonly isText: Term;
  readonly bool: Term;
  readonly integer: Term;
  readonly text: OpenText;
}

const nothing: OpenText = { kind: 'text', term: '""', isLower: true };

function viewsOf(value: OpenValue): Views {
  if (value.kind === 'dynamic') {
    const is = (tag: Term) => same(value.tag, tag);
    return {
      isBool: is(tags.bool),
      isInteger: is(tags.integer),
      isText: is(tags.text),
      bool: value.bool(),
      integer: value.integer(),
      text: value.text(),
    };
  }
  return {
    isBool: value.kind === 'bool' ? yes : no,
    isInteger: value.kind === 'integer' ? yes : no,
    isText: value.kind === 'text' ? yes : no,
    bool: value.kind === 'bool' ? value.term : no,
    integer: value.kind === 'integer' ? value.term : '0',
    text: value.kind === 'text' ? value : nothing,
  };
}

function equalDynamically(script: Script, left: OpenOperand, right: OpenOperand, vague: () => Term): OpenEquality {
  const [a, b] = [viewsOf(left.value), viewsOf(right.value)];
  const isText = and(a.isText, b.isText);
  const isBool = and(a.isBool, b.isBool);
  const isInteger = and(a.isInteger, b.isInteger);
  const texts = isText === no ? said(no) : equalTexts(script, 'prefixed-hex', a.text, b.text, vague);
  const quoted = [
    { one: a, other: b, type: right.type },
    { one: b, other: a, type: left.type },
  ].map(({ one, other, type }) => {
    const isQuoted = type.kind === 'string' ? and(one.isInteger, other.isText) : no;
    return isQuoted === no
      ? { isRead: no, isEqual: no }
      : { isRead: and(isQuoted, isDecimal(other.text)), isEqual: same(other.text.term, decimal(one.integer)) };
  });
  const isRead = or(isText, isBool, isInteger, ...quoted.map((one) => one.isRead));
  return {
    isEqual: script.name(
      or(
        and(isText, texts.isEqual),
        and(isBool, same(a.bool, b.bool)),
        and(isInteger, same(a.integer, b.integer)),
        ...quoted.map((one) => and(one.isRead, one.isEqual)),
      ),
    ),
    isUnreadable: script.name(or(not(isRead), and(isText, texts.isUnreadable))),
  };
}

const decimalPattern = /^(?:0|-?[1-9][0-9]{0,77})$/;

function isDecimal({ term, literal }: OpenText): Term {
  if (literal !== undefined) return decimalPattern.test(literal) ? yes : no;
  const digits = '(re.++ (re.opt (str.to_re "-")) (re.range "1" "9") ((_ re.loop 0 77) (re.range "0" "9")))';
  return apply('str.in_re', term, `(re.union (str.to_re "0") ${digits})`);
}

/** The digits of a whole number. */
function decimal(term: Term): Term {
  const digits = apply('str.from_int', apply('abs', term));
  return ite(apply('<', term, integer(0)), apply('str.++', '"-"', digits), digits);
}
