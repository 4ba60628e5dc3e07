/** Terms of SMT-LIB, and the script that declares what they name. */

/** A term in SMT-LIB's own text. */
export type Term = string;
type Sort = 'Bool' | 'Int' | 'String';

export const yes: Term = 'true';
export const no: Term = 'false';

/** Few terms are compared: a set would read the whole text of each. */
function distinct(terms: readonly Term[]): readonly Term[] {
  return terms.length > 8 ? [...new Set(terms)] : terms.filter((term, index) => terms.indexOf(term) === index);
}

/** All of them. */
export function and(...terms: readonly Term[]): Term {
  if (terms.includes(no)) return no;
  const kept = distinct(terms).filter((term) => term !== yes);
  return kept.length < 2 ? (kept[0] ?? yes) : `(and ${kept.join(' ')})`;
}

/** Some of them. */
export function or(...terms: readonly Term[]): Term {
  if (terms.includes(yes)) return yes;
  const kept = distinct(terms).filter((term) => term !== no);
  return kept.length < 2 ? (kept[0] ?? no) : `(or ${kept.join(' ')})`;
}

export function not(term: Term): Term {
  if (term === yes) return no;
  return term === no ? yes : `(not ${term})`;
}

/** One of two terms of the same sort. */
export function ite(condition: Term, then: Term, otherwise: Term): Term {
  if (condition === yes || then === otherwise) return then;
  return condition === no ? otherwise : `(ite ${condition} ${then} ${otherwise})`;
}

/** Whether two terms of the same sort are equal. */
export const same = (a: Term, b: Term): Term => (a === b ? yes : `(= ${a} ${b})`);

/** A function of the theory, of terms. */
export const apply = (name: string, ...terms: readonly Term[]): Term => `(${name} ${terms.join(' ')})`;

/** A whole number. */
export function integer(value: bigint | number): Term {
  return value < 0 ? `(- ${-value})` : String(value);
}

/** How many of them are true. */
export function howMany(terms: readonly Term[]): Term {
  const counted = terms.filter((term) => term !== no).map((term) => ite(term, '1', '0'));
  return counted.length < 2 ? (counted[0] ?? '0') : apply('+', ...counted);
}

/** The solver's texts have characters up to this one. */
const lastCharacter = 0x2ffff;

/** Something in a policy that has no counterpart for the solver: nothing can be said about it. */
export class Untranslatable extends Error {}

/** A text, with everything but plain characters escaped. @throws {Untranslatable} for a character that the solver has not */
export function text(value: string): Term {
  const escaped = Array.from(value, (character) => {
    const code = character.codePointAt(0)!;
    if (code > lastCharacter) throw new Untranslatable(`the solver has no character \`${character}\``);
    if (character === '"') return '""';
    return code < 32 || code > 126 || character === '\\' ? `\\u{${code.toString(16)}}` : character;
  });
  return `"${escaped.join('')}"`;
}

/** What is declared, what holds of it, and terms that have a name because several others use them. */
export class Script {
  /** Sorts by name. */
  readonly constants = new Map<string, Sort>();
  /** What holds of every request that there can be. */
  readonly facts: Term[] = [];
  private readonly definitions: { readonly name: string; readonly sort: Sort; readonly term: Term }[] = [];
  private readonly named = new Map<string, Term>();

  /** A new constant of a sort. */
  constant(sort: Sort): Term {
    const name = `v${this.constants.size}`;
    this.constants.set(name, sort);
    return name;
  }

  /** A term by a name of its own, so that its text is written only once. */
  name(term: Term, sort: Sort = 'Bool'): Term {
    if (!term.startsWith('(')) return term;
    const key = `${sort} ${term}`;
    let name = this.named.get(key);
    if (name === undefined) {
      name = `t${this.definitions.length}`;
      this.named.set(key, name);
      this.definitions.push({ name, sort, term });
    }
    return name;
  }

  /** Everything but a question. With `values`, constants are what they say, and nothing is left open. */
  text(values?: ReadonlyMap<string, Term>): string {
    const constants = Array.from(this.constants, ([name, sort]) =>
      values ? `(define-fun ${name} () ${sort} ${values.get(name)!})` : `(declare-const ${name} ${sort})`,
    );
    const definitions = this.definitions.map(({ name, sort, term }) => `(define-fun ${name} () ${sort} ${term})`);
    const facts = values ? [] : this.facts.map((fact) => `(assert ${fact})`);
    return [...constants, ...definitions, ...facts, ''].join('\n');
  }
}
