import { integerRange, type PolicyType } from 'countersign/internal';
import { and, apply, integer, no, or, same, text, yes, type Script, type Term } from './smt-script.js';
import {
  present,
  tags,
  type Open,
  type OpenDynamic,
  type OpenElement,
  type OpenText,
  type OpenValue,
} from './smt-values.js';

/** What bounds and widens the unknown values of a question. */
export interface Limits {
  /** Most elements of a list. */
  readonly elements: number;
  /** Texts that a field can have, by record and field. */
  readonly vocabulary: Readonly<Record<string, ReadonlySet<string>>>;
  /** Whether a value, by its path, may not be part of a request. */
  readonly mayBeMissing: (path: string) => boolean;
  /** Whether it may be there and not be readable. */
  readonly mayBeUnreadable: (path: string) => boolean;
  /** What was made wider than it is, in words. */
  readonly widened: Set<string>;
}

const hexadecimal = '(re.++ (re.opt (str.to_re "0x")) (re.* (re.union (re.range "0" "9") (re.range "a" "f"))))';
/** Milliseconds that a clock can show: those of a Date. */
const lastTime = 8_640_000_000_000_000n;

/**
 * A value that a request brings along: nothing of it is known, and only the parts that policies read are declared. A part has
 * the same constants each time it is read.
 */
export class Unknown {
  /** Parts by field, key or place. */
  readonly parts = new Map<string, Unknown>();
  /** Constants of its own, as far as they were needed: its value by its kind, its length, its tag. */
  readonly constants = new Map<'unreadable' | 'missing' | 'bool' | 'integer' | 'text' | 'length' | 'tag', Term>();
  private known: Open | undefined;

  constructor(
    private readonly script: Script,
    readonly path: string,
    readonly type: PolicyType,
    private readonly limits: Limits,
    /** `Record.field`, to look up its vocabulary. */
    private readonly origin?: string,
  ) {}

  get open(): Open {
    if (!this.known) {
      const { mayBeMissing, mayBeUnreadable } = this.limits;
      const isUnreadable = mayBeUnreadable(this.path) ? this.constant('unreadable', 'Bool') : no;
      const isNotApplicable = mayBeMissing(this.path) ? this.constant('missing', 'Bool') : no;
      if (isUnreadable !== no && isNotApplicable !== no)
        this.script.facts.push(apply('not', and(isUnreadable, isNotApplicable)));
      this.known = { isUnreadable, isNotApplicable, value: this.value() };
    }
    return this.known;
  }

  /** A part of it. */
  part(name: string, type: PolicyType, path: string): Unknown {
    let part = this.parts.get(name);
    if (!part) {
      const origin = this.type.kind === 'record' ? `${this.type.name}.${name}` : undefined;
      part = new Unknown(this.script, path, type, this.limits, origin);
      this.parts.set(name, part);
    }
    return part;
  }

  /** Its path, and those of its parts, as far as they were asked for. */
  get paths(): readonly string[] {
    return [this.path, ...[...this.parts.values()].flatMap((part) => part.paths)];
  }

  /** Whether it, or a part of it, is unreadable: a constant for each. */
  get absences(): readonly Term[] {
    const own = this.constants.get('unreadable');
    return [...(own === undefined ? [] : [own]), ...[...this.parts.values()].flatMap((part) => part.absences)];
  }

  private value(): OpenValue {
    const { type } = this;
    switch (type.kind) {
      case 'bool':
        return { kind: 'bool', term: this.constant('bool', 'Bool') };
      case 'int':
      case 'uint':
        return { kind: 'integer', term: this.integer(integerRange[type.kind]) };
      case 'timestamp':
        return { kind: 'integer', term: this.integer({ min: 0n, max: lastTime }) };
      case 'string':
        return this.text(type.hex === 'always');
      case 'list':
        return { kind: 'list', elements: this.elements(type.of) };
      case 'record':
        return { kind: 'record', field: (name) => this.part(name, type.fields[name]!, `${this.path}.${name}`).open };
      case 'map':
        return {
          kind: 'map',
          entry: (key) => this.part(key, type.of, `${this.path}['${key}']`).open,
          anyEntry: () => this.anything(type.of),
        };
      case 'dynamic':
        return this.dynamic();
    }
  }

  private dynamic(): OpenDynamic {
    const dynamic: PolicyType = { kind: 'dynamic' };
    const tag = this.constant('tag', 'Int', (term) => and(apply('<=', '0', term), apply('<=', term, tags.record)));
    return {
      kind: 'dynamic',
      tag,
      bool: () => this.constant('bool', 'Bool'),
      integer: () => this.integer(integerRange.dynamic),
      text: () => this.text(false),
      elements: () => this.elements(dynamic),
      entry: (key) => this.part(key, dynamic, `${this.path}['${key}']`).open,
      anyEntry: () => this.anything(dynamic),
    };
  }

  private integer({ min, max }: { readonly min: bigint; readonly max: bigint }): Term {
    return this.constant('integer', 'Int', (term) =>
      and(apply('<=', integer(min), term), apply('<=', term, integer(max))),
    );
  }

  private text(isLower: boolean): OpenText {
    const { vocabulary } = this.limits;
    const words =
      this.origin !== undefined && Object.hasOwn(vocabulary, this.origin) ? vocabulary[this.origin] : undefined;
    const term = this.constant('text', 'String', (one) => {
      if (words) return or(...Array.from(words, (word) => same(one, text(word))));
      return isLower ? apply('str.in_re', one, hexadecimal) : yes;
    });
    return { kind: 'text', term, isLower, isVague: isVague(this.path) };
  }

  private elements(of: PolicyType): readonly OpenElement[] {
    const { elements } = this.limits;
    const length = this.constant('length', 'Int', (term) =>
      and(apply('<=', '0', term), apply('<=', term, integer(elements))),
    );
    return Array.from({ length: elements }, (_, index) => ({
      isThere: this.script.name(apply('<', integer(index), length)),
      value: this.part(`[${index}]`, of, `${this.path}[${index}]`).open,
    }));
  }

  /** Another value each time: wider than what there is. */
  private anything(type: PolicyType): Open {
    this.limits.widened.add(`an entry of \`${this.path}\` by a key that is not a literal can be anything`);
    return new Unknown(this.script, this.path, type, { ...this.limits, mayBeMissing: () => false }).open;
  }

  private constant(
    name: Parameters<typeof this.constants.get>[0],
    sort: 'Bool' | 'Int' | 'String',
    fact: (term: Term) => Term = () => yes,
  ): Term {
    let term = this.constants.get(name);
    if (term === undefined) {
      term = this.script.constant(sort);
      this.constants.set(name, term);
      const holds = fact(term);
      if (holds !== yes) this.script.facts.push(holds);
    }
    return term;
  }
}

/** An account's address, an account of a lookup table, a token's mint or an output may stand for others. */
function isVague(path: string): boolean {
  return path === 'wallet_account.address' || path.startsWith('solana.') || path.startsWith('bitcoin.tx.outputs');
}

/** A constant of a policy. */
export function constantOf(value: unknown, type: PolicyType): Open {
  if (typeof value === 'boolean') return present({ kind: 'bool', term: value ? yes : no });
  if (typeof value === 'bigint') return present({ kind: 'integer', term: integer(value) });
  if (typeof value === 'string') {
    return present({ kind: 'text', term: text(value), literal: value, isLower: value === value.toLowerCase() });
  }
  if (!Array.isArray(value)) throw new Error(`\`${String(value)}\` is no constant of the language`);
  const of = type.kind === 'list' ? type.of : type;
  return present({
    kind: 'list',
    elements: value.map((one: unknown) => ({ isThere: yes, value: constantOf(one, of) })),
  });
}
