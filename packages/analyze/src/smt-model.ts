import { Doubt, notApplicable, unreadable, type PolicyType, type PolicyValue, shownValue } from 'countersign/internal';
import { and, apply, integer, not, same, text, yes, type Term } from './smt-script.js';
import type { Unknown } from './smt-unknown.js';
import { tags, type Open } from './smt-values.js';

/** What the solver says of terms: their values. */
export type Model = ReadonlyMap<Term, boolean | bigint | string>;

/** Reads the answer to `(get-value (…))`. @throws {Error} if it is no such answer */
export function readModel(answer: string): Model {
  const model = new Map<Term, boolean | bigint | string>();
  const pair = /\(\s*([vt]\d+)\s+(true|false|\d+|\(-\s+\d+\)|"(?:[^"]|"")*")\s*\)/g;
  for (const [, name, value] of answer.matchAll(pair)) model.set(name!, readValue(value!));
  if (model.size === 0 && answer.trim() !== '()')
    throw new Error(`the solver's answer cannot be read: ${answer.slice(0, 200)}`);
  return model;
}

function readValue(value: string): boolean | bigint | string {
  if (value === 'true' || value === 'false') return value === 'true';
  if (!value.startsWith('"')) return BigInt(value.replace(/[()\s]/g, ''));
  return value
    .slice(1, -1)
    .replaceAll('""', '"')
    .replace(/\\u\{([0-9a-f]+)\}/gi, (_whole, code: string) => String.fromCodePoint(parseInt(code, 16)));
}

/** Whether a model makes a Boolean term true. */
export const holdsIn = (model: Model, term: Term): boolean => term === yes || model.get(term) === true;

/** The value that a model gives something unknown; undefined if it is not part of the request. */
export function valueIn(unknown: Unknown, model: Model): PolicyValue | undefined {
  const { constants, parts, type } = unknown;
  const of = (name: Parameters<typeof constants.get>[0]) => model.get(constants.get(name) ?? '');
  if (of('missing') === true) return notApplicable;
  if (of('unreadable') === true) return unreadable('it cannot be read in this example');
  const kind = type.kind === 'dynamic' ? kinds[Number(of('tag') ?? 0n)]! : type.kind;
  switch (kind) {
    case 'bool':
      return of('bool') ?? false;
    case 'int':
    case 'uint':
    case 'timestamp':
      return of('integer') ?? 0n;
    case 'string':
      return of('text') ?? '';
    case 'list':
      return Array.from({ length: Number(of('length') ?? 0n) }, (_, index) => {
        const part = parts.get(`[${index}]`);
        return (part && valueIn(part, model)) ?? unreadable('nothing is said about it');
      });
    case 'map':
    case 'record':
      return Object.fromEntries(
        [...parts].flatMap(([name, part]) => {
          const value = name.startsWith('[') ? undefined : valueIn(part, model);
          return value === undefined ? [] : [[name, value] as const];
        }),
      );
  }
}

/** What a model says of the parts of something unknown, by path; only of those that are `read`. */
export function factsIn(
  unknown: Unknown,
  model: Model,
  read: ReadonlySet<string>,
): readonly (readonly [string, string])[] {
  const value = valueIn(unknown, model);
  if (!read.has(unknown.path) || value === undefined || value === notApplicable) return [];
  const isWhole = typeof value !== 'object' || value instanceof Doubt || unknown.parts.size === 0;
  if (isWhole) return Array.isArray(value) || isScalar(value) ? [[unknown.path, shownValue(value)]] : [];
  const parts = [...unknown.parts].filter(
    ([name]) => !Array.isArray(value) || Number(name.slice(1, -1)) < (value as readonly PolicyValue[]).length,
  );
  const length = Array.isArray(value) ? [[`${unknown.path}.count()`, String(value.length)] as const] : [];
  return [...length, ...parts.flatMap(([, part]) => factsIn(part, model, read))];
}

const isScalar = (value: PolicyValue): boolean => typeof value !== 'object' || value instanceof Doubt;

/** By the tags of dynamic values. */
const kinds = ['bool', 'int', 'string', 'list', 'record'] as const;

/** What is known of a value: terms that say so. @throws {Error} that says what does not fit its type, for people */
export function known(unknown: Unknown, value: PolicyValue): readonly Term[] {
  const { open, path, type } = unknown;
  return [not(open.isUnreadable), not(open.isNotApplicable), ...within(open, value, unknown, path, type)];
}

function within(open: Open, value: PolicyValue, unknown: Unknown, path: string, type: PolicyType): readonly Term[] {
  const of = open.value;
  const isKind = (tag: Term): readonly Term[] => (of.kind === 'dynamic' ? [same(of.tag, tag)] : []);
  const bool = of.kind === 'bool' ? of.term : of.kind === 'dynamic' ? of.bool() : undefined;
  if (typeof value === 'boolean' && bool !== undefined) return [...isKind(tags.bool), value ? bool : not(bool)];
  const number = of.kind === 'integer' ? of.term : of.kind === 'dynamic' ? of.integer() : undefined;
  if (typeof value === 'bigint' && number !== undefined) return [...isKind(tags.integer), same(number, integer(value))];
  const written = of.kind === 'text' ? of : of.kind === 'dynamic' ? of.text() : undefined;
  if (typeof value === 'string' && written) {
    const lower = written.isLower ? value.toLowerCase() : value;
    return [...isKind(tags.text), same(written.term, text(lower))];
  }
  if (Array.isArray(value) && (type.kind === 'list' || type.kind === 'dynamic')) {
    const elements = of.kind === 'list' ? of.elements : of.kind === 'dynamic' ? of.elements() : [];
    if (value.length > elements.length) throw new Error(`\`${path}\` has more than ${elements.length} elements`);
    const element = type.kind === 'list' ? type.of : type;
    return [
      ...isKind(tags.list),
      ...elements.map(({ isThere }, index) => (index < value.length ? isThere : not(isThere))),
      ...(value as readonly PolicyValue[]).flatMap((one, index) =>
        known(unknown.part(`[${index}]`, element, `${path}[${index}]`), one),
      ),
    ];
  }
  if (typeof value === 'object' && value.constructor === Object) {
    const fields = Object.entries(value as Readonly<Record<string, PolicyValue | undefined>>);
    return fields.flatMap(([name, one]) => {
      const part = type.kind === 'record' ? ownField(type.fields, name) : type.kind === 'map' ? type.of : type;
      if (part === undefined) throw new Error(`\`${path}\` has no field \`${name}\``);
      const at = type.kind === 'record' ? `${path}.${name}` : `${path}['${name}']`;
      return one === undefined ? [] : [and(...isKind(tags.record), ...known(unknown.part(name, part, at), one))];
    });
  }
  throw new Error(`\`${path}\` cannot be ${shownValue(value)}: it is of type ${type.kind}`);
}

function ownField(fields: Readonly<Record<string, PolicyType>>, name: string): PolicyType | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** Without Z3's usual preparation, whose contextual simplification takes longer than solving. */
const check = '(check-sat-using smt)';

/** The commands that ask for a model in which all of these hold. */
export function modelOf(goals: readonly Term[], terms: readonly Term[]): string {
  const names = terms.filter((term) => /^[vt]\d+$/.test(term));
  const values = names.length > 0 ? `${apply('get-value', `(${names.join(' ')})`)}\n` : '';
  return `${goals.map((goal) => `(assert ${goal})`).join('\n')}\n${check}\n${values}`;
}

/** What a script begins with that asks for a core (SMT-LIB 2.6, 4.2.7), of Z3 a small one. */
export const withCore = '(set-option :produce-unsat-cores true)\n(set-option :smt.core.minimize true)\n';

/** The commands that ask which of the wishes cannot be had together where the goals hold. */
export function coreOf(goals: readonly Term[], wishes: readonly Term[]): string {
  return [
    ...goals.map((goal) => `(assert ${goal})`),
    ...wishes.map((requestedVote, place) => `(assert (! ${requestedVote} :named w${place}))`),
    check,
    '(get-unsat-core)\n',
  ].join('\n');
}

/** The wishes of an answer to these commands, by their places, in their order; none if it says nothing. */
export function wishesInCore(answer: string): readonly number[] {
  const [, core = ''] = /^unsat\n\(((?:w\d+ ?)*)\)$/m.exec(answer) ?? [];
  return Array.from(core.matchAll(/\d+/g), ([place]) => Number(place)).sort((a, b) => a - b);
}
